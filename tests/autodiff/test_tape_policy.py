"""The seam for tape policies: keep-all and a strip-mining policy give the same derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.autodiff.activity import loop_activity
from wend.autodiff.loop_transpose import activity_fixpoint
from wend.autodiff.tape_policy import POLICIES, DifferentiatedLoop, KeepAll, LoopAdjoint
from wend.autodiff.transpose import Transposer
from wend.ir.graph import Graph, Node
from wend.ir.rewrite import copy_nodes
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_

TRIPS_A_CHUNK = 4


class StripMining:
    """Keep the carry of every fourth trip and run the trips between again in the backward pass."""

    def adjoint(self, t: Transposer, loop: DifferentiatedLoop) -> LoopAdjoint:
        node = strip_mined(loop.node, TRIPS_A_CHUNK)
        w = WhileParts.of(node)
        activity = loop_activity(w, loop.active_operands)
        nonzero = activity_fixpoint(t, w, activity, frozenset(loop.nonzero.forwarded))
        mined = DifferentiatedLoop(node, loop.active_operands, activity, nonzero)
        return KeepAll().adjoint(t, mined)


def strip_mined(node: Node, trips: int) -> Node:
    """`while p: body` as `while p: call{recompute}(body; while p and i < trips: body)`."""
    w, b = WhileParts.of(node), Build("chunked")
    chunk = _chunk(w, trips)
    after = Build("after")
    params = [after.param(param.type, param.name) for param in w.after.params]
    call = after.call(chunk, params, recompute=True)
    return b.while_(w.carry, w.invariants, w.before, after.finish(call.results))


def _chunk(w: WhileParts, trips: int) -> Graph:
    """(forwarded…, invariants…) to the carry after at most so many trips."""
    b = Build("chunk")
    mapping = {param: b.param(param.type, param.name) for param in w.after.params}
    invariants = [mapping[param] for param in w.after_invariants]
    b.nodes += copy_nodes(w.after.nodes, mapping)
    carry = [*(mapping[value] for value in w.next_carry), b.integer(1)]
    loop = b.while_(carry, invariants, _chunk_before(w, trips), _chunk_after(w))
    return b.finish(loop.results[: len(w.carry)])


def _chunk_before(w: WhileParts, trips: int) -> Graph:
    """Forwards the carry beside what the loop forwards, since the chunk returns the carry."""
    b = Build("before")
    mapping = {param: b.param(param.type) for param in w.before_carry}
    count = b.param(w.predicate.tensor.with_dtype(np.dtype(np.int64)))
    mapping.update({param: b.param(param.type) for param in w.before_invariants})
    b.nodes += copy_nodes(w.before.nodes, mapping)
    goes_on = b.emit(elementwise.bit_and, mapping[w.predicate], b.lt(count, b.integer(trips)))
    carry = [mapping[param] for param in w.before_carry]
    return b.finish([goes_on, *carry, count, *(mapping[value] for value in w.forwarded)])


def _chunk_after(w: WhileParts) -> Graph:
    b = Build("after")
    for param in w.before_carry:
        b.param(param.type)
    count = b.param(w.predicate.tensor.with_dtype(np.dtype(np.int64)))
    mapping = {param: b.param(param.type) for param in w.after_forwarded}
    mapping.update({param: b.param(param.type) for param in w.after_invariants})
    b.nodes += copy_nodes(w.after.nodes, mapping)
    return b.finish([*(mapping[value] for value in w.next_carry), b.add(count, b.integer(1))])


@pytest.fixture(autouse=True)
def _policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "strip-mining", StripMining())


def orbit(memory: str, invariant: Any = 0.3) -> Any:
    """A loop with an invariant that is differentiated, too."""

    def fun(x: Any, a: Any) -> Any:
        return wend.while_loop(
            lambda c: c[0] < 20.0,
            lambda c: (c[0] + wnp.exp(a * wnp.sin(c[1])), c[1] * 1.1 + a * c[0]),
            (x, x * 0.5),
            memory=memory,
        )[1]

    return fun


def rows(memory: str) -> Any:
    def fun(x: Any, a: Any) -> Any:
        steps = wnp.linspace(0.1, 1.0, 11)
        last, ys = wend.scan(lambda c, t: (wnp.sin(c * a + t), c * t), x, steps, memory=memory)
        return last + wnp.sum(ys * ys)

    return fun


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("program", [orbit, rows])
@pytest.mark.parametrize("x", [0.5, 25.0])  # 25: the first loop makes no trip
def test_policies_give_the_same_derivatives(program: Any, x: float, backend: str) -> None:
    with wend.config(backend=backend):
        keep, mined = program("keep"), program("strip-mining")
        assert mined(x, 0.3) == keep(x, 0.3)
        first = [wend.grad(fun, (0, 1))(x, 0.3) for fun in (keep, mined)]
        np.testing.assert_allclose(first[1], first[0], rtol=1e-14)
        second = [wend.grad(wend.grad(fun))(x, 0.3) for fun in (keep, mined)]
        np.testing.assert_allclose(second[1], second[0], rtol=1e-12)
        forward = [wend.jvp(fun, (x, 0.3), (1.0, 0.5))[1] for fun in (keep, mined)]
        assert forward[1] == forward[0]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_trips_that_run_again_make_no_checks(backend: str) -> None:
    def fun(x: Any) -> Any:
        def body(c: Any) -> Any:
            wend.raise_if(c > 50.0, ValueError, "{:.1f} is large", c)
            return c + wnp.exp(wnp.sin(c * x))

        return wend.while_loop(lambda c: c < 20.0 * x, body, x, memory="strip-mining")

    for transform in (wend.grad, lambda fun: wend.grad(wend.grad(fun))):
        derivative = wend.function(transform(fun), backend=backend)
        assert np.isfinite(derivative(0.5))
        with pytest.raises(ValueError, match="is large"):
            derivative(4.0)
        assert (
            derivative.get_concrete_function(0.5).graph.count("raise_if") == 2
        )  # of the two loops of the forward pass


def loops(graph: Graph) -> list[Node]:
    """The loops that are not run again, wherever they stand."""
    nodes = [node for node in graph.nodes if not node.attrs.get("recompute")]
    inner = [loop for node in nodes for region in node.regions for loop in loops(region)]
    return [*(node for node in nodes if node.op is while_), *inner]


def gradient_loops(memory: str) -> list[Node]:
    forward, backward = loops(wend.grad(orbit(memory)).get_concrete_function(0.5, 0.3).graph)
    return [forward, backward]


def test_the_policy_decides_what_is_recorded() -> None:
    forward, backward = gradient_loops("strip-mining")
    calls = [node for loop in (forward, backward) for node in loop.regions[1].nodes]
    assert [node.attrs for node in calls if node.op.name == "call"] == [{"recompute": True}] * 2
    # Four trips are one, and what a chunk starts from is all that it records.
    (chunk,) = [node for node in forward.regions[1].nodes if node.op.name == "call"]
    pushed = [
        node.operands[1]
        for region in forward.regions
        for node in region.nodes
        if node.op.name == "list_push"
    ]
    assert pushed
    assert {*pushed} <= {*forward.regions[1].params, *forward.regions[0].params}
    assert chunk.regions[0].count("list_push") == 0


def test_the_backward_loop_inherits_the_policy_and_keep_is_no_attribute() -> None:
    assert all("memory" not in loop.attrs for loop in gradient_loops("keep"))
    assert gradient_loops("strip-mining")[1].attrs["memory"] == "strip-mining"


def test_a_policy_that_is_not_built_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="memory='spill'"):
        orbit("spill")(0.5, 0.3)
