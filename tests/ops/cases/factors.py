"""Rows of `wend.ops.factors`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.helpers.cases import Case
from tests.helpers.samples import between
from tests.ops.cases.decompositions import each
from tests.ops.cases.linalg import matrix

COMPLEX = matrix(3, 3) + 1j * between(-1, 1, 3, 3, seed=3)
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def one(function: Any) -> Any:
    """A function with one result, on stacks."""
    run = each(lambda a, **attrs: (np.asarray(function(a, **attrs)),))
    return lambda a, **attrs: run(a, **attrs)[0]


def minors(a: Any) -> Any:
    """Cofactors by their definition."""
    size = len(a)
    out = np.empty_like(a)
    for i, j in np.ndindex(size, size):
        minor = np.delete(np.delete(a, i, 0), j, 1)
        out[i, j] = (-1) ** (i + j) * scipy.linalg.det(minor)
    return out


def sign_and_log(a: Any) -> Any:
    det = np.asarray(scipy.linalg.det(a))
    return det / np.abs(det), np.log(np.abs(det))


CASES = [
    Case(
        "det",
        one(scipy.linalg.det),
        [],
        [(matrix(3, 3),), (matrix(2, 3, 3),), (COMPLEX,)],
        exact=False,
    ),
    Case("det", one(scipy.linalg.det), [], [(SINGULAR,), (0 * SINGULAR,)], exact=False, orders=3),
    Case(
        "det_gradient",
        one(minors),
        [(SINGULAR,)],
        [(matrix(3, 3),), (matrix(2, 2, 2),), (COMPLEX,), (SINGULAR,)],
        exact=False,
    ),
    # Minors of two rows are linear.
    Case("det_gradient", lambda a, x: one(minors)(x), [], [(SINGULAR, matrix(2, 2))], exact=False),
    Case(
        "slogdet",
        each(sign_and_log),
        [],
        [(matrix(3, 3),), (matrix(2, 3, 3),), (COMPLEX,)],
        exact=False,
    ),
    Case(
        "pinv",
        one(lambda a, rtol: scipy.linalg.pinv(a)),
        [],
        [(between(-1, 1, 4, 3),), (between(-1, 1, 2, 2, 3),), (COMPLEX[:2],)],
        {"rtol": None},
        exact=False,
        symbolic=False,
    ),
    *(
        Case(
            "qr",
            each(lambda a, complete: np.linalg.qr(a, "complete" if complete else "reduced")),
            [(between(-1, 1, 3, 2),)],
            [(matrix(3, 3),), (COMPLEX,)]
            if complete
            else [(between(-1, 1, 4, 3),), (between(-1, 1, 2, 2, 4),), (COMPLEX,)],
            {"complete": complete},
            exact=False,
            symbolic=False,
        )
        for complete in (False, True)
    ),
]
