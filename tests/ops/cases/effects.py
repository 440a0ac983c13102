"""Rows of `wend.ops.effects`; what they do is tested in tests/trace/test_effects.py."""

import numpy as np

from tests.helpers.cases import Case, Given
from wend.ir.types import TOKEN

WORLD = Given(None, TOKEN)

CASES = [
    Case(
        "print", lambda *xs, format: None, [(WORLD,), (WORLD, np.float64(1))], attrs={"format": ""}
    ),
    Case(
        "assert",
        lambda *xs, message: None,
        [(WORLD, np.bool_(True)), (WORLD, np.bool_(True), np.ones(2))],
        attrs={"message": "{}"},
    ),
]
