"""Random calls of every function of the namespace."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import scipy.special

import wend.numpy as wnp
from tests.numpy.oracle.comparing import Call, expected
from tests.numpy.oracle.drawing import DTYPES, Draw
from tests.numpy.oracle.makers import (
    FILLED,
    SQUARES,
    VECTORS,
    Maker,
    call,
    elementwise,
    on,
    on_axis,
    on_two,
)
from tests.numpy.oracle.matrix_calls import MAKERS as OF_MATRICES
from tests.numpy.oracle.shape_calls import MAKERS as OF_SHAPES

REDUCED = "add multiply maximum minimum logical_and logical_or logical_xor fmax fmin hypot gcd lcm"
REDUCED += " logaddexp logaddexp2 bitwise_and bitwise_or bitwise_xor"


def _ufunc_method(name: str, method: str) -> Maker:
    def make(draw: Draw) -> Call:
        x = draw.array()
        options: dict[str, Any] = {}
        if method != "outer":
            options |= draw.maybe(0.6, axis=draw.axis(x.ndim, none=True, pairs=True))
            if name != "lcm":  # which is not associative where it overflows
                options |= draw.maybe(0.2, dtype=draw.choice(DTYPES))
        if method == "reduce":
            options |= draw.maybe(0.3, keepdims=True)
        run = functools.partial(getattr(getattr(np, name), method), **options)
        operands = (x, draw.array()) if method == "outer" else (x,)
        return Call(f"{name}.{method}", run, operands, options)

    return make


def _special(name: str, arity: int = 1) -> Maker:
    original, ours = getattr(scipy.special, name), getattr(wnp.special, name)

    def make(draw: Draw) -> Call:
        shape = draw.choice(FILLED)
        xs = [draw.array("biuf", [shape], extreme=0.3) for _ in range(arity)]
        return Call(f"special.{name}", ours, tuple(xs), {}, False, original)

    return make


def _special_axis(name: str) -> Maker:
    original, ours = getattr(scipy.special, name), getattr(wnp.special, name)

    def make(draw: Draw) -> Call:
        x = draw.array("biuf", FILLED)
        axes = [None, *range(-x.ndim, x.ndim)]
        options = draw.maybe(0.7, axis=draw.choice(axes))
        run, like = (functools.partial(f, **options) for f in (ours, original))
        return Call(f"special.{name}", run, (x,), options, False, like)

    return make


def _polygamma(draw: Draw) -> Call:
    order, x = draw.choice([0, 1, 2, 3]), draw.array("biuf", FILLED, extreme=0.3)
    run, like = (functools.partial(m.polygamma, order) for m in (wnp.special, scipy.special))
    return Call("special.polygamma", run, (x,), {"n": order}, False, like)


def _quantile(name: str) -> Maker:
    scale = 100 if "percentile" in name else 1

    def make(draw: Draw) -> Call:
        x = draw.array("biufc", FILLED)
        q = draw.choice([0.3, 0, 1, [0.2, 0.9], [[0.3]], [0, 1], np.float32(0.25), [], True])
        if not isinstance(q, (list, bool)):
            q = q * scale
        options = draw.maybe(0.6, axis=draw.axis(x.ndim, pairs=True))
        options |= draw.maybe(0.3, keepdims=True)
        methods = "linear lower higher nearest midpoint hazen weibull median_unbiased".split()
        options |= draw.maybe(0.3, method=draw.choice(methods))
        operands = (x, np.array(q) if isinstance(q, list) else q)
        return call(name, *operands, **options)

    return make


def _spaced(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        ends = [
            draw.scalar("iufc") if draw.flip(0.7) else draw.array("iufc", [(), (2,), (3,), (1,)])
            for _ in range(2)
        ]
        options = draw.maybe(0.4, num=draw.choice([0, 1, 2, 3, 5]), endpoint=False)
        options |= draw.maybe(0.2, dtype=draw.choice(["i4", "f4", "c8"]))
        return call(name, *ends, **options)

    return make


def _norm(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (0,), (2, 3), (3, 3), (1,), (2, 2, 2), (0, 3)])
    options = draw.maybe(0.7, ord=draw.choice([None, 1, -1, 2, -2, 0, 3, np.inf, -np.inf, "fro"]))
    options |= draw.maybe(0.4, axis=draw.axis(x.ndim, pairs=True)) | draw.maybe(0.3, keepdims=True)
    return call("linalg.norm", x, **options)


def _correlated(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        x = draw.array("biufc", [(3,), (2, 3), (1, 3), (3, 1), (3, 0), ()])
        options: dict[str, Any] = draw.maybe(0.3, rowvar=False)
        if name == "cov":
            options |= draw.maybe(0.3, bias=True) | draw.maybe(0.2, ddof=draw.choice([0, 1, 2]))
        options |= draw.maybe(0.2, dtype=draw.choice(["f4", "f8", "c16"]))
        return call(name, x, **options)

    return make


def _interp(draw: Draw) -> Call:
    knots = np.cumsum(np.abs(draw.array("f", [(3,)], extreme=0)) + 0.1)
    x = draw.array("biuf", FILLED)
    return call("interp", x, knots, draw.array("biufc", [(3,)]))


def _einsum(draw: Draw) -> Call:
    subscripts = draw.choice(
        ["ii->i", "ii", "ij->ji", "ij->", "i...->...", "iij->j", "ij,jk->ik", "ij,ij->", "i,j->ij"]
    )
    inputs = subscripts.split("->")[0].split(",")
    arrays = [draw.array("biufc", [(3, 3, 2)[: max(len(t.strip(".")), 1)], (2, 3)]) for t in inputs]
    run = functools.partial(np.einsum, subscripts)
    return Call(f"einsum {subscripts}", run, tuple(arrays))


def _repeat(draw: Draw) -> Call:
    x = draw.array("biufc", FILLED)
    axis = draw.axis(x.ndim)
    repeats = draw.choice([2, 0, 1, [1, 2, 0], [2], [1, 1]])
    return call("repeat", x, repeats=repeats, axis=axis)


def _take(draw: Draw) -> Call:
    x = draw.array("biufc", FILLED)
    k = draw.array("iu", [(), (2,), (2, 2), (0,)], extreme=0) % 2
    options = draw.maybe(0.6, axis=draw.axis(x.ndim))
    options |= draw.maybe(0.3, mode=draw.choice(["clip", "wrap"]))
    return call("take", x, k, **options)


def _joined(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        shape = draw.choice(FILLED)
        arrays = tuple(draw.array("biufc", [shape]) for _ in range(draw.choice((1, 2, 3))))
        axis = draw.axis(len(shape), none=name == "concatenate")
        options = {"axis": axis} if name in ("concatenate", "stack") and draw.flip(0.6) else {}
        return Call(name, lambda *xs: getattr(np, name)(xs, **options), arrays, options)

    return make


def _clip(draw: Draw) -> Call:
    x = draw.array("biuf", FILLED)
    ends = [draw.choice([None, draw.scalar("iuf"), draw.array("iuf", [(), (1,)])]) for _ in "ab"]
    literal = [e for e in ends if e is None or isinstance(e, (int, float))]
    if len(literal) == 2:
        return call("clip", x, a_min=ends[0], a_max=ends[1], exact=True)
    operands = tuple(e for e in ends if e is not None)
    if len(operands) == 2:
        return call("clip", x, *operands, exact=True)
    name = "a_min" if ends[0] is not None else "a_max"
    other = "a_max" if name == "a_min" else "a_min"
    return Call("clip", lambda x, e: np.clip(x, **{name: e, other: None}), (x, *operands))


def _where(draw: Draw) -> Call:
    shape = draw.choice(FILLED)
    x, y = (draw.array("biufc", [shape]) if draw.flip(0.7) else draw.scalar() for _ in "xy")
    return call("where", draw.array("biufc", [shape]), x, y, exact=True)


def _average(draw: Draw) -> Call:
    x = draw.array("biufc", FILLED)
    weights = draw.array("iuf", [x.shape], extreme=0)
    options = draw.maybe(0.6, axis=draw.axis(x.ndim, pairs=True))
    options |= draw.maybe(0.2, returned=True) | draw.maybe(0.3, keepdims=True)
    if draw.flip(0.4):
        return call("average", x, **options)
    return Call(
        "average",
        lambda x, w: np.average(x, weights=np.abs(w) + 1, **options),
        (x, weights),
        options,
    )


def _argsort(draw: Draw) -> Call:
    x = draw.array()
    return call("argsort", x, axis=draw.axis(x.ndim), stable=True)


def _solve(draw: Draw) -> Call:
    a = draw.array("biufc", SQUARES, extreme=0)
    b = draw.array("biufc", [a.shape[-1:], (*a.shape[-1:], 2)], extreme=0)
    run = lambda a, b: np.linalg.solve(a + 20 * np.eye(a.shape[-1]).astype(a.dtype), b)  # noqa: E731
    return Call("linalg.solve", run, (a, b))


def _searchsorted(draw: Draw) -> Call:
    x, v = draw.array("biuf", VECTORS), draw.array("biuf", FILLED)
    return call("searchsorted", np.sort(x), v, **draw.maybe(0.5, side="right"))


def _polyfit(draw: Draw) -> Call:
    y = draw.array("iuf", [(5,), (6,), (5, 2)], extreme=0)
    x, degree = np.linspace(-1.0, 2.0, len(y)), draw.choice([0, 1, 2])
    return Call("polyfit", lambda x, y: np.polyfit(x, y, degree), (x, y))


def _poly(draw: Draw) -> Call:
    return call("poly", draw.array("iuf", [(0,), (1,), (3,), (4,)], extreme=0))


def _trapezoid(draw: Draw) -> Call:
    y = draw.array("biufc")
    options = draw.maybe(0.6, axis=draw.axis(y.ndim, none=False))
    options |= draw.maybe(0.4, dx=draw.choice([2, 0.5]))
    return call("trapezoid", y, **options)


_BOOLS = [True, False]
_DTYPES = [None, "i4", "i8", "f4", "f8", "c16", "?", int, float]
_MANY = {"pairs": True, "keepdims": _BOOLS}
_INITIAL = {"initial": [0, 1, 2.5, -3, np.float32(7), np.inf]}
_ELEMENTWISE = [
    name
    for name in vars(wnp)
    if isinstance(getattr(np, name, None), np.ufunc)
    and name not in ("matmul", "matvec", "vecmat", "vecdot")
]
_FLAT = "iscomplex isreal isposinf isneginf real imag fix sinc angle nan_to_num ravel transpose"
_FLAT += " squeeze atleast_1d atleast_2d atleast_3d fliplr flipud rot90 iscomplexobj isrealobj"
_FLAT += " zeros_like ones_like copy nonzero argwhere flatnonzero diag diagflat tril triu diagonal"
_FLAT += " trace unique ediff1d matrix_transpose permute_dims count_nonzero shape size ndim"

MAKERS: dict[str, Maker] = {
    **{name: elementwise(getattr(np, name)) for name in _ELEMENTWISE},
    **{f"{n}.{m}": _ufunc_method(n, m) for n in REDUCED.split() for m in ("reduce", "accumulate")},
    **{f"{n}.outer": _ufunc_method(n, "outer") for n in "add subtract power hypot".split()},
    **{name: on(name) for name in _FLAT.split()},
    **{
        n: on_axis(n, **_MANY, masked=True, dtype=_DTYPES, **_INITIAL)
        for n in "sum prod nansum nanprod".split()
    },
    **{n: on_axis(n, **_MANY, masked=True, dtype=_DTYPES) for n in ("mean", "nanmean")},
    **{
        n: on_axis(n, **_MANY, masked=True, dtype=_DTYPES, ddof=[0, 1, 2, 0.5])
        for n in "var std nanvar nanstd".split()
    },
    **{n: on_axis(n, **_MANY, masked=True, **_INITIAL) for n in "max min nanmax nanmin".split()},
    **{n: on_axis(n, **_MANY, masked=True) for n in ("any", "all")},
    **{n: on_axis(n, **_MANY) for n in "ptp median nanmedian".split()},
    **{n: on_axis(n, keepdims=_BOOLS) for n in "argmax argmin nanargmax nanargmin".split()},
    **{n: on_axis(n, dtype=_DTYPES) for n in "cumsum cumprod nancumsum nancumprod".split()},
    **{
        n: on_axis(n, none=False, dtype=_DTYPES, include_initial=_BOOLS)
        for n in "cumulative_sum cumulative_prod".split()
    },
    **{n: on_axis(n) for n in "sort flip".split()},
    "argsort": _argsort,
    "diff": on_axis("diff", none=False, n=[0, 1, 2, 5]),
    "gradient": on_axis("gradient"),
    "unwrap": on_axis("unwrap", "iuf", none=False, period=[2, 3, 4.5, 7]),
    "roll": on_axis("roll", shift=[1]),
    "trapezoid": _trapezoid,
    "expand_dims": on_axis("expand_dims", none=False),
    "round": on("round", decimals=[0, 1, -1, 3]),
    "vander": on("vander", shapes=VECTORS, N=[0, 2, 3], increasing=_BOOLS),
    **{n: _quantile(n) for n in "quantile percentile nanquantile nanpercentile".split()},
    **{n: _spaced(n) for n in "linspace logspace geomspace".split()},
    **{n: _correlated(n) for n in ("cov", "corrcoef")},
    "average": _average,
    "clip": _clip,
    "where": _where,
    "interp": _interp,
    "einsum": _einsum,
    "repeat": _repeat,
    "take": _take,
    "tile": on("tile", reps=[2, (1, 2), (2, 1, 2), 0]),
    **{n: _joined(n) for n in "concatenate stack hstack vstack dstack column_stack".split()},
    **{
        n: on_two(n)
        for n in "dot inner outer kron vdot matmul vecdot append isclose allclose array_equal"
        " array_equiv cross tensordot".split()
    },
    **{
        n: on_two(n, shapes=VECTORS, mode=["full", "same", "valid"])
        for n in ("convolve", "correlate")
    },
    **{n: on_two(n, shapes=VECTORS) for n in "polyadd polysub polymul polyval".split()},
    **{n: on_two(n, shapes=VECTORS) for n in "setdiff1d union1d intersect1d setxor1d isin".split()},
    "searchsorted": _searchsorted,
    "polyder": on("polyder", shapes=VECTORS, m=[1, 2]),
    "polyint": on("polyint", shapes=VECTORS, m=[1, 2]),
    "polyfit": _polyfit,
    "poly": _poly,
    "linalg.norm": _norm,
    "linalg.solve": _solve,
    **{f"linalg.{n}": on(f"linalg.{n}", shapes=SQUARES) for n in "det slogdet".split()},
    "linalg.pinv": on("linalg.pinv", shapes=SQUARES, hermitian=_BOOLS),
    "linalg.matrix_rank": on("linalg.matrix_rank", shapes=SQUARES, hermitian=_BOOLS),
    "linalg.lstsq": on_two("linalg.lstsq", shapes=((3, 2), (3, 3), (2, 3)), rcond=[0.1, 0.5]),
    **{
        f"special.{n}": _special(n)
        for n in "erf erfc ndtr log_ndtr gammaln digamma i0 i1 j0 j1 expit logit log_expit entr"
        " erfinv ndtri gamma".split()
    },
    **{f"special.{n}": _special(n, 2) for n in "beta betaln xlogy xlog1py rel_entr kl_div".split()},
    **{f"special.{n}": _special_axis(n) for n in "softmax log_softmax logsumexp".split()},
    "logsumexp": _special_axis("logsumexp"),
    "special.erfcinv": _special("erfcinv"),
    "special.psi": _special("psi"),
    "special.polygamma": _polygamma,
    **OF_SHAPES,
    **OF_MATRICES,
}


def make_call(seed: int, name: str | None = None) -> Call:
    """The call of a seed: of the function of that name, or of each in turn."""
    names = [*MAKERS]
    draw = Draw(seed)
    call = MAKERS[name or names[seed % len(names)]](draw)
    takes_out = isinstance(call.run, functools.partial) and _takes_out(call.run.func)
    # NumPy's ifft2 leaves it as it is, and others refuse it where an axis comes twice.
    takes_out &= call.name != "fft.ifft2" and "axes" not in call.keywords
    takes_out &= call.name not in ("round", "around")  # of integers by tens, NumPy's refuses it
    takes_out &= call.name not in _SPREADS or "dtype" not in call.keywords
    return _with_out(draw, call) if takes_out and draw.flip(0.2) else call


_SPREADS = {"mean", "nanmean", "var", "std", "nanvar", "nanstd"}  # NumPy divides in `out=`
_SUMS = set("sum prod mean nansum nanprod nanmean cumsum cumprod nancumsum nancumprod".split())


@functools.cache
def _takes_out(function: Any) -> bool:
    try:
        return "out" in inspect.signature(function).parameters
    except ValueError:  # a function in C, which has no signature
        return False


def _with_out(draw: Draw, call: Call) -> Call:
    """The call that writes into an array, mostly of the right dtype and shape."""
    outcome = expected(call)
    if isinstance(outcome, Exception) or len(outcome) != 1:
        return call
    shape, dtype = np.shape(outcome[0]), np.asarray(outcome[0]).dtype
    if call.name in _SUMS:  # those of others are as the page says
        others = [np.dtype(t) for t in DTYPES]
        dtype = draw.choice([t for t in others if np.can_cast(dtype, t, "same_kind")])
    # NumPy's accumulate writes beyond an array without axes; the others here broadcast.
    fits = call.name.endswith((".accumulate", "matmul", "vecdot", "matvec", "vecmat"))
    fits |= call.name.startswith(("nan", "cum"))
    is_fit = "keepdims" in call.keywords or fits or draw.flip(0.9)
    out = draw.array(dtype=dtype, shapes=[shape] if is_fit else [(3,), ()])

    def into(out: Any, *xs: Any) -> Any:
        out = out.copy()
        return [call.run(*xs, out=out), out]

    operands, keywords = (out, *call.operands), call.keywords | {"out": dtype}
    return Call(call.name, into, operands, keywords, call.exact)
