"""Rows of `wend.ops.convolving`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes


def by_definition(x: Any, y: Any) -> Any:
    out = np.zeros(len(x) + len(y) - 1, x.dtype)
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            out[i + j] += a * b
    return out


CASES = [
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
