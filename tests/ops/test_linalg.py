"""What the rows of `tests/ops/cases/linalg.py` leave: derivatives on symmetric matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.cases import assert_same, check_derivative, pull_back_graph, run, with_symbols
from tests.helpers.samples import between
from wend.ir import Graph, TensorType
from wend.ops import linalg
from wend.ops.build import Build


def cholesky_of_square(type: TensorType) -> Graph:
    """cholesky(x·xᵀ)."""
    b = Build("cholesky_of_square")
    x = b.param(type)
    return b.finish([b.emit(linalg.cholesky, b.matmul(x, b.matrix_transpose(x)))])


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (1, 1), (0, 2, 2)])
def test_derivatives_of_cholesky(shape: tuple[int, ...]) -> None:
    x = between(-0.4, 0.4, *shape) + np.eye(shape[-1])
    type = TensorType(x.dtype, x.shape)
    graph, unknown = cholesky_of_square(type), cholesky_of_square(with_symbols(type))
    check_derivative(graph, [x], tol=1e-6, orders=2)
    ct = np.ones_like(x)
    known, other = (run(pull_back_graph(g)[0], [x, ct]) for g in (graph, unknown))
    assert_same(other, known, exact=False)
