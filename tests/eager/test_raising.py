"""Operators of Python numbers note what they may raise in the run, unless an operand is known."""

from __future__ import annotations

import operator

import pytest

import wend
from wend.base.errors import StagedRaiseError


@pytest.mark.parametrize("symbol", ["/", "//", "%"])
@pytest.mark.parametrize(
    ("divisor", "may_raise"), [("n", True), ("0", True), ("2.0", False), ("-1", False)]
)
def test_a_known_divisor_raises_nothing(symbol: str, divisor: str, may_raise: bool) -> None:
    scope: dict[str, object] = {}
    lines = ["def f(x, n):", "    try:", f"        return x {symbol} {divisor}"]
    exec("\n".join([*lines, "    except ZeroDivisionError:", "        return -1.0"]), scope)
    function = wend.function(scope["f"])
    if not may_raise:
        assert function(3.0, 2.0) == eval(f"3.0 {symbol} {divisor}")
        return
    with pytest.raises(StagedRaiseError, match=f"`{symbol}`.*ZeroDivisionError"):
        function(3.0, 2.0)


def test_arrays_raise_nothing() -> None:
    def f(x, n):
        try:
            return operator.truediv(x, n)
        except ZeroDivisionError:
            return x

    assert wend.function(f)(wend.numpy.ones(2), 2.0).tolist() == [0.5, 0.5]
