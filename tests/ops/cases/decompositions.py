"""Rows of `wend.ops.decompositions`. Eigenvectors of Hermitian matrices, of which one triangle is

read, are differentiated in tests/numpy/test_decompositions.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.helpers.cases import Case
from tests.helpers.samples import between
from tests.ops.cases.linalg import matrix, through_symmetric


def each(function: Any) -> Any:
    """A function of one matrix, on stacks."""

    def reference(a: Any, **attrs: Any) -> Any:
        places = list(np.ndindex(a.shape[:-2]))
        rows = [function(a[place], **attrs) for place in places]
        return tuple(
            np.reshape(np.array(part), a.shape[:-2] + part[0].shape)
            for part in zip(*rows, strict=True)
        )

    return reference


REAL = through_symmetric(matrix(3, 3)) + 0.1 * between(-1, 1, 3, 3, seed=5)

CASES = [
    *(
        Case(
            "eigh",
            each(lambda a, lower: scipy.linalg.eigh(a, lower=lower, driver="evd")),
            [(through_symmetric(matrix(3, 3)),), (through_symmetric(matrix(2, 2, 2)),)],
            [(matrix(3, 3),), (matrix(2, 2, 2),)],  # one triangle is read
            attrs={"lower": lower},
            exact=False,
        )
        for lower in (True, False)
    ),
    Case("eig", each(np.linalg.eig), [], [(matrix(3, 3) + 1j * matrix(3, 3, seed=4),)], wrt=())
    if False
    else Case(
        "eig",
        each(lambda a: tuple(x + 0j for x in np.linalg.eig(a))),
        [(matrix(3, 3),)],
        # Real eigenvalues: the phase of complex vectors is LAPACK's choice, and has no derivative.
        [(REAL,), (np.stack([REAL, REAL.T]),)],
        exact=False,
    ),
    *(
        Case(
            "svd",
            each(lambda a, full: scipy.linalg.svd(a, full_matrices=full, lapack_driver="gesdd")),
            [(between(-1, 1, 3, 2),)],
            [(between(-1, 1, *shape),)] if not full else [(matrix(3, 3),)],
            {"full": full},
            exact=False,
            symbolic=False,
        )
        for full in (False, True)
        for shape in ((4, 3), (2, 4), (3, 3), (2, 3, 2))
    ),
]
