"""The verifier finds what is wrong with a graph, and says where."""

from __future__ import annotations

import numpy as np
import pytest

from wend.base.errors import GraphError
from wend.base.source import Source
from wend.ir import Graph, Node, TensorType, Value, parse, verify
from wend.ops import control, elementwise
from wend.ops.build import Build

F64 = TensorType(np.dtype(np.float64), ())
F32 = TensorType(np.dtype(np.float32), ())
BOOL = TensorType(np.dtype(np.bool_), ())
LINE = Source("/home/user/train.py", 41, "step")


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


def graph(*nodes, params=(), results=(), captures=()):
    return Graph("f", tuple(params), tuple(nodes), tuple(results), tuple(captures))


def node(op, operands, types, regions=(), source=LINE, **attrs):
    return Node(op, operands, attrs, regions, types, source)


def region(name, types, fun):
    b = Build(name)
    return b.finish(fun(b, *(b.param(type) for type in types)))


def test_use_of_an_outer_value_in_a_region():
    """D8: regions are closed."""
    x, outer = Value(F64), Value(F64)
    inside = node(elementwise.add, [x, outer], [F64])
    branch = graph(inside, params=[x], results=inside.results)
    choice = node(control.if_, [Value(BOOL), outer], [F64], [branch, branch])
    whole = graph(choice, params=[choice.operands[0], outer], results=choice.results)
    with pytest.raises(GraphError, match=r"add at train\.py:41"):
        verify(whole)


def test_wrong_type():
    x = Value(F64)
    wrong = node(elementwise.sin, [x], [F32])
    with pytest.raises(GraphError, match=r"train\.py:41: has results f32\[\], .* f64\[\]"):
        verify(graph(wrong, params=[x], results=wrong.results))


def test_wrong_operands():
    x, y = Value(F64), Value(F32)
    wrong = node(elementwise.add, [x, y], [F64])
    with pytest.raises(GraphError, match=r"add at train\.py:41: operands must have one type"):
        verify(graph(wrong, params=[x, y], results=wrong.results))


def test_wrong_number_of_results():
    x = Value(F64)
    wrong = node(elementwise.sin, [x], [F64, F64])
    with pytest.raises(GraphError, match="shape rule gives"):
        verify(graph(wrong, params=[x], results=wrong.results))


def test_param_listed_twice():
    x = Value(F64)
    with pytest.raises(GraphError, match="listed twice"):
        verify(graph(params=[x, x], results=[x]))


def loop(before, after, types=(F64,), results=(F64,)):
    x = Value(F64)
    found = node(control.while_, [x], results, [before, after], carry=1)
    return graph(found, params=[x], results=found.results)


def keep(b, x):
    return [b.lt(x, b.constant(3.0)), x]


def test_regions_of_a_loop():
    before, after = region("before", [F64], keep), region("after", [F64], lambda b, x: [b.sin(x)])
    verify(loop(before, after))
    faults = [
        (
            region("before", [F64], lambda b, x: [x, x]),
            after,
            "the predicate must be a bool scalar",
        ),
        (region("before", [F64], lambda b, x: []), after, "the predicate must be a bool scalar"),
        (region("before", [], lambda b: [b.constant(True)]), after, "before: takes 0 values"),
        (before, region("after", [F32], lambda b, x: [x]), "after: value 0"),
        (before, region("after", [F64], lambda b, x: [x, x]), "the next carry"),
        (before, region("after", [F64], lambda b, x: [b.cast(x, "f4")]), "the next carry"),
    ]
    for bad_before, bad_after, message in faults:
        with pytest.raises(GraphError, match=rf"while at train\.py:41: {message}"):
            verify(loop(bad_before, bad_after))


def test_branches():
    p, x = Value(BOOL), Value(F64)
    same = region("branch0", [F64], lambda b, x: [x])
    narrow = region("branch1", [F64], lambda b, x: [b.cast(x, "f4")])
    two = region("branch1", [F64], lambda b, x: [x, x])
    for branches, message in [
        ([same, narrow], "result 0 differs"),
        ([same, two], "different numb"),
    ]:
        choice = node(control.if_, [p, x], [F64], branches)
        with pytest.raises(GraphError, match=message):
            verify(graph(choice, params=[p, x], results=choice.results))
    choice = node(control.if_, [x, x], [F64], [same, same])
    with pytest.raises(GraphError, match="bool or i64 scalar"):
        verify(graph(choice, params=[x], results=choice.results))


def test_the_builder_names_the_line_too():
    b = Build("f")
    b.source = LINE
    with pytest.raises(ValueError, match=r"add at train\.py:41: operands"):
        b.add(b.param(F64), b.param(F32))


def test_a_fault_deep_inside_is_found():
    x = Value(F64)
    wrong = node(elementwise.sin, [x], [F32], source=Source("deep.py", 7, "f"))
    after = graph(wrong, params=[x], results=wrong.results)
    with pytest.raises(GraphError, match=r"deep\.py:7"):
        verify(loop(region("before", [F64], keep), after))
