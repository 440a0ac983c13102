"""The rows: every public function of `wend.numpy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.arrays import Sample


def floats(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Well-spread floats in no order, none of them equal."""
    count = int(np.prod(shape))
    order = np.random.default_rng(seed + count).permutation(count)
    return (low + (high - low) * (order + 0.37 + 0.05 * seed) / max(count, 1)).reshape(shape)


X = floats(2, 3)
Y = floats(2, 3, seed=1)
POSITIVE = floats(2, 3, low=0.2, high=3)
UNIT = floats(2, 3, low=-0.9, high=0.9)
VECTOR = floats(5)
OTHER = floats(5, seed=2)
SORTED = np.sort(floats(5))
SQUARE = floats(3, 3) + 3 * np.eye(3)
STACK = floats(2, 3, 3) + 3 * np.eye(3)
TALL = floats(4, 3)
WIDE = floats(2, 4)
INTS = np.array([[3, -1, 2], [5, 0, -4]])
COUNTS = np.array([2, 0, 1, 3, 1])
BOOLS = np.array([[True, False, True], [False, False, True]])
WITH_NAN = np.where(np.arange(6).reshape(2, 3) == 4, np.nan, X)
COMPLEX = X + 1j * Y
SPD = SQUARE @ SQUARE.T + np.eye(3)

_SAMPLES: list[Sample] = []


def _changed(function: Callable[..., Any], x: Any, *rest: Any, **options: Any) -> Any:
    """A copy of an array, after a function that changes it."""
    x = x.copy()
    assert function(x, *rest, **options) is None
    return x


def _add(names: str, *arrays: Any, **fields: Any) -> None:
    own = {"call", "of", "traced", "through", "smooth", "orders", "tol"}
    rest = {key: value for key, value in fields.items() if key not in own}
    given = {key: value for key, value in fields.items() if key in own}
    _SAMPLES.extend(Sample(name, arrays, rest, **given) for name in names.split())


# Elementwise
_add("tan", UNIT)
_add("sin cos arctan atan sinh cosh tanh arcsinh asinh exp exp2 expm1 cbrt square", X)
_add("negative positive absolute abs fabs sign floor ceil trunc rint round around fix", X)
_add("deg2rad radians rad2deg degrees sinc nan_to_num angle", X)
_add("round", X, decimals=1)
_add("sinc", np.array([0.0, 0.01, -0.02, 0.5]))
_add("sqrt log log2 log10 log1p reciprocal", POSITIVE)
_add("arcsin asin arccos acos arctanh atanh", UNIT)
_add("arccosh acosh", POSITIVE + 1)
_add("add subtract multiply maximum minimum fmax fmin hypot logaddexp logaddexp2", X, Y)
_add("divide true_divide arctan2 atan2 copysign heaviside", X, Y)
_add("remainder mod fmod floor_divide divmod", X, Y)
_add("nextafter", X, Y, smooth=False)
_add("power pow float_power", POSITIVE, Y)
_add("modf frexp", X)
_add("ldexp", X, INTS)
_add("signbit isnan isinf isfinite isposinf isneginf iscomplex isreal", WITH_NAN)
_add("logical_not", BOOLS)
_add("logical_and logical_or logical_xor", BOOLS, ~BOOLS)
_add("equal not_equal less less_equal greater greater_equal", X, Y)
_add("bitwise_and bitwise_or bitwise_xor gcd lcm", INTS, INTS + 3)
_add("bitwise_invert bitwise_not invert bitwise_count", INTS)
_add("left_shift bitwise_left_shift right_shift bitwise_right_shift", INTS, np.abs(INTS))
_add("real imag conj conjugate", COMPLEX)
_add("clip", X, -0.5, 1.0)
_add("where", BOOLS, X, Y)

# Made, shaped, joined
_add("array asarray", X, through=False)
_add("copy", X)
_add("ascontiguousarray asanyarray", X, through=False)
_add("ascontiguousarray", 2.0, through=False)
_add("zeros_like ones_like", X)
_add("empty_like", X, of=lambda y: y.shape, through=False)
_add("full_like", X, 3.0)
_add("full", 3.0, call=lambda f, v: f((2, 3), v), through=False)
_add("zeros ones", 3, through=False)
_add("empty", 3, through=False, of=lambda y: y * 0)
_add("eye identity tri", 3, through=False)
_add("tri", 3, 5, through=False, call=lambda f, n, m: f(n, m, -1, np.int32))
_add("arange", 0.5, 4.0, 0.75, through=False)
_add("linspace", 0.5, 4.0, num=7)
_add("linspace", VECTOR, OTHER, num=4, axis=1, endpoint=False)
_add("logspace", 0.5, 2.0, num=5)
_add("geomspace", 0.5, 20.0, num=5)
_add("meshgrid", VECTOR, OTHER[:3])
_add("reshape", X, (3, 2), call=lambda f, x, s: f(x, (3, 2)))
_add("ravel transpose permute_dims matrix_transpose squeeze flip fliplr flipud rot90", X)
_add("swapaxes rollaxis", X, call=lambda f, x: f(x, 0, 1))
_add("moveaxis", STACK, call=lambda f, x: f(x, 0, -1))
_add("expand_dims", X, axis=1)
_add("broadcast_to", VECTOR, shape=(2, 5))
_add("broadcast_arrays", X, VECTOR[:3])
_add("broadcast_shapes", call=lambda f: f((2, 1), (3,)))
_add("concatenate concat stack hstack vstack dstack column_stack", X, Y, call=lambda f, *xs: f(xs))
_add("append", X, Y)
_add("block", X, Y, call=lambda f, x, y: f([[x, y], [y, x]]))
_add(
    "split hsplit",
    WIDE,
    call=lambda f, x: f(x, 2, **({"axis": 1} if "h" not in f.__name__ else {})),
)
_add("vsplit", WIDE, call=lambda f, x: f(x, 2))
_add("dsplit", STACK, call=lambda f, x: f(x, [1, 2]))
_add("array_split", VECTOR, call=lambda f, x: f(x, 3))
_add("unstack", X)
_add("atleast_1d atleast_2d atleast_3d", VECTOR, np.float64(2.0))
_add("pad", X, call=lambda f, x: f(x, ((1, 0), (2, 1)), constant_values=1.5))
_add("roll", X, call=lambda f, x: f(x, (1, -2), (0, 1)))
_add("roll", VECTOR, np.int64(2))
_add("repeat", VECTOR, COUNTS)
_add("repeat", X, call=lambda f, x: f(x, 2, axis=1))
_add("tile", X, call=lambda f, x: f(x, (2, 1, 2)))
_add("resize", X, call=lambda f, x: f(x, (3, 5)))
_add("insert", X, Y[0], call=lambda f, x, v: f(x, 1, v, axis=0))
_add("insert", X, Y, call=lambda f, x, v: f(x, 1, v.T, axis=1))
_add("insert", VECTOR, OTHER[:2], call=lambda f, x, v: f(x, [3, -2], v))
_add("insert", X, np.float64(2.5), call=lambda f, x, v: f(x, slice(0, 2), v, axis=1))
_add("delete", X, call=lambda f, x: f(x, [0, -1], axis=1))
_add("delete", X, call=lambda f, x: f(x, slice(1, 4)))
_add("astype", X, call=lambda f, x: f(x, np.float32), orders=1, tol=1e-2)
_add("shape", X)
_add("ndim size", X)

# Read, chosen, searched
_add("take", X, np.array([1, 1, -1]), axis=1)
_add("take_along_axis", X, np.array([[1, 1], [2, 0]]), axis=1)
_add("nonzero flatnonzero argwhere", INTS)
_add("unravel_index", COUNTS, shape=(2, 3))
_add("ravel_multi_index", COUNTS, call=lambda f, x: f((x, x[::-1]), (4, 5)))
_add("count_nonzero", INTS, axis=1)
_add("compress", BOOLS[0], X, axis=1)
_add("extract", BOOLS, X)
_add("select", BOOLS, X, Y, call=lambda f, c, x, y: f([c, x > 0], [x * x, y], 1.5))
_add("piecewise", X, call=lambda f, x: f(x, [x < 0, x > 1], [lambda v: v * v, 2.0, lambda v: -v]))
_add("choose", np.array([1, 0, 1]), X, call=lambda f, k, x: f(k, x))
_add(
    "put_along_axis",
    X,
    np.array([[1, 1], [2, 0]]),
    Y[:, :2],
    axis=1,
    inplace=False,
    through=False,
)
_add("copyto", X, Y, call=_changed, where=BOOLS)
_add("fill_diagonal", TALL, VECTOR[:2], call=_changed, wrap=True)
_add("put", X, np.array([4, 0, -1]), VECTOR[:2], call=_changed)
_add("putmask place", X, BOOLS, VECTOR[:2], call=_changed)
_add("searchsorted", SORTED, OTHER)
_add("digitize", OTHER, SORTED)
_add("bincount", COUNTS, OTHER)
_add("histogram", OTHER, smooth=False, bins=4)
_add("histogram", OTHER, bins=4, of=lambda r: r[1])
_add("histogram2d", OTHER, VECTOR, smooth=False, bins=(2, 3))
_add("angle", COMPLEX)
_add("unique_all unique_counts unique_inverse", X, of=lambda r: r[0])
_add("interp", floats(7), SORTED, OTHER)
_add("isin", INTS, COUNTS)
_add("unique", COUNTS)
_add("unique", TALL, axis=0)
_add("ix_", COUNTS, BOOLS[0])
_add("unique_values", X, of=lambda v: np.sort(v))  # NumPy gives them in no order
_add("unique_all unique_counts unique_inverse", floats(2, 3).round(), smooth=False)
_add("union1d intersect1d setdiff1d setxor1d", INTS, COUNTS)
_add("setxor1d", X, np.append(X[0], 7.5), smooth=False)

# Reduced
_add("sum prod mean var std max amax min amin ptp", X, axis=1)
_add("var std", X, axis=1, correction=1)
_add("asarray array", X, dtype=np.float32, copy=True, through=False, orders=1, tol=1e-2)
_add("astype zeros_like ones_like", X, call=lambda f, x: f(x, np.float64, device="cpu"))
_add("all any", BOOLS, axis=1)
_add("argmax argmin argsort sort", X, axis=1)
_add("sort argsort", floats(9).round(), axis=0, stable=True, smooth=False)
_add("partition", X, kth=1, axis=1, of=lambda y: y[:, 1])
_add("argpartition", X, kth=1, axis=1, of=lambda y: y[:, 1])
_add("lexsort", COUNTS, np.array([1, 0, 1, 0, 1]), call=lambda f, x, y: f((x, y)))
_add("lexsort", INTS, axis=0)
_add("cumsum cumprod", X, axis=1)
_add("cumprod", np.array([1.5, 0.0, 2.0, 0.0, 3.0]))
_add("cumulative_sum cumulative_prod", X, axis=1, include_initial=True)
_add("median", X, axis=1)
_add("quantile", VECTOR, np.array([0.1, 0.45, 0.8]))
_add("percentile", X, np.float64(35.0), axis=1)
_add("average", X, Y + 4, call=lambda f, x, w: f(x, axis=1, weights=w, returned=True))
_add("cov", TALL, OTHER[:4], call=lambda f, x, y: f(x, y, rowvar=False))
_add("corrcoef", WIDE)
_add(
    "nansum nanprod nanmean nanmax nanmin nanstd nanvar nanmedian nancumsum nancumprod",
    WITH_NAN,
    axis=1,
)
_add("nanargmax nanargmin", WITH_NAN, axis=1)
_add("nanquantile", WITH_NAN, np.array([0.1, 0.45, 0.8]), axis=1)
_add("nanquantile", WITH_NAN, np.float64(0.3), axis=0, method="hazen", keepdims=True)
_add("nanpercentile", WITH_NAN, np.float64(35.0))
_add("nanquantile", INTS, np.float64(0.3))
_add("logsumexp", X, axis=1, through=False)
_add("isclose allclose array_equal array_equiv", X, X + 1e-9)

# Differences and integrals
_add("diff", VECTOR, n=2)
_add("ediff1d", VECTOR, 1.5, 2.5)
_add("unwrap", 4 * X, axis=1)
_add("unwrap", INTS, call=lambda f, x: f(x, period=5))
_add("gradient", TALL)
_add("gradient", VECTOR, SORTED, edge_order=2)
_add("trapezoid", X, POSITIVE)
_add("convolve correlate", VECTOR, OTHER[:3], mode="full")
_add("convolve correlate", VECTOR, OTHER[:3], mode="same")
_add("convolve correlate", VECTOR, OTHER[:3], mode="valid")
_add("polyval", VECTOR, X)
_add("polyadd polysub polymul", VECTOR, OTHER[:3])
_add("polyder polyint", VECTOR)
_add("poly", VECTOR)
_add("poly", SPD)
_add("polyfit", SORTED, VECTOR, call=lambda f, x, y: f(x, y, 2))

# Products and matrices
_add("dot matmul", X, Y.T)
_add(
    "vdot outer vecdot tensordot inner",
    VECTOR,
    OTHER,
    call=lambda f, x, y: f(x, y, *((1,) if f.__name__ == "tensordot" else ())),
)
_add("kron", X, Y[:, :2])
_add("cross", X, Y)
_add("matvec", STACK, X)
_add("vecmat", X, STACK)
_add("einsum", X, Y, call=lambda f, x, y: f("ij,kj->ik", x, y))
_add("einsum", STACK, X, VECTOR[:3], call=lambda f, a, x, v: f("b...i,bi,j->...j", a, x, v))
_add("tril triu", SQUARE, k=1)
_add("triu_indices_from tril_indices_from", SQUARE)
_add("diagonal trace diag", TALL, call=lambda f, x: f(x, 1))
_add("diag diagflat", VECTOR, call=lambda f, x: f(x, -1))
_add("vander", VECTOR)

# dtypes
_add("result_type", X, np.float32(1), smooth=False, of=lambda d: np.empty(0, d))
_add("can_cast", call=lambda f: f(np.int32, np.float64))
_add("common_type", X, INTS, of=lambda d: np.empty(0, d), call=lambda f, x, y: f(x, x))
_add("promote_types", call=lambda f: np.empty(0, f("i4", "f4")))
_add("isdtype", call=lambda f: f(np.dtype("f8"), "real floating"))
_add("isscalar", call=lambda f: f(1.0))
_add("iscomplexobj isrealobj", X)
_add("finfo", call=lambda f: f(np.float32).eps)
_add("iinfo", call=lambda f: f(np.int8).max)
if hasattr(np, "__array_namespace_info__"):  # NumPy 2.1
    _add("__array_namespace_info__", call=lambda f: len(f().dtypes()), traced=False)

# Fourier transforms
_add("fft.fft fft.ifft fft.hfft", X + 1j * Y, axis=0, norm="ortho")
_add("fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.irfft2 fft.irfftn", X + 1j * Y)
_add("fft.fft fft.rfft fft.ihfft fft.irfft", VECTOR, n=6)
_add("fft.irfft", VECTOR + 1j, n=7)
_add("fft.rfft2 fft.rfftn", STACK, axes=(0, 2))
_add("fft.fftshift fft.ifftshift", X)
_add("fft.fftfreq fft.rfftfreq", 0.5, call=lambda f, d: f(5, d), through=False)

# Linear algebra


def symmetric(function: Callable[..., Any], x: Any) -> Any:
    return function((x + np.matrix_transpose(x)) / 2)


_add("linalg.solve", SQUARE, X.T)
_add("linalg.inv linalg.det linalg.slogdet linalg.eigvals", STACK)
_add("linalg.inv linalg.det linalg.slogdet", SQUARE + 1j * floats(3, 3, seed=3))
_add("linalg.det", np.array([[1.0, 2.0], [2.0, 4.0]]))
_add("linalg.cholesky", SPD, call=symmetric)
_add("linalg.cholesky", SPD, call=lambda f, a: symmetric(lambda x: f(x, upper=True), a))
_add("linalg.eigvalsh", STACK)
_add("linalg.eigvalsh", STACK, UPLO="U")
_add("linalg.eigh", STACK, of=lambda r: (r[0], r[1] ** 2))
_add("linalg.eig", STACK, of=lambda r: (r[0], np.abs(r[1]) ** 2))
_add("linalg.svd", TALL, full_matrices=False, of=lambda r: (r[0] ** 2, r[1], r[2] ** 2))
_add("linalg.svd", WIDE, full_matrices=False, of=lambda r: (r[0] @ r[2], r[1]))
_add("linalg.svdvals", STACK)
_add("linalg.qr", TALL)
_add("linalg.qr", WIDE)
_add("linalg.qr", TALL + 1j * floats(4, 3, seed=5))
_add("linalg.pinv", TALL)
_add("linalg.pinv", WIDE + 1j * floats(2, 4, seed=4))
_add("linalg.lstsq", TALL, floats(4, 2), rcond=None)
_add("linalg.matrix_power", SQUARE, call=lambda f, x: f(x, 5))
_add("linalg.matrix_power", SQUARE, call=lambda f, x: f(x, -2))
_add("linalg.matrix_rank", np.stack([SQUARE, np.ones((3, 3))]))
_add("linalg.multi_dot", X, Y.T, WIDE, call=lambda f, *xs: f(xs))
_add("linalg.tensorinv", floats(6, 3, 2) + np.eye(6).reshape(6, 3, 2) * 3, ind=1)
_add("linalg.norm", X)
_add("linalg.norm", SQUARE, ord="nuc")
_add("linalg.norm", SQUARE, ord=2)
_add("linalg.norm", X, ord=3, axis=1)
_add("linalg.norm", np.zeros(3), orders=1, smooth=False)
_add("linalg.vector_norm", STACK, axis=(0, 2))
_add("linalg.matrix_norm", STACK * [1, 1.1, 1.3], ord=1)
_add("linalg.cond", SQUARE)
_add("linalg.trace linalg.diagonal linalg.matrix_transpose", STACK)
_add("linalg.outer linalg.vecdot", VECTOR, OTHER)
_add("linalg.cross linalg.vecdot", X, Y)
_add(
    "linalg.matmul linalg.tensordot",
    X,
    Y.T,
    call=lambda f, x, y: f(x, y, **({"axes": 1} if f.__name__ == "tensordot" else {})),
)

# Special functions
_special = {"through": False}
_add(
    "special.erf special.erfc special.ndtr special.log_ndtr special.expit special.log_expit",
    X,
    **_special,
)
_add("special.i0 special.i1 special.j0 special.j1", X, **_special)
_add("special.erfinv", UNIT, **_special)
_add("special.erfcinv", UNIT + 1, **_special)
_add("special.ndtri special.logit", (UNIT + 1) / 2, **_special)
_add("special.gamma special.gammaln special.digamma special.psi special.entr", POSITIVE, **_special)
_add("special.polygamma", POSITIVE, call=lambda f, x: f(1, x), **_special)
_add(
    "special.beta special.betaln special.rel_entr special.kl_div",
    POSITIVE,
    POSITIVE[::-1],
    **_special,
)
_add("special.xlogy special.xlog1py", X, POSITIVE, **_special)
_add("special.logsumexp special.softmax special.log_softmax", X, axis=1, **_special)

SAMPLES = tuple(_SAMPLES)
