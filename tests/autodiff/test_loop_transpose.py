"""Fixpoints over loops answer each question once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import wend
import wend.numpy as wnp
from wend.autodiff.loop_transpose import Memo
from wend.autodiff.transpose import Transposer
from wend.autodiff.vjp import vjp
from wend.ir.graph import Node


def nested(depth: int) -> Callable[[Any], Any]:
    """Loops in loops whose carries take three trips to depend on x, at every level."""

    def body(state: Any, left: int) -> Any:
        a, b, c = state
        if not left:
            return b, c, wnp.sin(a)
        return wend.fori_loop(
            0, 2, lambda i, s: body((s[1], s[2], s[0] * 1.5), left - 1), (b, c, a)
        )

    return lambda x: sum(body((x, 0.5, 0.25), depth))


def test_building_a_gradient_takes_time_polynomial_in_the_depth_of_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    regions = 0
    pull_back = Transposer.pull_back

    def counted(*args: Any) -> None:
        nonlocal regions
        regions += 1
        pull_back(*args)

    monkeypatch.setattr(Transposer, "pull_back", counted)
    taken = []
    for depth in (4, 8):
        graph = wend.function(nested(depth)).get_concrete_function(1.0).graph
        regions = 0
        vjp(graph, (0,), (0,))
        taken.append(regions)
    assert taken[1] < 6 * taken[0]  # quadratic: 4; exponential: 16


def test_an_answer_is_found_once_and_goes_with_its_node() -> None:
    memo: Memo[list[int]] = Memo()
    graph = wend.function(lambda x: x + 1.0).get_concrete_function(1.0).graph
    node: Node = graph.nodes[-1]
    answer = memo(node, "how many", lambda: [1])
    assert memo(node, "how many", lambda: [2]) is answer
    assert memo(node, "another", lambda: [3]) == [3]
    gone = weakref.ref(node)
    del graph, node
    gc.collect()
    assert gone() is None
