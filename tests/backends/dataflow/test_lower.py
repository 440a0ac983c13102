"""Lowering: which primitives come of loops and branches, and what control edges order."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.dataflow import backends, check_round_trip
from tests.helpers.graphs import traced

import wend
from wend.backends.dataflow.node import DataflowNode, Primitive
from wend.ops.build import Build

SQUARE = """\
dataflow square(%0: f64[]) {
  %1: f64[] = Enter(%0) {frame='while_0', is_constant=False}
  %2: f64[] = Merge(%1, %9)
  %3: f64[] = constant(^%2) {value=f64[]<8.0>}
  %4: bool[] = lt(%2, %3)
  %5: bool[] = LoopCond(%4)
  %6: f64[], %7: f64[] = Switch(%2, %5)
  %8: f64[] = mul(%7, %7)
  %9: f64[] = NextIteration(%8)
  %10: f64[] = Exit(%6)
  return %10
}"""


def square(x):
    return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)


def test_a_loop():
    graph = wend.lower(wend.function(square).get_concrete_function(2.0))
    assert str(graph) == SQUARE
    assert repr(graph) == "<dataflow graph square: 9 nodes>"
    assert graph.frames() == ["while_0"]


def test_a_branch_has_its_selector_and_a_way_for_each_region():
    graph = wend.lower(traced(lambda x, p: wend.cond(p, lambda: x * 2.0, lambda: -x), 1.0, True))
    assert [graph.count(name) for name in ("Identity", "Switch", "Merge")] == [1, 1, 1]
    (constant,) = (node for node in graph.nodes if node.name == "constant")
    assert constant.controls[0].node.op is Primitive.SWITCH  # it runs where the branch does


def test_what_nothing_reads_is_not_lowered():
    def fun(x):
        values = wend.while_loop(lambda c: c[0] < 5.0, lambda c: (c[0] + 1.0, c[1] * 3.0), (x, x))
        return values[0]

    assert wend.lower(traced(fun, 0.0)).count("NextIteration") == 1


def test_calls_are_inlined():
    inner = wend.function(lambda x: x * x)
    assert wend.lower(traced(lambda x: inner(x) + inner(2.0 * x), 1.0)).count("call") == 0


def forever_or_never(is_true: bool):
    """A loop without carry: its regions are started by a token that goes round."""
    before, after = Build("before"), Build("after")
    predicate = before.constant(is_true)
    b = Build("loop")
    loop = b.while_([], [], before.finish([predicate, before.constant(2.5)]), finished(after))
    return b.finish(loop.results)


def finished(after):
    after.param(Build("x").constant(0.0).type)
    return after.finish([])


def test_a_loop_without_carry():
    graph = forever_or_never(False)
    check_round_trip(graph)
    assert [run([]) for run in (b.compile(graph) for b in backends())] == [[2.5]] * len(backends())


def ancestors(node: DataflowNode) -> set[DataflowNode]:
    """What runs before a node in one trip."""
    found: set[DataflowNode] = set()
    stack = [node]
    while stack:
        for x in (*stack[-1].inputs, *stack.pop().controls):
            if x.node is not None and x.node not in found and x.node.name != "NextIteration":
                found.add(x.node)
                stack.append(x.node)
    return found


def test_effects_and_what_may_fail_keep_their_order():
    v = wend.Variable(0.0)

    def fun(x, i):
        v.assign(x[0])
        y = x[i]
        v.assign(y)
        return y, x[i + 1]

    graph = wend.lower(traced(fun, np.arange(3.0), np.int64(1)))
    first, second = (node for node in graph.nodes if node.name == "store")
    reads = [n for n in graph.nodes if n.op is not Primitive.MERGE and "index" in n.name]
    reads = reads or [n for n in graph.nodes if n.name in ("take", "gather", "slice_at")]
    assert first in ancestors(second)
    failing = [n for n in graph.nodes if n.op.may_fail(n)]
    assert any(first in ancestors(n) for n in failing)
    assert any(n in ancestors(second) for n in failing)


@pytest.mark.parametrize("recorded", ["linear blocks", "parallel maps", "rules"])
def test_everything_that_is_recorded_is_lowered(recorded):
    @wend.custom_vjp
    def ruled(x):
        return x * x

    ruled.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * 2.0 * x,))
    fun, args = {
        "linear blocks": (wend.grad(square), (2.0,)),
        "parallel maps": (wend.vmap(square), (np.array([2.0, 3.0]),)),
        "rules": (wend.grad(wend.checkpoint(lambda x: ruled(x) * x)), (3.0,)),
    }[recorded]
    graph = traced(fun, *args)
    check_round_trip(graph)
    with wend.config(backend="numpy"):
        expected = fun(*args)
    with wend.config(backend="dataflow"):
        np.testing.assert_array_equal(fun(*args), expected)
