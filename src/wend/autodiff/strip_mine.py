"""Strip-mining of loops: what `memory="recompute"` and `Every(k)` differentiate (D31).

`while p: body` becomes `while p: call{recompute}(k trips of the same loop)`. The rule of the call
keeps what it starts from and nothing else, so the tape has one record for k trips. The predicate
and the values that `before` forwards are carried, so `before` runs once more than `after`, as in
the loop itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.loop_transpose import TRIP_COUNT
from wend.base.memory import Every, parsed
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import PREDICATE, WhileParts


def rewritten(node: Node) -> Graph:
    """Return the graph that the policy of a loop differentiates in its place."""
    policy = parsed(WhileParts.of(node).memory)
    return strip_mined(node, policy.trips if isinstance(policy, Every) else 1)


def strip_mined(node: Node, trips: int) -> Graph:
    """Return a graph with the operands and results of a loop, which keeps a record per segment."""
    return _StripMine(WhileParts.of(node), trips).graph()


class _StripMine:
    def __init__(self, w: WhileParts, trips: int) -> None:
        self.w, self.trips = w, trips
        names = [value.name for value in w.forwarded]
        self.forwarded = [
            Value(param.type, name=param.name or name)
            for param, name in zip(w.after_forwarded, names, strict=True)
        ]
        self.invariants = w.after_invariants

    def graph(self) -> Graph:
        b, w = self._build("mined"), self.w
        carry = _params(b, w.carry)
        invariants = _params(b, w.invariants)
        first = inline(w.before, [*carry, *invariants], b.nodes)
        loop = b.while_(first, invariants, self._before(), self._after(), applied=w.memory)
        return b.finish(loop.results)

    def _build(self, name: str) -> Build:
        b = Build(name)
        b.source = self.w.source
        return b

    def _before(self) -> Graph:
        """(predicate, forwarded…, invariants…) to the predicate and the forwarded values."""
        b = self._build("before")
        predicate = b.param(PREDICATE)
        forwarded = _params(b, self.forwarded)
        _params(b, self.invariants)
        return b.finish([predicate, *forwarded])

    def _after(self) -> Graph:
        """(forwarded…, invariants…) to the predicate and the forwarded values of the next."""
        b = self._build("after")
        params = _params(b, self.w.after.params)
        segment = self._trip("trip") if self.trips == 1 else self._segment()
        return b.finish(b.call(segment, params, recompute=True).results)

    def _trip(self, name: str) -> Graph:
        """(forwarded…, invariants…) to the predicate and what is forwarded, one trip on."""
        b = self._build(name)
        forwarded, invariants = _params(b, self.forwarded), _params(b, self.invariants)
        return b.finish(self._one_trip(b, forwarded, invariants))

    def _one_trip(
        self, b: Build, forwarded: Sequence[Value], invariants: Sequence[Value]
    ) -> Sequence[Value]:
        carry = inline(self.w.after, [*forwarded, *invariants], b.nodes)
        return inline(self.w.before, [*carry, *invariants], b.nodes)

    def _segment(self) -> Graph:
        """Make trips while the predicate holds, at most so many."""
        b = self._build("segment")
        forwarded, invariants = _params(b, self.forwarded), _params(b, self.invariants)
        carry = [b.constant(True), *forwarded, b.integer(0)]
        before, after = self._segment_before(), self._segment_after()
        return b.finish(b.while_(carry, invariants, before, after).results[:-1])

    def _segment_before(self) -> Graph:
        b = self._build("before")
        predicate = b.param(PREDICATE)
        forwarded = _params(b, self.forwarded)
        count = b.param(TRIP_COUNT)
        _params(b, self.invariants)
        is_within = b.lt(count, b.integer(self.trips))
        goes_on = b.emit(elementwise.bit_and, predicate, is_within)
        return b.finish([goes_on, predicate, *forwarded, count])

    def _segment_after(self) -> Graph:
        b = self._build("after")
        b.param(PREDICATE)
        forwarded = _params(b, self.forwarded)
        count = b.param(TRIP_COUNT)
        invariants = _params(b, self.invariants)
        results = self._one_trip(b, forwarded, invariants)
        return b.finish([*results, b.add(count, b.integer(1))])


def _params(b: Build, like: Sequence[Value]) -> list[Value]:
    return [b.param(value.type, value.name) for value in like]
