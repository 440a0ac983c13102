"""Rows of `wend.ops.searching`."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import arrays, between
from wend.ir.dtypes import ALL


def by_bisection(x: Any, values: Any, side: str) -> Any:
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    return np.array([find(list(x), v) for v in np.ravel(values)], int).reshape(np.shape(values))


def written(into: Any, x: Any, indices: Any, axis: int) -> Any:
    out = np.array(into)
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = indices[place]
        out[tuple(target)] = x[place]
    return out


SORTED = np.array([-1.0, 0.0, 0.0, 0.5, 2.0])

CASES = [
    *(
        Case(
            "searchsorted",
            by_bisection,
            [
                (SORTED, between(-2, 3, 2, 3)),
                (SORTED, np.array([0.0, -1.0, 9.0])),
                (np.array([1, 3, 3]), np.array(3)),
                (SORTED[:0], SORTED),
            ],
            attrs={"side": side},
        )
        for side in ("left", "right")
    ),
    Case(
        "isin",
        lambda x, among: np.array([v in list(among) for v in np.ravel(x)], bool).reshape(
            np.shape(x)
        ),
        [
            (between(-2, 3, 2, 3), SORTED),
            (SORTED, np.array([0.5, -0.0, np.nan])),
            (np.array([3, 1, 7]), np.array([3, 3, 1])),
            (np.array(3), np.array([1, 3])),
            (SORTED, SORTED[:0]),
        ],
    ),
    *(
        Case(
            "set_along",
            written,
            [],
            [(between(-1, 1, 3, 4), between(-1, 1, *shape, seed=1), indices)],
            {"axis": axis},
        )
        for axis, shape, indices in (
            (1, (3, 2), np.array([[0, 3], [1, 1], [-1, 2]])),
            (0, (2, 4), np.array([[0, 2, 1, 1], [2, 2, 0, 1]])),
        )
    ),
]

REAL = [x for dtype in sorted(ALL, key=str) if dtype.kind != "c" for x in arrays(dtype) if x.ndim]


def ordered(x: Any, axis: int) -> Any:
    """Python's own stable sort of each row, NaN last."""
    return np.apply_along_axis(lambda row: row[order(row, 0)], axis, x) if x.size else x


def order(x: Any, axis: int) -> Any:
    if not x.size:
        return np.zeros(x.shape, np.int64)
    return np.apply_along_axis(
        lambda row: sorted(range(len(row)), key=lambda k: (row[k] != row[k], row[k])), axis, x
    )


CASES += [
    Case(
        op,
        reference,
        [(x,) for x in REAL if x.ndim > axis],
        [(between(-1, 1, 4, 3),), (between(-1, 1, 3, 4).T[:, ::2],)],
        {"axis": axis},
    )
    for op, reference in (("sort", ordered), ("argsort", order))
    for axis in (0, 1)
]
