"""Random functions that assign to variables leave in each call what plain Python leaves.

Many calls of each, for the first ones do not enter compiled code directly; some fail.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.compiled import compiled
from tests.helpers.shares import sized

VALUES = ["x", "a * 0.5", "a + x", "n * 1.0", "y", "y * 0.5 + 1.0", "b.sum()", "x - a"]
XS = [0.3, 1.2, 2.5, -0.7, 4.0, 0.9]
CALLS = 14


class Writer:
    """Writes the statements of a function of the variables a, b and n and a number x."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self) -> str:
        return self.random.choice(VALUES)

    def function(self) -> str:
        lines = ["y = x * 1.0", *self.block(self.random.randint(2, 6), 0)]
        result = self.random.choice(["y", "(b.value, y)", "{'n': n * 1.0, 'y': y}"])
        body = "\n".join(f"    {line}" for line in [*lines, f"return {result}"])
        return f"import wend\ndef fun(a, b, n, x):\n{body}\n"

    def block(self, count: int, depth: int) -> list[str]:
        return [line for _ in range(count) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        choice = self.random.random()
        if choice < 0.35:
            return [f"a.assign({self.value()})"]
        if choice < 0.45:
            return ["n.assign(n + 1)"]
        if choice < 0.55:
            return [f"b.assign(b * 0.5 + {self.value()})"]
        if choice < 0.65:
            return [f"y = y + {self.value()}"]  # an item that nothing reads is not looked at
        if choice < 0.72:
            return [f"wend.assert_({self.value()} < 6.0, 'large')"]
        if choice < 0.76:
            return [f"y = y + b[int({self.random.choice(['x', 'n * 0.5'])})]"]
        if choice < 0.80 or depth > 1:
            return [f"a.assign_add({self.value()})"]
        block = [f"    {line}" for line in self.block(self.random.randint(1, 3), depth + 1)]
        if choice < 0.95:
            return [f"if {self.value()} > 1.0:", *block]
        return ["for _ in range(3):", *block]


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return [np.asarray(leaf).tolist() for leaf in wend.tree.leaves(call(*args))]
    except (AssertionError, IndexError, OverflowError, ValueError) as error:
        return type(error)


def variables() -> tuple[wend.Variable, ...]:
    return wend.Variable(1.0), wend.Variable(np.arange(3.0)), wend.Variable(0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_passed", [False, True], ids=["captured", "passed"])
@pytest.mark.parametrize("seed", range(sized(8, 400)))
def test_variables_after_each_call(seed: int, is_passed: bool) -> None:
    fun = compiled(Writer(seed).function(), "fun")
    plain, held = variables(), variables()
    if is_passed:
        of_passed = wend.function(fun, backend="native")
        run: Callable[..., Any] = lambda x: of_passed(*held, x)  # noqa: E731
    else:
        run = wend.function(lambda x: fun(*held, x), backend="native")
    for k in range(CALLS):
        x = XS[k % len(XS)]
        expected = outcome(fun, *plain, np.float64(x))
        assert outcome(run, x) == expected
        states = [[v.value.tolist() for v in of] for of in (plain, held)]
        assert states[0] == states[1]
