"""Forward mode of `While`: one loop, whose tangents are further carries."""

from __future__ import annotations

from collections.abc import Sequence
from operator import or_

from wend.autodiff.jvp_interpreter import JvpFrame, JvpInterpreter, JvpResult, Tangent
from wend.base.zero import ZERO, Zero
from wend.ir.dataflow import flow_forward
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import WhileParts


def jvp_while(p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
    """Append the loop of values and tangents."""
    w = WhileParts.of(node)
    loop = _JvpLoop(p, node, [tangent is not ZERO for tangent in tangents])
    carry = [
        b.zeros_like(value) if isinstance(tangent, Zero) else tangent
        for value, tangent, is_active in zip(w.carry, tangents, loop.carry, strict=False)
        if is_active
    ]
    invariants = [t for t in tangents[len(w.carry) :] if not isinstance(t, Zero)]
    before, after = loop.before_graph(), loop.after_graph()
    results_and_tangents = b.while_(
        [*w.carry, *carry],
        [*w.invariants, *invariants],
        before,
        after,
        memory=w.memory,
        applied=w.applied,
        limit=w.limit,
        parallel_iterations=w.parallel_iterations,
    ).results
    results, result_tangents = (
        results_and_tangents[: len(w.forwarded)],
        iter(results_and_tangents[len(w.forwarded) :]),
    )
    return JvpResult(
        results, [next(result_tangents) if is_active else ZERO for is_active in loop.forwarded]
    )


class _JvpLoop:
    """The regions with tangents.

    A carry is active when its start or its next value is.
    """

    def __init__(self, p: JvpInterpreter, node: Node, is_active: Sequence[bool]) -> None:
        self.w = w = WhileParts.of(node)
        frames: dict[int, tuple[JvpFrame, list[Value]]] = {}

        def transfer(k: int, params: Sequence[bool]) -> list[bool]:
            frame, _ = frames[k] = p.jvp_region(node.regions[k], params)
            return [frame.tangent(value) is not ZERO for value in node.regions[k].results]

        flow = flow_forward(node, is_active, or_, transfer)
        self.before, self.before_tangents = frames[0]
        self.after, self.after_tangents = frames[1]
        self.carry, self.forwarded = flow.entered[0][: len(w.carry)], flow.node

    def before_graph(self) -> Graph:
        forwarded = _chosen(self.w.forwarded, self.forwarded)
        results = [self.before.values[value] for value in self.w.before.results]
        results += self.before.tangents_of(forwarded)
        return _finish_region(
            self.before, self.before_tangents, len(self.w.carry), sum(self.carry), results
        )

    def after_graph(self) -> Graph:
        results = [self.after.values[value] for value in self.w.next_carry]
        results += self.after.tangents_of(_chosen(self.w.next_carry, self.carry))
        return _finish_region(
            self.after, self.after_tangents, len(self.w.forwarded), sum(self.forwarded), results
        )


def _chosen(values: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]


def _finish_region(
    region: JvpFrame,
    tangents: Sequence[Value],
    carry_count: int,
    carry_tangents: int,
    results: Sequence[Value],
) -> Graph:
    """Return the graph, with each tangent's param behind those of its kind: carry, invariants."""
    values = region.b.params[: len(region.b.params) - len(tangents)]
    params = [
        *values[:carry_count],
        *tangents[:carry_tangents],
        *values[carry_count:],
        *tangents[carry_tangents:],
    ]
    return Graph(region.b.name, tuple(params), tuple(region.b.nodes), tuple(results))
