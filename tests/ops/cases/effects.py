"""Rows of `wend.ops.effects`; what they do is tested in tests/trace/test_effects.py."""

import numpy as np

from tests.helpers.cases import Case, Given
from wend.ir.types import TOKEN
from wend.trace.state.effects import DeferredCall

WORLD = Given(None, TOKEN)

CASES = [
    Case(
        "print", lambda *xs, format: None, [(WORLD,), (WORLD, np.float64(1))], attrs={"format": ""}
    ),
    Case(
        "host_action",
        lambda *xs, action, result: None,
        [(WORLD,), (WORLD, np.float64(1))],
        attrs={"action": DeferredCall("nothing", list, ()), "result": None},
        symbolic=False,
    ),
    Case(
        "raise_if",
        lambda *xs, error, text: None,
        [(WORLD, np.bool_(False)), (WORLD, np.bool_(False), np.ones(2))],
        attrs={"error": "ValueError", "text": "{}"},
    ),
    Case(
        "check_number",
        lambda x, *predicates, errors, texts: x,
        [(np.int64(3), np.bool_(False)), (np.float32(0.5), np.bool_(False))],
        [(np.float64(0.5), np.bool_(False))],
        attrs={"errors": ("ValueError",), "texts": ("{}",)},
    ),
    Case("token", lambda: None, [()]),
    Case("after", lambda x, token: x, [(np.int64(2), WORLD)], [(2.0, WORLD), (np.ones(3), WORLD)]),
]
