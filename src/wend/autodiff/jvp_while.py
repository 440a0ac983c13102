"""Forward mode of `While`: one loop, whose tangents are further carries."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.jvp_interpreter import (
    JvpFrame,
    JvpInterpreter,
    JvpResult,
    Tangent,
)
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import WhileParts


def jvp_while(p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
    """Append the loop of values and tangents."""
    w = WhileParts.of(node)
    loop = _Loop(p, w, [tangent is not ZERO for tangent in tangents])
    carry = [
        b.zeros_like(value) if isinstance(tangent, Zero) else tangent
        for value, tangent, moves in zip(w.carry, tangents, loop.carry, strict=False)
        if moves
    ]
    invariants = [t for t in tangents[len(w.carry) :] if not isinstance(t, Zero)]
    found = b.while_(
        [*w.carry, *carry], [*w.invariants, *invariants], loop.before_graph(), loop.after_graph()
    ).results
    results, moved = found[: len(w.forwarded)], iter(found[len(w.forwarded) :])
    return JvpResult(results, [next(moved) if moves else ZERO for moves in loop.forwarded])


class _Loop:
    """The regions with tangents, once it is settled which carries have one.

    A carry has a tangent when its start has one, or its next value: one more round for each that
    only gets it on the way.
    """

    def __init__(self, p: JvpInterpreter, w: WhileParts, moves: Sequence[bool]) -> None:
        self.w = w
        self.carry = list(moves[: len(w.carry)])
        invariants = moves[len(w.carry) :]
        while True:
            self.before, self.before_tangents = p.jvp_region(w.before, [*self.carry, *invariants])
            self.forwarded = _moving(self.before, w.forwarded)
            self.after, self.after_tangents = p.jvp_region(w.after, [*self.forwarded, *invariants])
            following = _moving(self.after, w.next_carry)
            grown = [old or new for old, new in zip(self.carry, following, strict=True)]
            if grown == self.carry:
                return
            self.carry = grown

    def before_graph(self) -> Graph:
        forwarded = _chosen(self.w.forwarded, self.forwarded)
        results = [self.before.values[value] for value in self.w.before.results]
        results += self.before.tangents_of(forwarded)
        return _finish(
            self.before, self.before_tangents, len(self.w.carry), sum(self.carry), results
        )

    def after_graph(self) -> Graph:
        results = [self.after.values[value] for value in self.w.next_carry]
        results += self.after.tangents_of(_chosen(self.w.next_carry, self.carry))
        return _finish(
            self.after, self.after_tangents, len(self.w.forwarded), sum(self.forwarded), results
        )


def _moving(region: JvpFrame, values: Sequence[Value]) -> list[bool]:
    return [region.tangent(value) is not ZERO for value in values]


def _chosen(values: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]


def _finish(
    region: JvpFrame, tangents: Sequence[Value], given: int, moving: int, results: Sequence[Value]
) -> Graph:
    """The graph, each tangent's param behind those of its kind: given values, invariants."""
    values = region.b.params[: len(region.b.params) - len(tangents)]
    params = [*values[:given], *tangents[:moving], *values[given:], *tangents[moving:]]
    return Graph(region.b.name, tuple(params), tuple(region.b.nodes), tuple(results))
