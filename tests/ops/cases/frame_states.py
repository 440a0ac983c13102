"""Rows of `wend.ops.frame_states`; what they do is tested in tests/ops/test_frame_states.py."""

import numpy as np

from tests.helpers.cases import Case
from tests.ops.cases.effects import WORLD

CASES = [
    Case(
        "frame_state",
        lambda *xs, written: None,
        [(WORLD, np.ones(2)), (WORLD, np.ones((2, 3)))],
        attrs={"written": (1,)},
    )
]
