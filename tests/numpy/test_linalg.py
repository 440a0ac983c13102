"""`wend.numpy.linalg` beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend.numpy as wnp
from tests.helpers.samples import between
from tests.helpers.traced import check, slope


def matrix(dtype: str, *shape: int) -> np.ndarray:
    return (3 * np.eye(shape[-1]) + between(-1, 1, *shape)).astype(dtype)


@given(
    dtypes=st.tuples(*[st.sampled_from(["f4", "f8", "i4", "?", "c8", "c16"])] * 2),
    stack=st.sampled_from([(), (2,), (1,), (0,)]),
    right=st.sampled_from([(3,), (3, 2), (2, 3, 1), (3, 0), (2,), ()]),
)
def test_solve(dtypes: tuple[str, str], stack: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = matrix(dtypes[0], *stack, 3, 3), between(-3, 3, *right).astype(dtypes[1])
    check(lambda m, a, b: m.linalg.solve(a, b), a, b, ulps=512)
    check(lambda m, a: m.linalg.solve(a, b), a, ulps=512)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("stack", [(), (2,), (0,)])
def test_cholesky(dtype: str, stack: tuple[int, ...]) -> None:
    a = matrix(dtype, *stack, 3, 3)
    check(lambda m, a: m.linalg.cholesky(a @ m.matrix_transpose(a)), a, ulps=512)


def test_what_is_no_square_matrix() -> None:
    for shape in ((3,), (2, 3), ()):
        a = np.ones(shape)
        check(lambda m, a: m.linalg.solve(a, np.ones(3)), a)
        check(lambda m, a: m.linalg.cholesky(a), a)
    check(lambda m, a: m.linalg.cholesky(-a), np.eye(2))
    check(lambda m, a: m.linalg.solve(a, np.ones(2)), np.zeros((2, 2)))


@pytest.mark.parametrize("right", [(3,), (3, 2), (2, 3, 1)])
def test_gradients(right: tuple[int, ...]) -> None:
    a, b = matrix("f8", 3, 3), between(-1, 1, *right)
    slope(wnp.linalg.solve, a, b)
    slope(lambda a: wnp.linalg.cholesky(a @ a.T), a)


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_cross_products_of_short_vectors(sizes: tuple[int, int], shape: tuple[int, ...]) -> None:
    x, y = between(-1, 1, *shape, sizes[0]), between(-1, 1, sizes[1])
    check(lambda m, x, y: m.cross(x, y), x, y)
    slope(lambda x: wnp.cross(x, y), x)
    slope(lambda y: wnp.cross(x, y), y)
