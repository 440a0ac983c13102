"""Rows of `wend.ops.linalg`."""

from typing import Any

import numpy as np
import scipy.linalg

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes


def stacked(function: Any) -> Any:
    """A function of matrices on stacks of them."""

    def reference(*xs: Any) -> Any:
        stack = xs[0].shape[:-2]
        out = [function(*(x[place] for x in xs)) for place in np.ndindex(stack)]
        return np.array(out).reshape(*stack, *xs[-1].shape[-2:])

    return reference


def matrix(*shape: int, seed: int = 0) -> np.ndarray:
    """One that is well-conditioned."""
    return between(-1, 1, *shape, seed=seed) + 2 * np.eye(shape[-1])


def through_symmetric(x: Any) -> Any:
    return x @ np.swapaxes(x, -1, -2)


def through_hermitian(x: Any) -> Any:
    return x @ x.conj().T


def factors_of(a: Any, of: str = "solve") -> Any:
    factors, exchanges = zip(
        *map(scipy.linalg.lu_factor, a.reshape(-1, *a.shape[-2:])), strict=True
    )
    transposed = np.swapaxes(np.reshape(factors, a.shape), -1, -2)
    return transposed, np.reshape(exchanges, a.shape[:-1]).astype(np.int32) + 1


def solution(factors: Any, exchanges: Any, y: Any, transposed: bool) -> Any:
    pair = np.swapaxes(factors, -1, -2), exchanges - 1
    return scipy.linalg.lu_solve(pair, y, trans=int(transposed))


OF = {"of": "solve"}
LOWER = np.tril(matrix(10, 10))
UPPER = LOWER.T.copy()
# A stack of a triangle, of another one and of neither, and its factors
MIXED = np.stack([LOWER, matrix(10, 10, seed=1), UPPER])
_FACTORED = factors_of(MIXED[1])
FACTORED = (
    np.stack([UPPER, _FACTORED[0], LOWER]),
    np.stack([np.zeros(10, np.int32), _FACTORED[1], np.full(10, -1, np.int32)]),
)
SKEW = np.triu(between(-1, 1, 3, 3, seed=6), 1)

CASES = [
    Case(
        "solve",
        stacked(lambda a, y: scipy.linalg.inv(a) @ y),
        [(matrix(2, 2).astype(np.float32), np.ones((2, 1), np.float32))],
        [
            (matrix(3, 3), between(-1, 1, 3, 2)),
            (matrix(2, 3, 3), between(-1, 1, 2, 3, 1)),
            (matrix(2, 2) + 1j * matrix(2, 2, seed=1), complexes(2, 2)),
            (matrix(1, 1), between(-1, 1, 1, 0)),
        ],
        exact=False,
    ),
    # The derivative of factors is that of the matrix: rows of "solve" check it
    Case(
        "lu_factor",
        factors_of,
        [
            (matrix(3, 3),),
            (matrix(2, 3, 3).astype(np.float32),),
            (matrix(2, 2) + 1j * matrix(2, 2, seed=1),),
        ],
        attrs=OF,
    ),
    Case("lu_factor", lambda a, of: (a.T, np.zeros(10, np.int32)), [(LOWER,)], attrs=OF),
    Case(
        "lu_factor", lambda a, of: (a.T, np.full(10, -1, np.int32)), [(LOWER.T.copy(),)], attrs=OF
    ),
    Case("lu_factor", lambda a, of: FACTORED, [(MIXED,)], attrs=OF),
    Case(
        "lu_solve",
        lambda factors, exchanges, y, transposed: np.linalg.solve(MIXED, y),
        [(*FACTORED, between(-1, 1, 3, 10, 2))],
        attrs={"transposed": False},
        exact=False,
    ),
    *(
        Case(
            "lu_solve",
            solution,
            [],
            [(*factors_of(matrix(3, 3)), between(-1, 1, 3, 2))],
            attrs={"transposed": transposed},
            exact=False,
            wrt=(2,),
        )
        for transposed in (False, True)
    ),
    Case(
        "lu_solve",
        lambda factors, exchanges, y, transposed: np.linalg.solve(LOWER, y),
        [(UPPER, np.zeros(10, np.int32), between(-1, 1, 10, 2))],
        attrs={"transposed": False},
        exact=False,
    ),
    Case(
        "cholesky",
        stacked(lambda a: scipy.linalg.cholesky(a, lower=True)),
        [(through_symmetric(matrix(3, 3)),), (through_symmetric(matrix(2, 2, 2)),)],
        [
            (through_symmetric(matrix(3, 3)) + SKEW,),  # the lower triangle is read
            (through_hermitian(matrix(3, 3) + 1j * matrix(3, 3, seed=1)) + 1j * SKEW,),
        ],
        exact=False,
    ),
    Case(
        "has_factors",
        lambda a, factors: np.bool_(scipy.linalg.svdvals(a).min() > 1e-9),
        [(matrix(3, 3),), (np.ones((2, 2)),), (np.zeros((1, 1)),)],
        attrs={"factors": "lu"},
    ),
    Case(
        "has_factors",
        lambda a, factors: np.bool_(np.linalg.eigvalsh(a).min() > 0),
        [(through_symmetric(matrix(3, 3)),), (-np.eye(2, dtype=np.float32),)],
        attrs={"factors": "cholesky"},
    ),
]
