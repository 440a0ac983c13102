"""Forward mode of `While`: one loop, whose tangents are further carries."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.jvp_interpreter import JvpFrame, JvpInterpreter, JvpResult, Tangent
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import WhileParts


def jvp_while(p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
    """Append the loop of values and tangents."""
    w = WhileParts.of(node)
    loop = _JvpLoop(p, w, [tangent is not ZERO for tangent in tangents])
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
    ).results
    results, result_tangents = (
        results_and_tangents[: len(w.forwarded)],
        iter(results_and_tangents[len(w.forwarded) :]),
    )
    return JvpResult(
        results, [next(result_tangents) if is_active else ZERO for is_active in loop.forwarded]
    )


class _JvpLoop:
    """The regions with tangents, after the active carries have been found by a fixpoint.

    A carry is active when its start or its next value is: one more iteration for each carry that
    only becomes active inside the loop.
    """

    def __init__(self, p: JvpInterpreter, w: WhileParts, is_active: Sequence[bool]) -> None:
        self.w = w
        self.carry = list(is_active[: len(w.carry)])
        invariants = is_active[len(w.carry) :]
        while True:
            self.before, self.before_tangents = p.jvp_region(w.before, [*self.carry, *invariants])
            self.forwarded = _active(self.before, w.forwarded)
            self.after, self.after_tangents = p.jvp_region(w.after, [*self.forwarded, *invariants])
            next_active = _active(self.after, w.next_carry)
            grown = [old or new for old, new in zip(self.carry, next_active, strict=True)]
            if grown == self.carry:
                return
            self.carry = grown

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


def _active(region: JvpFrame, values: Sequence[Value]) -> list[bool]:
    return [region.tangent(value) is not ZERO for value in values]


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
