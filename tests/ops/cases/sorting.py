"""Rows of `wend.ops.sorting`."""

from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import arrays, between
from wend.ir.dtypes import ALL

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


CASES = [
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
