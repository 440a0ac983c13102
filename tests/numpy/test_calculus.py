"""`wend.numpy.calculus` and `polynomials` beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.drawn import ALL, FLOATS, REAL, axes, check, drawn, few

MODES = st.sampled_from(["full", "same", "valid"])


@few
@given(x=drawn(ALL), axis=axes)
def test_cumprod(x: np.ndarray, axis: Any) -> None:
    check(lambda m, x: m.cumprod(x, axis), x)


@pytest.mark.skipif(not hasattr(np, "cumulative_sum"), reason="NumPy 2.0 has none to compare with")
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@few
@given(x=drawn(ALL), axis=axes, initial=st.booleans())
def test_cumulative(name: str, x: np.ndarray, axis: Any, initial: bool) -> None:
    check(lambda m, x: getattr(m, name)(x, axis=axis, include_initial=initial), x)


@few
@given(x=drawn(ALL, dims=(1, 3)), n=st.integers(0, 3), axis=st.integers(-3, 2))
def test_diff(x: np.ndarray, n: int, axis: int) -> None:
    check(lambda m, x: m.diff(x, n, axis), x)
    if x.dtype.kind == "f":
        check(lambda m, x: m.diff(x, axis=axis, prepend=1.0, append=x), x)


@few
@given(x=drawn(FLOATS))
def test_ediff1d(x: np.ndarray) -> None:
    check(lambda m, x: m.ediff1d(x, to_begin=1.0, to_end=[2.0, 3.0]), x)


@few
@given(x=drawn(FLOATS, dims=(1, 2), least=3), order=st.sampled_from([1, 2]), axis=axes)
def test_gradient(x: np.ndarray, order: int, axis: Any) -> None:
    check(lambda m, x: m.gradient(x, 0.5, edge_order=order, axis=axis), x)
    places = np.array([0.0, 0.3, 1.0])
    check(lambda m, x: m.gradient(x, *[places] * x.ndim, edge_order=order), x)


@few
@given(y=drawn(shape=(2, 3)), axis=st.sampled_from([0, 1, -1]))
def test_trapezoid(y: np.ndarray, axis: int) -> None:
    check(lambda m, y: m.trapezoid(y, dx=0.5, axis=axis), y)
    check(
        lambda m, y, x: m.trapezoid(y, x, axis=axis), y, np.array([0.0, 1.0, 4.0])[: y.shape[axis]]
    )


@few
@given(
    x=drawn(["f8", "i4", "c16"], shape=st.integers(1, 5)),
    y=drawn(["f8", "i4", "c16"], shape=st.integers(1, 5)),
    mode=MODES,
)
def test_convolve(x: np.ndarray, y: np.ndarray, mode: str) -> None:
    check(lambda m, x, y: m.convolve(x, y, mode), x, y)
    check(lambda m, x, y: m.correlate(x, y, mode), x, y)


@few
@given(p=drawn(REAL[:-1], shape=st.integers(1, 4)), x=drawn([*FLOATS, "i8"]))
def test_polynomials(p: np.ndarray, x: np.ndarray) -> None:
    check(lambda m, p, x: m.polyval(p, x), p, x)
    check(lambda m, p: m.polyadd(p, p[:1]), p)
    check(lambda m, p: m.polysub(p[:1], p), p)
    check(lambda m, p: m.polyder(p), p)
    check(lambda m, p: m.polyint(p, 2, [1.0, 2.0]), p)
