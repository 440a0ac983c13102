"""NPBench's kernels compile with one decorator and give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from tests.helpers.graphs import names
from tests.programs.npbench import numerics, products, solvers
from tests.programs.npbench.catalogue import KERNELS
from tests.programs.npbench.checks import (
    check_gradient,
    check_something_happens,
    check_values,
)


def test_there_are_as_many_as_in_the_suite() -> None:
    assert len({str(kernel) for kernel in KERNELS}) == len(KERNELS) == 54


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [(kernel, dtype) for kernel in KERNELS for dtype in kernel.dtypes],
    ids=lambda part: str(part),
)
def test_values_and_updated_arguments(kernel, dtype) -> None:
    check_values(kernel, dtype)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_arguments_make_it_do_something(kernel) -> None:
    check_something_happens(kernel)


@pytest.mark.sampled
@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.smooth], ids=str)
def test_gradient(kernel) -> None:
    check_gradient(kernel)


def _many(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A matrix and a vector too great for a loop over them to be unrolled."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(70, 70))
    return root @ root.T + 70 * np.eye(70), rng.normal(size=70)


MATRIX, VECTOR = _many()
ROWS = np.sort(np.r_[0, np.random.default_rng(1).integers(0, 300, 98), 300])


@pytest.mark.parametrize(
    ("fun", "args", "count"),
    [
        (solvers.trisolv, (np.tril(MATRIX), np.zeros(70), VECTOR), 1),
        (solvers.lu, (MATRIX,), 3),
        (solvers.cholesky, (MATRIX,), 2),
        (solvers.durbin, (0.5 ** np.arange(1.0, 71.0),), 1),
        (products.syrk, (1.5, 1.2, MATRIX, VECTOR[:, None] * VECTOR), 2),
        (numerics.spmv, (ROWS, np.arange(300) % 70, np.arange(300.0), VECTOR), 1),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_triangular_slices_stay_in_loops(fun, args, count) -> None:
    """A slice whose bound is the loop's counter is cut when it runs: nothing is unrolled."""

    def fresh() -> list:
        return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]

    mine, theirs = fresh(), fresh()
    compiled = wend.function(fun)
    found, expected = compiled(*mine), fun(*theirs)
    if expected is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert names(compiled.get_concrete_function(*fresh()).graph).count("while") == count
