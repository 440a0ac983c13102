"""Rows of `wend.ops.indexing`."""

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes


def i(numbers: object, dtype: str = "i8") -> np.ndarray:
    return np.array(numbers, dtype)


def scattered(into: np.ndarray, x: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    out = into.copy()
    for place in np.ndindex(indices[0].shape):
        out[tuple(index[place] for index in indices)] += x[place]
    return out


def added_along(into: np.ndarray, x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    out = into.copy()
    for place in np.ndindex(indices.shape):
        target = (*place[:axis], indices[place], *place[axis + 1 :])
        out[target] += x[place]
    return out


ROWS, MATRIX = between(-1, 1, 5), between(-1, 1, 3, 4)

CASES = [
    Case(
        "gather",
        lambda x, *indices: x[indices],
        [
            (np.ones(3, bool), i(1)),
            (np.arange(6, dtype="u1").reshape(2, 3), i([], "i4")),
            (np.array([np.nan, -0.0, np.inf]), i([2, 0, 0, -2], "i2")),
        ],
        [
            (ROWS, i([0, 3, 3, -1])),
            (ROWS, i(2)),
            (MATRIX, i([[0, 1], [-1, 0]])),
            (MATRIX, i([0, 2, 2]), i([3, -1, 1], "i8")),
            (MATRIX, i([], "i8")),
            (complexes(3), i([0, 0])),
        ],
    ),
    Case(
        "position",
        lambda index, size, axis, of: np.arange(size)[index],
        [(i(2), i(3)), (i(-3), i(3)), (i(-1, "i4"), i(1))],
        attrs={"axis": 1, "of": "gather"},
    ),
    Case(
        "scatter_add",
        scattered,
        [(np.zeros(3, np.int8), np.full(4, 100, np.int8), i([0, 0, 0, 2]))],
        [
            (ROWS, between(2, 3, 4), i([0, 3, 3, -1])),
            (ROWS, np.float64(2), i(2)),
            (MATRIX, between(2, 3, 2, 4), i([-1, 2])),
            (MATRIX, between(2, 3, 3), i([0, 2, 2]), i([3, -1, 3])),
            (complexes(3), complexes(2), i([0, 0])),
        ],
    ),
    Case(
        "take_along",
        lambda x, indices, axis: np.take_along_axis(x, indices, axis),
        [(np.arange(6, dtype="i4").reshape(2, 3), i([[0], [-1]]))],
        [(MATRIX[:2], i([[0, 3, 3], [1, -1, 0]])), (MATRIX[:2], np.zeros((2, 0), "i8"))],
        {"axis": 1},
    ),
    Case(
        "add_along",
        added_along,
        [(np.zeros((2, 3), "i4"), np.ones((2, 2), "i4"), i([[0, 0], [-1, 1]]))],
        [(MATRIX[:2], between(2, 3, 2, 3), i([[0, 3, 3], [1, -1, 0]]))],
        {"axis": 1},
    ),
    *(
        Case(
            op,
            reference,
            smooth=[operands],
            attrs={"axis": 0},
        )
        for op, reference, operands in (
            ("take_along", lambda x, k, axis: x[k], (ROWS, i([4, 1]))),
            ("add_along", added_along, (ROWS, between(2, 3, 2), i([1, 1]))),
        )
    ),
    Case(
        "nonzero",
        lambda x: tuple(np.argwhere(x).T),
        [
            (np.array([True, False, True]),),
            (np.eye(3, 2, dtype=bool).T,),
            (np.zeros((0, 2), bool),),
        ],
    ),
]
