"""Rows of `wend.ops.parts`."""

from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes


def i(number: int, dtype: str = "i8") -> np.ndarray:
    return np.array(number, dtype)


def key(entries: tuple[Any, ...], positions: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    left = [int(position) for position in positions]
    found: list[Any] = []
    for entry in entries:
        if entry == "at":
            found.append(left.pop(0))
        elif entry == "cut":
            found.append(slice(left.pop(0), left.pop(0)))
        else:
            found.append(slice(*entry))
    return tuple(found)


def taken(x: np.ndarray, *positions: np.ndarray, entries: Any, cuts: Any) -> np.ndarray:
    return x[key(entries, positions)]


def put(into: np.ndarray, x: np.ndarray, *positions: np.ndarray, entries: Any) -> np.ndarray:
    out = into.copy()
    out[key(entries, positions)] = x
    return out


def added(into: np.ndarray, x: np.ndarray, *positions: np.ndarray, entries: Any) -> np.ndarray:
    return into + put(np.zeros_like(into), x, *positions, entries=entries)


WHOLE = (None, None, None)
COLUMN, BLOCK, TURNED = (WHOLE, "at"), ("cut", "cut"), ("at", (None, None, -2), "cut")
MATRIX, CUBE = between(-1, 1, 3, 4), between(-1, 1, 2, 5, 4)


def rows(op: str, oracle: Any, of: Any) -> list[Case]:
    """A row for each key; `of` makes the operands of an array, a part's shape and positions."""

    def case(entries: Any, cuts: Any, exact: Any, samples: Any) -> Case:
        attrs = {"entries": entries, "cuts": cuts} if op == "take_part" else {"entries": entries}
        return Case(op, oracle, [of(*one) for one in exact], [of(*one) for one in samples], attrs)

    return [
        case(
            COLUMN,
            (),
            [(np.arange(6, dtype="i4").reshape(2, 3), (2,), i(-1, "i2"))],
            [(MATRIX, (3,), i(1)), (complexes(2, 3), (2,), i(-3))],
        ),
        case(
            BLOCK,
            (2, 3),
            [(np.arange(12, dtype="u1").reshape(3, 4), (2, 3), i(-2), i(9), i(1), i(-0 + 4))],
            [(MATRIX, (2, 3), i(0), i(2), i(-4), i(-1))],
        ),
        case(TURNED, (0,), [], [(CUBE, (3, 0), i(1), i(3), i(2))]),
        case(TURNED, (2,), [], [(CUBE, (3, 2), i(-1), i(1), i(3))]),
        case(("at", "at"), (), [], [(MATRIX, (), i(-1), i(2))]),
    ]


def whole(x: np.ndarray, shape: Any, *positions: np.ndarray) -> tuple[Any, ...]:
    return x, *positions


def with_part(x: np.ndarray, shape: Any, *positions: np.ndarray) -> tuple[Any, ...]:
    values = np.full(shape, 7) if x.dtype.kind in "iu" else between(2, 3, *shape)
    return x, values.astype(x.dtype)[()], *positions


CASES = [
    *rows("take_part", taken, whole),
    *rows("set_part", put, with_part),
    *rows("add_part", added, with_part),
]
