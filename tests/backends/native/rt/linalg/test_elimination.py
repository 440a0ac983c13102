"""Small systems, factors and determinants by elimination."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.shares import sized

import wend
from wend.backends.native.rt.linalg import elimination

MAX = elimination.MAX_SIZE


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@given(
    size=st.integers(1, MAX + 2),
    stack=st.lists(st.integers(0, 3), max_size=2),
    dtype=st.sampled_from(["f4", "f8"]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=sized(15, 40))
def test_as_numpy(size: int, stack: list[int], dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Well-conditioned, with pivots anywhere
    q = np.linalg.qr(rng.standard_normal((*stack, size, size)))[0]
    a = (q * rng.uniform(1, 2, size)).astype(dtype)
    y = rng.standard_normal((*stack, size, 3)).astype(dtype)
    spd = (a @ np.swapaxes(a, -1, -2) + np.eye(size)).astype(dtype)
    tol = 200 * np.finfo(dtype).eps
    for function, args in (
        (np.linalg.solve, (a, y)),
        (np.linalg.cholesky, (spd,)),
        (np.linalg.det, (a,)),
        (np.linalg.slogdet, (a,)),
    ):
        run = wend.function(function, backend="native")
        found, expected = run(*args), function(*args)
        for x, right in zip(*map(parts, (found, expected)), strict=True):
            assert x.dtype == right.dtype
            np.testing.assert_allclose(x, right, rtol=tol, atol=tol)
        assert "runs in Python" not in str(run.explain())


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
def test_singular_matrices(size: int) -> None:
    a = np.ones((size, size)) * (size > 1)
    assert wend.function(np.linalg.det)(a) == np.linalg.det(a) == 0.0
    assert wend.function(np.linalg.slogdet)(a) == np.linalg.slogdet(a) == (0.0, -np.inf)
    for function, args in ((np.linalg.solve, (a, a)), (np.linalg.cholesky, (a - np.eye(size),))):
        with pytest.raises(np.linalg.LinAlgError):
            function(*args)
        with pytest.raises(np.linalg.LinAlgError):
            wend.function(function)(*args)


@pytest.mark.parametrize("pivots", [(1e200, 1e200, 1e-300), (1e-200, -1e-200, 1e300)])
def test_products_of_pivots_neither_overflow_nor_vanish(pivots: tuple[float, ...]) -> None:
    a = np.diag(pivots)
    np.testing.assert_allclose(wend.function(np.linalg.det)(a), np.linalg.det(a), rtol=1e-12)


def test_not_a_number_stays_one() -> None:
    a = np.array([[np.nan, 1.0], [2.0, 3.0]])
    assert np.isnan(wend.function(np.linalg.det)(a))
    assert np.isnan(wend.function(np.linalg.solve)(a, np.ones(2))).any()
