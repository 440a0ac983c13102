"""Signs, neighbours, remainders and divisors of numbers, one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.ir.dtypes import BOOL, FLOATS, INTEGERS
from wend.ops import elementwise as ew
from wend.ops.elementwise import elementwise


def _fmod_divisor(b: Any, x: Any, y: Any, z: Any) -> Any:
    return b.neg(b.emit(ew.trunc, b.div(x, y)))


signbit = elementwise("signbit", np.signbit, FLOATS, result=lambda _: BOOL)
nextafter = elementwise("nextafter", np.nextafter, FLOATS)

# The remainder with the sign of x; flat in y but for the jumps
fmod = elementwise("fmod", np.fmod, FLOATS, [lambda b, x, y, z: b.ones_like(x), _fmod_divisor])
fmod_int = elementwise("fmod_int", np.fmod, INTEGERS)

gcd = elementwise("gcd", np.gcd, INTEGERS)
lcm = elementwise("lcm", np.lcm, INTEGERS)
bit_count = elementwise(
    "bit_count", np.bitwise_count, INTEGERS, result=lambda _: np.dtype(np.uint8)
)
