"""Functions of arrays of every dtype: NumPy's values, dtype, shape and class of error."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError, UnsupportedError

DTYPES = "bool int8 uint8 int32 int64 uint64 float16 float32 float64 complex64 complex128".split()
QS: list[Any] = [0.25, [0.0, 0.5], [[0.0, 1.0], [0.5, 0.25]], np.float32(0.5), 1]
TOLERANCES = {"e": 2e-2, "f": 2e-4, "F": 2e-4}

# (shapes of the operands, a call)
CALLS: dict[str, list[tuple[Any, Callable[..., Any]]]] = {
    "pinv": [
        ([(3, 3)], lambda a: np.linalg.pinv(a + a.T, hermitian=True)),
        ([(2, 3)], np.linalg.pinv),
    ],
    "einsum": [
        ([(3, 2), (2, 4)], lambda a, b: np.einsum("ij,jk", a, b)),
        ([(3, 3)], lambda a: np.einsum("ii->i", a)),
        ([(3,), (2,)], lambda a, b: np.einsum("i,j", a, b)),
        ([(3, 2), (2,)], lambda a, b: np.einsum("...j,j", a, b)),
    ],
    "repeat": [
        ([(3, 2)], lambda a: np.repeat(a, [1, 0, 2], axis=0)),
        ([(3,), (3,)], lambda a, n: np.repeat(a, abs(n).astype(np.int64))),
        ([(1,), (3,)], lambda a, n: np.repeat(a, abs(n).astype(np.int64))),
    ],
    "geomspace": [
        ([(), ()], lambda a, b: np.geomspace(abs(a) + 1, abs(b) + 2, 5)),
        ([(2,), ()], lambda a, b: np.geomspace(a + 5, b + 7, 3, endpoint=False)),
        ([(2,), ()], lambda a, b: np.logspace(a, b, 3)),
        ([(2,), (2,)], lambda a, b: np.linspace(a, b, 3, dtype=np.float32)),
    ],
    "quantile": [
        *(([(5,)], lambda a, q=q: np.quantile(a, q)) for q in QS),
        *(([(3, 2)], lambda a, q=q: np.quantile(a, q, axis=(0, 1), keepdims=True)) for q in QS),
        *(([(3, 2)], lambda a, q=q: np.nanquantile(a, q, axis=1)) for q in QS),
        *(([(5,)], lambda a, m=m: np.quantile(a, 0.3, method=m)) for m in ("lower", "hazen")),
    ],
    "polynomials": [
        ([(3,), (2,)], np.polyadd),
        ([(3,), (2,)], np.polyval),
        ([(3,), ()], np.polyval),
        ([(4,)], lambda a: np.polyder(a, 2)),
        ([(3,)], np.polyint),
    ],
    "sets": [
        ([(4,), (3,)], np.setdiff1d),
        ([(4,), (3,)], lambda a, b: np.setdiff1d(a, b, assume_unique=True)),
        ([(4,), (3,)], np.union1d),
        ([(4,), (3,)], np.intersect1d),
        ([(4,), (3,)], np.setxor1d),
    ],
    "cov": [
        ([(2, 4)], np.cov),
        ([(4,), (4,)], np.cov),
        ([(4, 2)], lambda a: np.cov(a, rowvar=False, bias=True)),
        ([(2, 3)], lambda a: np.cov(a, fweights=[1, 2, 1], aweights=[1.0, 2.0, 1.0])),
        ([(2, 4)], np.corrcoef),
    ],
    "lstsq": [
        *(([(4, 2), (4,)], lambda a, b, k=k: np.linalg.lstsq(a, b)[k]) for k in range(4)),
        *(([(2, 3), (2, 2)], lambda a, b, k=k: np.linalg.lstsq(a, b)[k]) for k in range(4)),
    ],
    "norm": [
        *(([(3,)], lambda a, o=o: np.linalg.norm(a, o)) for o in (None, 1, np.inf, 0, 3, -1)),
        *(([(0, 3)], lambda a, o=o: np.linalg.norm(a, o, axis=1)) for o in (None, 1, 0, 3)),
        *(([(2, 3)], lambda a, o=o: np.linalg.norm(a, o)) for o in ("fro", "nuc", 1, -2)),
    ],
    "interp": [
        ([(4,), (3,)], lambda x, f: np.interp(x, [-np.inf, 1.0, np.inf], f)),
        ([(4,)], lambda x: np.interp(x, [0.0, 1.0, 2.0], [1.0, np.inf, np.inf], left=-5)),
    ],
    "dtypes": [
        ([(3,)], lambda a: np.diag(a, 1)),
        ([(4,), (2,)], np.correlate),
        ([(2,), (4,)], lambda a, b: np.convolve(a, b, "same")),
        ([(5,)], lambda a: np.unwrap(a * 3, period=4)),
        ([(5,)], lambda a: np.unwrap(a * 3, discont=5.0)),
        ([(4,), (4,)], np.trapezoid),
        ([(5,)], lambda a: np.histogram(a.real, 3)[0]),
        ([(5,)], lambda a: np.histogram(a.real, 3)[1]),
    ],
}
CASES = [(name, k) for name, calls in CALLS.items() for k in range(len(calls))]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    kind = np.dtype(dtype).kind
    if kind in "biu":
        return rng.integers(0, 2 if kind == "b" else 5, shape).astype(dtype)
    real, imag = np.round(rng.normal(size=(2, *shape)) * 4) / 4
    return np.asarray(real + 1j * imag if kind == "c" else real).astype(dtype)


def outcome(fun: Callable[..., Any], operands: list[np.ndarray]) -> Any:
    try:
        return np.asarray(fun(*operands))
    except (ConcreteValueError, UnsupportedError):
        return None
    except Exception as error:
        return None if "before the run" in str(error) else error


@pytest.mark.sampled(40)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("name", "k"), CASES)
def test_values_dtypes_and_errors_are_numpys(name, k, backend):
    shapes, fun = CALLS[name][k]
    rng = np.random.default_rng(k)
    for dtype, is_known in itertools.product(DTYPES, [True, False]):
        operands = [numbers(rng, shape, dtype) for shape in shapes]
        signature = [wend.TensorSpec((None,) * len(shape), dtype) for shape in shapes]
        traced = wend.function(
            lambda *xs: fun(*xs),
            input_signature=None if is_known else signature,
            backend=backend,
        )
        found, reference = outcome(traced, operands), outcome(fun, operands)
        if found is None:
            continue  # refused in words
        if isinstance(reference, Exception) or isinstance(found, Exception):
            assert isinstance(found, type(reference)), (dtype, is_known, found, reference)
            continue
        assert (found.dtype, found.shape) == (reference.dtype, reference.shape), (dtype, is_known)
        tolerance = TOLERANCES.get(reference.dtype.char, 1e-8)
        np.testing.assert_allclose(found, reference, rtol=tolerance, atol=tolerance)
