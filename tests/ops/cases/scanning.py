"""Rows of `wend.ops.scanning`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import arrays, between, complexes
from wend.ir.dtypes import NUMERIC

SAMPLES = [x for dtype in sorted(NUMERIC, key=str) for x in arrays(dtype) if x.ndim == 2]
WITH_ZEROS = np.array([[1.5, 0.0, 2.0, 0.0], [3.0, -1.0, 0.0, 0.5]])


def products(x: Any, axis: int) -> Any:
    return np.multiply.accumulate(x, axis=axis, dtype=x.dtype)


def recurrence(a: Any, x: Any, axis: int, reverse: bool) -> Any:
    """The definition, element by element."""
    out = np.array(x)
    step = 1 if reverse else -1
    places = list(np.ndindex(out.shape))
    for place in places[::-1] if reverse else places:
        before = list(place)
        before[axis] += step
        if 0 <= before[axis] < out.shape[axis]:
            out[place] = x[place] + a[place] * out[tuple(before)]
    return out


CASES = [
    *(
        Case(
            "cumprod",
            products,
            [(x,) for x in SAMPLES],
            [(between(-2, 2, 3, 4),), (WITH_ZEROS,), (complexes(2, 3),), (np.empty((0, 2)),)],
            {"axis": axis},
        )
        for axis in (0, 1)
    ),
    *(
        Case(
            "linear_recurrence",
            recurrence,
            [],
            [
                (between(-1, 1, 3, 4), between(-2, 2, 3, 4, seed=1)),
                (complexes(2, 3), complexes(2, 3, seed=2)),
                (np.empty((2, 0)), np.empty((2, 0))),
            ],
            {"axis": axis, "reverse": reverse},
            exact=False,
        )
        for axis in (0, 1)
        for reverse in (False, True)
    ),
]
