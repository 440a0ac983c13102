"""Random calls of `numpy.linalg` and `numpy.fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numpy.oracle.comparing import Call
from tests.numpy.oracle.drawing import Draw
from tests.numpy.oracle.makers import MATRICES, SQUARES, Maker, call, on, on_two


def _reach(name: str) -> Callable[..., Any]:
    module: Any = np
    for part in name.split("."):
        module = getattr(module, part)
    return module  # type: ignore[no-any-return]


def _regular(name: str, *, symmetric: bool = False, **options: Any) -> Maker:
    """A function of matrices that are far from singular, or symmetric and positive."""

    def make(draw: Draw) -> Call:
        x = draw.array("biufc", SQUARES, extreme=0)
        keywords = {key: draw.choice(values) for key, values in options.items() if draw.flip()}

        def run(x: Any) -> Any:
            if x.shape[-1] == x.shape[-2]:
                big = np.eye(x.shape[-1]).astype(x.dtype) * np.array(99, x.dtype)
                x = np.tril(np.real(x)) + big if symmetric else x + big
            return _reach(name)(x, **keywords)

        return Call(name, run, (x,), keywords)

    return make


def _values(name: str, shapes: Any = SQUARES, **options: Any) -> Maker:
    """Numbers that belong to a matrix, in the order of their size."""

    def make(draw: Draw) -> Call:
        x = draw.array("biufc", shapes, extreme=0)
        keywords = {key: draw.choice(values) for key, values in options.items() if draw.flip()}

        def run(x: Any) -> Any:
            if name.endswith("eigvals"):  # complex always, in captured code
                values = _reach(name)(x)
                is_single = values.dtype in (np.float32, np.complex64)
                values = values.astype(np.complex64 if is_single else np.complex128)
                return [np.sum(values, axis=-1), np.sum(values * values, axis=-1)]
            return _reach(name)(x, **keywords)

        return Call(name, run, (x,), keywords)

    return make


def _products(name: str) -> Maker:
    """A decomposition, multiplied: signs and rotations of vectors are left to LAPACK."""

    def make(draw: Draw) -> Call:
        x = draw.array("biufc", MATRICES if name in ("qr", "svd") else SQUARES, extreme=0)
        return Call(f"linalg.{name}", _PRODUCTS[name], (x,))

    return make


def _eig(x: Any) -> Any:
    values, vectors = np.linalg.eig(x)
    return np.abs(x @ vectors - vectors * values[..., None, :]) < 0.1 * np.abs(x).max(initial=1)


def _eigh(x: Any) -> Any:
    values, vectors = np.linalg.eigh(x)
    return [values, (vectors * values[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))]


def _svd(x: Any) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return [s, (u * s[..., None, :]) @ vh]


def _qr(x: Any) -> Any:
    q, r = np.linalg.qr(x)
    return [q @ r, np.abs(r)]


_PRODUCTS: dict[str, Callable[[Any], Any]] = {"eig": _eig, "eigh": _eigh, "svd": _svd, "qr": _qr}


def _transform(name: str) -> Maker:
    rank = 1 if name[-1] not in "2n" else 2

    def make(draw: Draw) -> Call:
        kinds = "biuf" if name.startswith(("rfft", "ihfft")) else "biufc"
        # NumPy reads uninitialized memory where there are no elements.
        x = draw.array(kinds, [(4,), (3,), (2, 3), (3, 4), (1,)], extreme=0.1 * (rank == 1))
        options = draw.maybe(0.4, norm=draw.choice(["ortho", "forward", "backward", "none"]))
        if rank == 1:
            options |= draw.maybe(0.4, n=draw.choice([1, 2, 5, 0]))
            options |= draw.maybe(0.4, axis=draw.axis(x.ndim, none=False))
        else:
            options |= draw.maybe(0.4, axes=draw.choice([(0,), (-1, 0), (0, 1)]))
        return call(f"fft.{name}", x, **options)

    return make


def _shift(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        x = draw.array("biufc", [(4,), (3,), (2, 3), (0,)])
        return call(f"fft.{name}", x, **draw.maybe(0.5, axes=draw.choice([None, 0, -1, (0,)])))

    return make


def _frequencies(name: str) -> Maker:
    def make(draw: Draw) -> Call:
        n = draw.choice([1, 2, 5])
        run = lambda d: _reach(f"fft.{name}")(n, d)  # noqa: E731
        return Call(f"fft.{name}", run, (draw.choice([1.0, 0.5, 2.0]),), {"n": n})

    return make


def _power(draw: Draw) -> Call:
    x = draw.array("biufc", SQUARES, extreme=0)
    return call("linalg.matrix_power", x, n=draw.choice([0, 1, 2, 3, 5]))


def _chain(draw: Draw) -> Call:
    xs = [draw.array("iufc", [shape], extreme=0) for shape in ((2, 3), (3, 3), (3, 2))]
    return Call("linalg.multi_dot", lambda *xs: np.linalg.multi_dot(xs), tuple(xs))


def _tensorinv(draw: Draw) -> Call:
    x = draw.array("iufc", [(2, 2, 4), (4, 2, 2)], extreme=0)
    eye = np.eye(4).reshape(x.shape) * 99
    ind = 2 if x.shape[0] == 2 else 1
    run = lambda x: np.linalg.tensorinv(x + eye.astype(x.dtype), ind)  # noqa: E731
    return Call("linalg.tensorinv", run, (x,), {"ind": ind})


def _vector_norm(draw: Draw) -> Call:
    x = draw.array("biufc", [(3,), (2, 3), (0,), (1, 3)], extreme=0)
    options = draw.maybe(0.6, ord=draw.choice([1, 2, 3, 0, np.inf, -np.inf, 0.5]))
    options |= draw.maybe(0.5, axis=draw.axis(x.ndim)) | draw.maybe(0.3, keepdims=True)
    return call("linalg.vector_norm", x, **options)


def _product(name: str, left: Any, right: Any) -> Maker:
    def make(draw: Draw) -> Call:
        return call(name, draw.array("biufc", left), draw.array("biufc", right))

    return make


_ORDERS = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, 3]
_THREE = [(3,), (2, 3), (1, 3), (2,)]
MAKERS: dict[str, Maker] = {
    "linalg.cholesky": _regular("linalg.cholesky", symmetric=True, upper=[True, False]),
    "linalg.inv": _regular("linalg.inv"),
    "linalg.cond": _regular("linalg.cond", p=[None, 1, 2, -2, "fro", np.inf]),
    "linalg.eigvals": _values("linalg.eigvals"),
    "linalg.eigvalsh": _values("linalg.eigvalsh", UPLO=["L", "U"]),
    "linalg.svdvals": _values("linalg.svdvals", MATRICES),
    **{f"linalg.{name}": _products(name) for name in _PRODUCTS},
    "linalg.matrix_norm": on(
        "linalg.matrix_norm", shapes=MATRICES, ord=_ORDERS, keepdims=[True, False]
    ),
    "linalg.vector_norm": _vector_norm,
    "linalg.matrix_power": _power,
    "linalg.multi_dot": _chain,
    "linalg.tensorinv": _tensorinv,
    **{f"linalg.{n}": on(f"linalg.{n}", shapes=MATRICES) for n in ("diagonal", "trace")},
    "linalg.matrix_transpose": on("linalg.matrix_transpose"),
    "linalg.cross": on_two("linalg.cross", shapes=_THREE),
    **{
        f"linalg.{n}": on_two(f"linalg.{n}", kinds="biufc", shapes=[(3,), (2, 3), (3, 3), (3, 2)])
        for n in ("matmul", "outer", "tensordot", "vecdot")
    },
    "matvec": _product("matvec", [(2, 3), (2, 2, 3), (3, 3)], [(3,), (2, 3), (2,)]),
    "vecmat": _product("vecmat", [(3,), (2, 3), (2,)], [(3, 2), (2, 3, 2), (3, 3)]),
    **{
        f"fft.{name}": _transform(name)
        for name in "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn"
        " irfftn".split()
    },
    **{f"fft.{name}": _shift(name) for name in ("fftshift", "ifftshift")},
    **{f"fft.{name}": _frequencies(name) for name in ("fftfreq", "rfftfreq")},
}
