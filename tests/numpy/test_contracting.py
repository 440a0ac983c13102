"""`wend.numpy.contracting` beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend.numpy as wnp
from tests.helpers.samples import between
from tests.helpers.traced import DTYPES, arrays, check, slope

SHAPES = [(), (3,), (2,), (2, 3), (3, 2), (3, 3), (0, 3), (3, 0), (4, 2, 3), (1, 3, 2), (4, 3, 2)]
pairs = st.tuples(
    *(arrays(st.sampled_from(DTYPES), st.sampled_from(SHAPES), whole=True) for _ in range(2))
)


@pytest.mark.parametrize("name", ["matmul", "dot", "outer", "vdot", "vecdot"])
@given(xs=pairs)
def test_products(name: str, xs: Any) -> None:
    check(lambda m, x, y: getattr(m, name)(x, y), *xs, ulps=64, signs=False)


@given(xs=pairs)
def test_operator_and_method(xs: Any) -> None:
    check(lambda m, x, y: x @ y, *xs, ulps=64, signs=False)
    check(lambda m, x: x @ xs[1], xs[0], ulps=64, signs=False)
    check(lambda m, y: xs[0] @ y, xs[1], ulps=64, signs=False)
    check(lambda m, x, y: x.dot(y), *xs, ulps=64, signs=False)


@given(xs=pairs, axes=st.sampled_from([0, 1, 2, ([0], [0]), ([1], [0]), ((0, 1), (1, 0)), (0, 1)]))
def test_tensordot(xs: Any, axes: Any) -> None:
    if type(axes) is int and axes > min(x.ndim for x in xs):
        return  # NumPy's own error is an accident
    check(lambda m, x, y: m.tensordot(x, y, axes), *xs, ulps=64, signs=False)


@given(x=arrays(whole=True), y=st.sampled_from([2, 0.5, 1j, True]))
def test_products_with_a_python_scalar(x: np.ndarray, y: Any) -> None:
    check(lambda m, x: m.dot(x, y), x, ulps=64, signs=False)
    check(lambda m, x: m.outer(x, y), x, ulps=64, signs=False)
    check(lambda m, x: m.matmul(x, y), x, ulps=64, signs=False)


@pytest.mark.parametrize(
    ("function", "left", "right"),
    [
        (wnp.matmul, (2, 3), (3, 4)),
        (wnp.matmul, (3,), (3,)),
        (wnp.matmul, (2, 3), (5, 3, 2)),
        (wnp.matmul, (4, 1, 2, 3), (5, 3, 2)),
        (wnp.matmul, (2, 3), (3,)),
        (wnp.matmul, (3,), (5, 3, 2)),
        (wnp.dot, (2, 4, 3), (5, 3, 2)),
        (wnp.outer, (2, 2), (3,)),
        (wnp.vecdot, (2, 3), (3,)),
        (lambda x, y: wnp.tensordot(x, y, ((0, 2), (1, 0))), (2, 3, 4), (4, 2)),
    ],
)
def test_gradients(function: Any, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    slope(function, between(-1, 1, *left), between(-1, 1, *right, seed=1))
