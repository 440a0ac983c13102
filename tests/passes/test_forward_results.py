"""Results that loops and branches pass on are read where they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.ops.control import if_, while_
from wend.passes.dce import select_results
from wend.passes.forward_results import forward_results


def branch(x: Any, y: Any) -> Any:
    return wend.cond(x > 0.0, lambda x, y: (x * 2.0, y), lambda x, y: (-x, y), x, y)


def loop(x: Any, y: Any) -> Any:
    return wend.while_loop(lambda c: c[0] < 9.0, lambda c: (c[0] * 2.0, c[1]), (x, y))


def loop_in_a_branch(x: Any, y: Any) -> Any:
    return wend.cond(x > 0.0, loop, lambda x, y: (x, y), x, y)


def other_operands(x: Any, y: Any) -> Any:
    return wend.cond(x > 0.0, lambda x, y: (x, y), lambda x, y: (y, x), x, y)


def swap(x: Any, y: Any) -> Any:
    return wend.while_loop(lambda c: c[0] < 9.0, lambda c: (c[1] * 2.0, c[0]), (x, y))


@pytest.mark.parametrize(
    ("fun", "is_forwarded"),
    [
        (branch, True),
        (loop, True),
        (loop_in_a_branch, True),
        (other_operands, False),
        (swap, False),
    ],
)
def test_a_result_is_the_operand(fun: Any, is_forwarded: bool) -> None:
    graph = wend.function(fun).get_concrete_function(1.5, 4.0).graph
    forwarded = forward_results(graph)
    second, needed = select_results(forwarded, [1])
    assert (not second.nodes and needed == [1]) == is_forwarded
    assert {if_, while_} & {*forwarded.ops}, "the other result is computed as before"
    np.testing.assert_allclose(wend.function(fun)(1.5, 4.0), fun(1.5, 4.0))
