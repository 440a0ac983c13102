"""The verifier finds what is wrong with a graph, and says where."""

from __future__ import annotations

import numpy as np
import pytest

from wend.base.errors import GraphError
from wend.base.source import Source
from wend.ir import Graph, Node, TensorType, Value, parse, verify
from wend.ops import elementwise
from wend.ops.build import Build

F64 = TensorType(np.dtype(np.float64), ())
F32 = TensorType(np.dtype(np.float32), ())


def test_a_value_of_another_graph_is_refused() -> None:
    b, other = Build("f"), Build("g")
    x = other.param(F64)
    b.param(F64)
    b.sin(x)
    with pytest.raises(GraphError, match="not defined before it here"):
        verify(b.finish([]))


def test_a_use_before_the_definition_is_refused() -> None:
    b = Build("f")
    x = b.param(F64)
    y = b.sin(x)
    b.cos(y)
    graph = b.finish([y])
    with pytest.raises(GraphError, match=r"cos at test_verify\.py"):
        verify(Graph("f", graph.params, graph.nodes[::-1], graph.results))


def test_a_type_that_the_shape_rule_does_not_give_is_refused_with_the_users_line() -> None:
    x = Value(F64)
    node = Node(elementwise.sin, [x], {}, (), [F32], Source("/home/me/train.py", 41, "loss"))
    with pytest.raises(GraphError, match=r"sin at train\.py:41: has results f32\[\]"):
        verify(Graph("f", (x,), (node,), node.results))


def test_a_result_that_is_not_defined_is_refused() -> None:
    x = Value(F64)
    with pytest.raises(GraphError, match=r"returns .* which it does not define"):
        verify(Graph("f", (), (), (x,)))


def test_captures_are_the_last_params() -> None:
    x, y = Value(F64), Value(F64)
    with pytest.raises(GraphError, match="captures are not the last"):
        verify(Graph("f", (x, y), (), (x,), (x,)))


WHILE = """graph f(%0: f64[], %1: {invariant}[]) {{
  %2: f64[] = while(%0, %1) {{carry=1}}
    before(%3: f64[], %4: f64[]) {{
      %5: {predicate}[] = {test}
      return %5, %3
    }}
    after(%6: f64[], %7: f64[]) {{
      return {following}
    }}
  return %2
}}"""
SOUND = {
    "invariant": "f64",
    "predicate": "bool",
    "test": "lt(%3, %4)",
    "following": "%6",
}


def test_a_sound_loop_passes() -> None:
    verify(parse(WHILE.format(**SOUND)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"invariant": "f32"}, r"before: value 1 is f32\[\], expected f64\[\]"),
        ({"predicate": "f64", "test": "add(%3, %4)"}, "predicate must be a bool scalar"),
        ({"following": "%6, %7"}, "the next carry: takes 1 values, given 2"),
    ],
)
def test_regions_that_do_not_fit_their_loop_are_refused(change: dict, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        verify(parse(WHILE.format(**(SOUND | change))))


def test_regions_are_closed() -> None:
    text = WHILE.format(**SOUND).replace("return %6\n", "return %0\n")
    with pytest.raises(GraphError, match="does not define"):
        verify(parse(text))
