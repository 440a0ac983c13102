"""Rows of `wend.ops.updating`."""

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes


def i(numbers: object, dtype: str = "i8") -> np.ndarray:
    return np.array(numbers, dtype)


def with_part(into: np.ndarray, x: np.ndarray, slices: tuple) -> np.ndarray:
    out = into.copy()
    out[tuple(slice(*bounds) for bounds in slices)] = x
    return out


def with_elements(into: np.ndarray, x: np.ndarray, *places: np.ndarray) -> np.ndarray:
    out = into.copy()
    if not places[0].ndim:
        out[tuple(map(int, places))] = x
        return out
    for row, *place in zip(x, *places, strict=True):
        out[tuple(map(int, place))] = row
    return out


WHOLE = (None, None, None)
CASES = [
    Case(
        "set_slice",
        with_part,
        [(np.arange(4), i([7, 8]))],
        [(between(-1, 1, 4), between(2, 3, 2))],
        {"slices": ((1, 3, None),)},
    ),
    Case(
        "set_slice",
        with_part,
        [(np.zeros((2, 3), bool), np.ones((2, 2), bool))],
        [(between(-1, 1, 2, 3), between(2, 3, 2, 2)), (complexes(2, 3), complexes(2, 2))],
        {"slices": (WHOLE, (None, None, -2))},
    ),
    Case(
        "scatter_set",
        with_elements,
        [(np.arange(4, dtype="i4"), i([7, 8, 9], "i4"), i([0, -1, 0]))],
        [
            (between(-1, 1, 5), between(2, 3, 3), i([4, 0, -2])),
            (between(-1, 1, 5), between(2, 3, 4), i([1, 1, 3, 1])),
            (between(-1, 1, 5), between(2, 3, 1), i([2])),
            (between(-1, 1, 5), np.zeros(0), i([])),
            (complexes(3), complexes(2), i([1, 1])),
            (between(-1, 1, 5), np.float64(3), i(-2)),
            (between(-1, 1, 3, 2), between(2, 3, 2), i(1)),
            (between(-1, 1, 3, 2), np.float64(3), i(1), i(-1)),
            (between(-1, 1, 3, 2), between(2, 3, 4, 2), i([1, 0, 1, -1])),
            (between(-1, 1, 3, 2), between(2, 3, 3), i([1, 0, 1]), i([0, 1, 0])),
        ],
    ),
]
