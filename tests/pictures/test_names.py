"""What values are called in pictures."""

from __future__ import annotations

from typing import Any

import wend
import wend.numpy as wnp
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.pictures.names import names_of


def root(a: Any) -> Any:
    x = a
    while wnp.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def test_a_loop_and_its_gradient() -> None:
    graph = run_passes(wend.grad(root).get_concrete_function(2.0).graph, OPTIMIZE)
    names = names_of(graph)
    forward, backward = (node for node in graph.walk() if node.op is while_)
    w = WhileParts.of(forward)
    hoisted = "%4"  # 1e-12 a, by its number in the text
    assert [names[v] for v in w.before.params] == ["x", "trips", "tape of x", "a", hoisted]
    assert [names[v] for v in w.after.params] == ["x", "trips", "tape of x", "a", hoisted]
    assert [names[v] for v in forward.results] == ["x", "trips", "tape of x"]
    w = WhileParts.of(backward)
    assert [names[v] for v in w.before.params] == [
        *("trips left", "carry 2", "carry 3"),
        *("tape of x", "a"),
    ]
    assert [names[v] for v in w.after.params] == [names[v] for v in w.before.params]


def test_branches_have_the_names_of_what_they_are_given() -> None:
    def clipped(x: Any, low: Any) -> Any:
        if x < low:
            y = low * 2.0
        else:
            y = x * 3.0
        return y

    graph = wend.function(clipped).get_concrete_function(1.0, 2.0).graph
    names = names_of(graph)
    (node,) = (node for node in graph.walk() if node.op is if_)
    for branch in IfParts.of(node).branches:
        assert {names[v] for v in branch.params} <= {"x", "low"}


def test_a_deep_nest_is_named_in_time() -> None:
    def nested(x: Any, depth: int) -> Any:
        if depth == 0:
            return x * 0.5
        return wend.while_loop(lambda x: x > depth, lambda x: nested(x, depth - 1), x)

    graph = wend.function(lambda x: nested(x, 9)).get_concrete_function(20.0).graph
    assert graph.count("while") == 9
    names = names_of(graph)
    assert names[graph.params[0]] == "x"
