"""Rows of `wend.ops.creating`."""

import math

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import arrays, numbers
from wend.ir.dtypes import ALL

CASES = [
    *(
        Case("constant", lambda value: value, [()], attrs={"value": value})
        for dtype in sorted(ALL, key=str)
        for value in arrays(dtype)
    ),
    *(
        Case(
            "iota",
            lambda dtype, length: np.array(list(range(length)), dtype),
            [()],
            attrs={"dtype": np.dtype(dtype), "length": length},
        )
        for dtype in ("i8", "i4", "f8", "f4", "u1")
        for length in (0, 1, 5)
    ),
    Case(
        "iota",
        lambda n, dtype, length: np.arange(n, dtype=dtype),
        [(np.int64(0),), (np.int32(7),)],
        attrs={"dtype": np.dtype("i8"), "length": None},
    ),
    Case(
        "nonnegative",
        lambda x, message: x,
        [(np.int64(0),), (np.arange(4, dtype="i4"),), (np.arange(6, dtype="u1").reshape(2, 3),)],
        attrs={"message": "{} is negative"},
    ),
    *(
        Case(
            "from_elements",
            lambda *xs, shape: np.stack(xs).reshape(shape),
            [(numbers(dtype)[-1], numbers(dtype)[0]) for dtype in sorted(ALL, key=str)],
            [tuple(np.float64(k) for k in range(math.prod(shape)))],
            attrs={"shape": shape},
        )
        for shape in ((2,), (2, 1))
    ),
    *(
        Case(
            "from_elements",
            lambda *xs, shape: np.stack(xs).reshape(shape)[()],
            [],
            [tuple(np.float64(k + 0.5) for k in range(math.prod(shape)))],
            attrs={"shape": shape},
        )
        for shape in ((), (1,), (2, 3))
    ),
]
