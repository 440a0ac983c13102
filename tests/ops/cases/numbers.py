"""Rows of `wend.ops.numbers`."""

import math

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import between, tuples
from wend.ir.dtypes import FLOATS, INTEGERS

WHOLE = [
    (np.array([[12, 0, 7]], dtype), np.array([[18, 5, 7]], dtype))
    for dtype in sorted(INTEGERS, key=str)
]

CASES = [
    Case("signbit", lambda x: np.copysign(1, x) < 0, tuples(FLOATS - {np.dtype("f2")}, 1)),
    Case("nextafter", np.nextafter, tuples(FLOATS, 2)),
    Case(
        "fmod",
        lambda x, y: np.copysign(np.abs(x) % np.abs(y), x),
        [(between(-9, 9, 6, 2), between(0.5, 3, 6, 2))],
        [(between(-9, 9, 6, 2), between(0.5, 3, 6, 2)), (np.float64(-7.3), np.float64(2.1))],
        exact=False,
    ),
    Case(
        "fmod_int",
        np.vectorize(math.fmod, otypes=[np.int64]),
        [(np.array([-7, 7, 0]), np.array([3, -5, 2]))],
    ),
    Case(
        "gcd", np.vectorize(math.gcd, otypes=[np.int64]), [p for p in WHOLE if p[0].dtype == "i8"]
    ),
    Case(
        "lcm", np.vectorize(math.lcm, otypes=[np.int64]), [p for p in WHOLE if p[0].dtype == "i8"]
    ),
    Case(
        "bit_count",
        np.vectorize(lambda x: abs(int(x)).bit_count(), otypes=[np.uint8]),
        [(x,) for x, _ in WHOLE],
    ),
]
