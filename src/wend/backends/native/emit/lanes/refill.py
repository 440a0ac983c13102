"""One loop for all elements, whose lanes take the next element when one is done.

A refill costs as much as some trips, so lanes that are done wait for each other. They take the next
elements when the trips that all lanes together have missed would have taken about as long as a
refill, or none goes on. So elements whose trips are short and alike run in groups, and lanes of
others are refilled often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import isfinite

from wend.backends.native.emit.lanes.elements import LaneElements
from wend.backends.native.emit.lanes.stack_variables import StackVariable, StackVariables
from wend.backends.native.emit.lanes.vectors import count_from, splat
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node
from wend.ops.control import WhileParts
from wend.passes.lane_maps import is_elementwise

# The time of a refill, of an operation whose time is not known, and of the test of a loop, in ns
_REFILL_TIME, _ASSUMED_TIME, _TEST_TIME = 64.0, 1.0, 0.05
# An estimate may be off: lanes together miss so many trips at least, and each so many at most
_FEWEST_MISSED, _MOST_MISSED = 8, 3


def missed_trips(loop: Node, lanes: int) -> int:
    """Return how many trips all lanes miss before those that are done take the next elements."""
    nodes = (node for region in loop.regions for node in region.walk())
    costs = [node.op.cost for node in nodes if is_elementwise(node)]
    time = _TEST_TIME + sum(cost if isfinite(cost) else _ASSUMED_TIME for cost in costs)
    return max(_FEWEST_MISSED, min(_MOST_MISSED * lanes, int(_REFILL_TIME / time)))


@dataclass(eq=False, slots=True)
class RefilledLoop:
    """The loop that is being emitted.

    Attributes:
        elements: the elements of the map.
        loop: the loop of an element.
        index: the numbers of the elements in the lanes.
        following: the element that is taken next.
        missed: the trips that lanes have missed since the last refill.
        has_elements: whether a lane has an element.
        columns: the numbers in memory of the elements in the lanes.
        state: the carry and the invariants of the loop.
    """

    elements: LaneElements
    loop: Node
    index: StackVariable = field(init=False)
    following: StackVariable = field(init=False)
    missed: StackVariable = field(init=False)
    has_elements: StackVariable = field(init=False)
    columns: StackVariables = field(init=False)
    state: StackVariables = field(init=False)

    @property
    def before(self) -> Sequence[Node]:
        """The nodes before the loop."""
        nodes = self.elements.body.nodes
        return nodes[: nodes.index(self.loop)]

    def emit(self, first: str) -> None:
        """Emit the loop, from an element on."""
        e, p = self.elements, WhileParts.of(self.loop)
        w = e.low.w
        index = count_from(e.low, e.lanes, first)
        mask = e.in_range(index)
        columns = e.loaded(first, mask, None)
        e.emit_nodes(self.before, columns, mask)
        operands = [e.regions.values[x] for x in self.loop.operands]
        self.index = StackVariable.of(w, e.word.text, index)
        self.following = StackVariable.of(w, "i64", w.define(f"add i64 {first}, {e.lanes}"))
        self.missed = StackVariable.of(w, "i64", "0")
        self.has_elements = StackVariable.of(w, "i1", "true")
        self.columns = e.regions.variables(e.columns, columns)
        self.state = e.regions.variables([*p.before_carry, *p.before_invariants], operands)
        head, done = w.new_label("head"), w.new_label("done")
        w.jump(head)
        w.start(head)
        self._emit_trip(p)
        w.branch(self.has_elements.load(), head, done)
        w.start(done)

    def begin_trip(self) -> None:
        """Emit what precedes a trip."""

    def may_take(self) -> str:
        """Emit whether lanes may take more elements."""
        return "true"

    def finish(self, index: str, is_done: str, forwarded: Sequence[str]) -> None:
        """Emit what follows the loop for the elements that are done, and store their results."""
        e = self.elements
        after = e.body.nodes[len(self.before) + 1 :]
        e.emit_nodes(self.before, self.columns.load(), is_done)
        e.regions.values.update(zip(self.loop.results, forwarded, strict=True))
        e.regions.emit_nodes(after, is_done)
        e.scatter(index, is_done)

    def _emit_trip(self, p: WhileParts) -> None:
        e, regions, w = self.elements, self.elements.regions, self.elements.low.w
        self.begin_trip()
        state = self.state.load()
        carry, invariants = state[: len(p.carry)], state[len(p.carry) :]
        active = e.in_range(self.index.load())
        test, *forwarded = regions.emit(p.before, state, active)
        goes_on = regions.both(active, test)
        is_done = w.define(f"xor {regions.flags.text} {active}, {goes_on}")
        following = regions.emit(p.after, [*forwarded, *invariants], goes_on)
        carry = regions.choose(goes_on, p.next_carry, following, carry)
        self.state.store([*carry, *invariants])
        done_count = e.number_of(is_done)
        missed = w.define(f"add i64 {self.missed.load()}, {done_count}")
        self.missed.store(missed)

        def is_time() -> str:
            none = w.define(f"xor i1 {regions.any(goes_on)}, true")
            enough = w.define(f"icmp sge i64 {missed}, {missed_trips(self.loop, e.lanes)}")
            return w.define(f"or i1 {enough}, {none}")

        def refill() -> None:
            self._refill(p, is_done, done_count, forwarded)

        w.when(("refill", "again"), is_time, refill)
        regions.end_trip()

    def _refill(
        self, p: WhileParts, is_done: str, done_count: str, forwarded: Sequence[str]
    ) -> None:
        """Emit a refill of the lanes that are done."""
        e, regions, w = self.elements, self.elements.regions, self.elements.low.w
        word, count = e.word, len(p.carry)
        index, following, state = self.index.load(), self.following.load(), self.state.load()
        self.finish(index, is_done, forwarded)
        may_take, no_element = self.may_take(), splat(e.low, word, e.count)
        taken = w.define(
            f"select i1 {may_take}, {word.text} {e.taken(following, is_done)}, "
            f"{word.text} {no_element}"
        )
        taken_count = w.define(f"select i1 {may_take}, i64 {done_count}, i64 0")
        index = regions.select(word, is_done, taken, index)
        in_range = e.in_range(index)
        fresh = regions.both(is_done, in_range)
        columns = e.loaded(following, fresh, self.columns.load())
        e.emit_nodes(self.before, columns, fresh)
        operands = [regions.values[x] for x in self.loop.operands]
        carry = regions.choose(fresh, p.carry, operands[:count], state[:count])
        self.index.store(index)
        self.following.store(w.define(f"add i64 {following}, {taken_count}"))
        self.missed.store("0")
        self.has_elements.store(regions.any(in_range))
        self.columns.store(columns)
        self.state.store([*carry, *operands[count:]])
