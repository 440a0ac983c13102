"""Loops out of nodes of a graph: libnnc's cases to the last digit, and an error for each rule."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.helpers.dataflow import check_round_trip
from tests.helpers.graphs import check_graph
from wend.autodiff.vjp import joint
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.base.errors import GraphError
from wend.ir import Graph, Value, case_of, while_from
from wend.ir.types import tensor
from wend.ops.build import Build
from wend.ops.elementwise import log as log_op
from wend.passes.pipeline import OPTIMIZE, run_passes

F64, I64 = tensor("f8"), tensor("i8")


def below(limit: int) -> Graph:
    """trips < limit"""
    b = Build("test")
    trips = b.param(I64)
    return b.finish([b.lt(trips, b.integer(limit))])


def value_below(limit: float) -> Graph:
    """x < limit, whatever the trips"""
    b = Build("test")
    b.param(I64)
    return b.finish([b.lt(b.param(F64), b.constant(limit))])


def run(graph: Graph, *args: Any) -> list[Any]:
    """The results by the interpreter; native code gives the same, and both survive text."""
    check_graph(graph)
    check_round_trip(graph)
    arrays = [np.float64(x) for x in args]
    results = NUMPY.compile(graph)(arrays)
    np.testing.assert_allclose(NATIVE.compile(run_passes(graph, OPTIMIZE))(arrays), results, 1e-14)
    return [float(x) for x in results]


def gradient(graph: Graph, *args: Any) -> list[float]:
    """The gradient of the first result in every argument."""
    combined, _ = joint(graph, [*range(len(args))], 0)
    return run(combined, *args)[len(graph.results) :]


def params(b: Build, names: str) -> list[Value]:
    return [b.param(F64, name) for name in names.split()]


def nodes_between(b: Build, start: int) -> list[Any]:
    return b.nodes[start:]


def test_a_product_carried_five_times():
    """z ← y·z 5×, then x·z."""
    b = Build("product")
    x, y, z = params(b, "x y z")
    z1 = b.mul(y, z)
    graph = b.finish([b.mul(x, z1)])
    all = [z1.node]
    loop = while_from(graph, all, all, all, all, {z: z1}, below(4))
    np.testing.assert_allclose(run(loop.graph, 0.34, 1.11, 1.0), [0.5729197727], rtol=1e-9)


@pytest.mark.parametrize(
    ("start", "is_added", "value"), [(1.0, False, 2.1090608742), (1.2, True, 3.730873049)]
)
def test_outside_a_target_keeps_its_value(start: float, is_added: bool, value: float):
    """z1 = z0·x carried 5×, z2 = z1·y outside; then z3 = z2 + z0, of z0 as it was."""
    b = Build("outside")
    x, y, z0 = params(b, "x y z0")
    z1 = b.mul(z0, x)
    z2 = b.mul(z1, y)
    graph = b.finish([b.add(z2, z0) if is_added else z2])
    all = [z1.node]
    loop = while_from(graph, all, all, all, all, [(z0, z1)], below(4))
    np.testing.assert_allclose(run(loop.graph, 0.92, 3.2, start), [value], rtol=1e-9)


def test_a_chain_of_targets_moves_at_once():
    """y = 2·x1 + .1, x2 = x0 + y, x2 → x1 → x0."""
    b = Build("chain")
    x0, x1 = params(b, "x0 x1")
    start = len(b.nodes)
    y = b.add(b.mul(x1, b.constant(2.0)), b.constant(0.1))
    x2 = b.add(x0, y)
    graph = b.finish([x2])
    inside = nodes_between(b, start)
    incoming = [node for node in inside if {x0, x1} & {*node.operands}]
    chain = [(x1, x2), (x0, x1)]
    with pytest.raises(GraphError, match=r"incoming add at .* has a predecessor inside the loop"):
        while_from(graph, inside, incoming, [x2.node], [x2.node], chain, below(4))
    incoming.remove(x2.node)
    loop = while_from(graph, inside, incoming, [x2.node], [x2.node], chain, below(4))
    np.testing.assert_allclose(run(loop.graph, 0.0, 1.0), [74.9], rtol=1e-12)
    ends = loop.with_results(loop.at_exit(x1), loop.at_exit(x0), loop.trips)
    assert run(ends, 0.0, 1.0)[2] == 4


def do_while() -> tuple[Graph, Any]:
    b = Build("do_while")
    x, y, v = params(b, "x y v")
    product = b.mul(x, y)
    z = b.emit(log_op, product)
    graph = b.finish([b.mul(v, z)])
    loop = while_from(
        graph, [product.node, z.node], [product.node], [z.node], [z.node], {x: z}, below(4)
    )
    return loop.graph, (1.0, 3.2, 0.22)


def test_a_loop_tested_last_and_its_gradient():
    """z = log(x·y), x ← z, 5 bodies, u = v·z."""
    graph, args = do_while()
    np.testing.assert_allclose(run(graph, *args), [0.3487781467], rtol=1e-9)
    dx, dy, dv = gradient(graph, *args)
    np.testing.assert_allclose([dy, dx, dv], [0.1896006022, 0.0656823083, 1.5853552124], rtol=1e-9)
    second, _ = joint(joint(graph, [1], 0)[0], [1], 1)  # of du/dy, in y
    np.testing.assert_allclose(run(second, *args)[-1], -0.1905970813, rtol=1e-8)


def mid_body_exit() -> Any:
    """p = x·y; stop unless p < 10; x ← p + 1."""
    b = Build("mid_body_exit")
    x, y = params(b, "x y")
    p = b.mul(x, y)
    following = b.add(p, b.constant(1.0))
    graph = b.finish([p])
    inside = [p.node, following.node]
    loop = while_from(
        graph, inside, [p.node], [p.node], [following.node], {x: following}, value_below(10.0),
        reads=[p], initial={following: x},
    )  # fmt: skip
    return loop, x, p, following


@pytest.mark.parametrize(
    ("x", "p", "trips", "last", "slopes"),
    [(1.0, 14.0, 2, 7.0, (8.0, 17.0)), (6.0, 12.0, 0, 6.0, (2.0, 6.0))],
)
def test_an_exit_in_the_middle(x: float, p: float, trips: int, last: float, slopes: Any):
    loop, target, product, _ = mid_body_exit()
    assert run(loop.graph, x, 2.0) == [p]
    ends = loop.with_results(loop.at_exit(product), loop.trips, loop.at_exit(target))
    assert run(ends, x, 2.0) == [p, trips, last]
    assert gradient(loop.graph, x, 2.0) == [*slopes]


def test_a_value_after_the_test_needs_an_initial_one():
    loop, _, _, following = mid_body_exit()
    ends = loop.with_results(loop.at_exit(following))
    assert run(ends, 1.0, 2.0) == [7.0]
    assert run(ends, 6.0, 2.0) == [6.0]  # no trip is made


def case(b: Build, x: Value) -> tuple[list[list[Any]], Value, list[Value]]:
    """x < 0 → 0; [0, 1) → x; [1, 2) → .5x + .5; else 1.5"""
    # 0: zero, 1: half, 2: one and a half, −1: none
    three = [b.integer(k) for k in (0, -1, 1, 2)]
    k = b.select(b.lt(x, b.constant(2.0)), three[2], three[3])
    k = b.select(b.lt(x, b.constant(1.0)), three[1], k)
    k = b.select(b.lt(x, b.constant(0.0)), three[0], k)
    zero = b.constant(0.0)
    start = len(b.nodes)
    half = b.add(b.mul(x, b.constant(0.5)), b.constant(0.5))
    branch = b.nodes[start:]
    top = b.constant(1.5)
    return [[zero.node], branch, [top.node]], k, [x, zero, half, top]


@pytest.mark.parametrize(
    ("x", "y", "dx"), [(-1.0, 0.0, 0.0), (0.76, 0.76, 1.0), (1.226, 1.113, 0.5), (2.1, 1.5, 0.0)]
)
def test_one_branch_or_none(x: float, y: float, dx: float):
    b = Build("case")
    branches, k, row = case(b, b.param(F64, "x"))
    result = case_of(b.finish([row[2]]), branches, k, [row])
    np.testing.assert_allclose(run(result.graph, x), [y], rtol=1e-12)
    (slope,) = gradient(result.graph, x)
    assert slope == dx


@pytest.mark.parametrize(("x", "y", "dx"), [(1.226, 0.3042375, 0.01875), (0.8, 0.24, 0.3)])
def test_branches_in_a_loop(x: float, y: float, dx: float):
    b = Build("nested")
    start = b.param(F64, "x")
    branches, k, row = case(b, start)
    graph = b.finish([b.mul(row[2], b.constant(0.3))])
    branched = case_of(graph, branches, k, [row])
    inner = branched.graph
    scaled = inner.results[0].node
    inside = [n for n in inner.nodes if n is not scaled and n.operands]
    incoming = [n for n in inside if not any(x.node in inside for x in n.operands)]
    node = branched.node
    loop = while_from(
        inner, inside, incoming, [node], [node], {inner.params[0]: branched.outputs[0]}, below(3)
    )
    np.testing.assert_allclose(run(loop.graph, x), [y], rtol=1e-12)
    np.testing.assert_allclose(gradient(loop.graph, x), [dx], rtol=1e-12)


def test_branches_one_of_four():
    b = Build("four")
    x, k = b.param(F64, "x"), b.param(I64, "k")
    values = [b.emit(log_op, x), b.reciprocal(x), b.mul(x, x)]
    row = [x, *values]
    graph = b.finish([b.neg(values[1])])
    result = case_of(graph, [[v.node] for v in values], k, [row]).graph
    for number, expected in [(-1, 2.5), (0, np.log(2.5)), (1, 0.4), (2, 6.25), (3, 2.5)]:
        found = NUMPY.compile(result)([np.float64(2.5), np.int64(number)])
        np.testing.assert_allclose(found, [-expected])


# What breaks a rule, and the error for it
class Chain:
    """a = x·x; b = a + w; c = b·x, with y = c + 1 outside, after v = −x."""

    def __init__(self) -> None:
        b = Build("chain")
        self.x, self.w = params(b, "x w")
        self.i = b.param(I64, "i")
        self.v = b.neg(self.x)
        self.flat = b.reshape(b.broadcast_to(self.x, shape=(1,)), shape=())
        self.a = b.mul(self.x, self.x)
        self.b = b.add(self.a, self.w)
        self.c = b.mul(self.b, self.w)
        self.y = b.add(self.c, self.v)
        self.graph = b.finish([self.y])
        nodes = [value.node for value in (self.a, self.b, self.c)]
        self.parts: dict[str, Any] = {
            "nodes": nodes, "incoming": nodes[:1], "exit": nodes[-1:], "end": nodes[-1:],
            "carry": {self.x: self.c}, "cond": below(3),
        }  # fmt: skip


def test_the_chain_is_a_loop():
    chain = Chain()
    loop = while_from(chain.graph, **chain.parts)
    assert loop.node.op.name == "while"


def late(c: Chain) -> Any:
    return {"exit": [c.b.node], "cond": value_below(1.0), "reads": [c.c], "initial": {c.c: c.x}}


BROKEN: list[tuple[Any, str]] = [
    (lambda c: {"nodes": [*c.parts["nodes"], c.y.node], "exit": [c.y.node], "end": [c.y.node]},
     "add takes the result of neg from outside, and is not incoming"),
    (lambda c: {"exit": [c.b.node]}, "add reads the result of mul, which no exit node gives"),
    (lambda c: {"incoming": [c.a.node, c.b.node]}, "incoming add has a predecessor inside"),
    (lambda c: {"end": [c.b.node, c.c.node]}, "end node add has a successor inside"),
    (lambda c: {"nodes": [*c.parts["nodes"], c.v.node]}, "neg cannot be reached from an incoming"),
    (lambda c: {"nodes": [*c.parts["nodes"], c.v.node], "incoming": [c.a.node, c.v.node]},
     "neg leads to no exit and no end node"),
    (late, "the condition reads the result of mul, which comes after the exits"),
    (lambda c: {"carry": [(c.a, c.c)]}, "carry target the result of mul is written inside"),
    (lambda c: {"carry": [(c.x, c.c), (c.x, c.b)]}, "carry target `x` is used twice"),
    (lambda c: {"carry": {c.x: c.w}}, "carry source `w` is no product of the loop and no carry"),
    (lambda c: {"carry": {c.i: c.c}}, r"carry source the result of mul is f64\[\], and `i` i64"),
    (lambda c: {"carry": {c.flat: c.c}}, "the result of reshape is a view of another array"),
    (lambda c: {"exit": []}, "there is no exit node"),
    (lambda c: {"exit": [c.y.node]}, "add of exit is no node of the loop"),
    (lambda c: {"cond": value_below(1.0)}, r"the condition takes i64\[\] and f64\[\], not i64\[\]"),
    (lambda c: {"cond": c.graph, "reads": [c.x, c.w]}, "the condition takes"),
    (lambda c: {"initial": {c.y: c.x}}, "the result of add has an initial value, but no node"),
    (lambda c: {"carry": {c.y: c.c}}, "the result of add goes into the loop, and needs what comes"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_each_broken_rule_has_its_error(change: Any, message: str):
    chain = Chain()
    with pytest.raises(GraphError) as refused:
        while_from(chain.graph, **{**chain.parts, **change(chain)})
    text = re.sub(r" at test_\w+\.py:\d+", "", str(refused.value))
    assert re.match(f"while_from: .*{message}", text), text


def test_a_value_without_an_end_is_refused():
    loop, _, _, _ = mid_body_exit()
    with pytest.raises(GraphError, match="has no value at the exit"):
        loop.at_exit(loop.graph.params[1])
