"""Rows of `wend.ops.contracting`."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes


def by_einsum(x: Any, y: Any, contract: Any, batch: Any) -> Any:
    letters = iter(string.ascii_letters)
    mine = [next(letters) for _ in range(x.ndim)]
    theirs = [next(letters) for _ in range(y.ndim)]
    for a, b in zip(contract[0] + batch[0], contract[1] + batch[1], strict=True):
        theirs[b] = mine[a]
    shared = [mine[k] for k in batch[0]]
    out = shared + [m for m in mine if m not in theirs] + [t for t in theirs if t not in mine]
    return np.einsum(f"{''.join(mine)},{''.join(theirs)}->{''.join(out)}", x, y).astype(x.dtype)


CASES = [
    Case(
        "dot_general",
        by_einsum,
        [(np.ones(x, dtype), np.ones(y, dtype)) for dtype in ("i1", "u4", "f4", "c8", "f2")],
        [
            (between(-1, 1, *x), between(-1, 1, *y, seed=1)),
            (complexes(*x), complexes(*y, seed=2)),
        ],
        {"contract": contract, "batch": batch},
        exact=False,
    )
    for x, y, contract, batch in (
        ((3,), (3,), ((0,), (0,)), ((), ())),
        ((2, 3), (3, 4), ((1,), (0,)), ((), ())),
        ((2, 3), (4, 3), ((1,), (1,)), ((), ())),
        ((2,), (3,), ((), ()), ((), ())),
        ((2, 3), (2, 3), ((0, 1), (0, 1)), ((), ())),
        ((2, 3), (3, 2), ((0, 1), (1, 0)), ((), ())),
        ((5, 2, 3), (5, 3, 4), ((2,), (1,)), ((0,), (0,))),
        ((2, 5, 3, 6), (6, 5, 3, 4), ((2,), (2,)), ((3, 1), (0, 1))),
        ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
        ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
        ((0, 2), (2, 3), ((1,), (0,)), ((), ())),
        ((), (2,), ((), ()), ((), ())),
    )
]


def by_definition(x: Any, y: Any) -> Any:
    out = np.zeros(len(x) + len(y) - 1, x.dtype)
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            out[i + j] += a * b
    return out


CASES += [
    Case(
        "convolve",
        by_definition,
        [(np.array([1, 2, 3], np.int8), np.array([4, 5], np.int8))],
        [
            (between(-1, 1, 5), between(-1, 1, 3, seed=1)),
            (between(-1, 1, 2), between(-1, 1, 4, seed=1)),
            (between(-1, 1, 1), between(-1, 1, 1, seed=1)),
            (complexes(3), complexes(2, seed=1)),
        ],
        exact=False,
    )
]
