"""The tape of a loop: which values the forward loop records for the backward loop (D11).

Records are chosen by a minimum cut over bytes (`residuals.py`). Constants, invariants and counters
are never recorded. A value that `after` receives was forwarded by `before`, and a value that
`after` yields is the next carry of `before`, so both are looked up among the records of `before`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import replace

from wend.autodiff.backward import is_shape_read
from wend.autodiff.loop_transpose import TRIP_COUNT, Transposed
from wend.autodiff.residuals import min_cut_residuals
from wend.autodiff.tape_limit import limited
from wend.base.lazy.dataclass import dataclass
from wend.base.memory import LEAVES_MEMORY
from wend.base.source import at
from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.types import HOST, ListType, Symbol, Type, substitute, symbols
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.ops.creating import is_constant
from wend.ops.loop_counters import Counter
from wend.ops.loop_counters import counters as counters_of
from wend.ops.spilling import is_spilled


@dataclass(frozen=True, slots=True)
class TapePlan:
    """Which forward values a loop records, and where the others are found.

    Attributes:
        counters: carries of `before` that are computed from the trip number.
        forwarded: for each param of `after`, the value of `before` that it receives.
        next_carries: for each value that `after` yields and the backward loop reads, the carry of
            `before` that holds it in the next trip.
        before_records: the values recorded in each run of `before`.
        after_records: the values recorded in each run of `after`.
        before_spilled: the values that each run of `before` writes to a segment.
        after_spilled: likewise of `after`.
    """

    counters: dict[Value, Counter]
    forwarded: dict[Value, Value]
    next_carries: dict[Value, Value]
    before_records: Sequence[Value]
    after_records: Sequence[Value]
    before_spilled: Sequence[Value] = ()
    after_spilled: Sequence[Value] = ()


def plan_tape(
    w: WhileParts,
    before: Transposed,
    after: Transposed,
    read_only: Container[Value] = (),
    changing: Collection[int] = (),
) -> TapePlan:
    """Choose the records of a loop from what the transposes of its regions read.

    Args:
        w: the loop.
        before: the transpose of its first region.
        after: that of its second region.
        read_only: params that hold arrays whose elements may be read again.
        changing: the positions of invariants of which parts are kept.
    """
    counters = counters_of(w)
    forwarded = dict(zip(w.after_forwarded, w.forwarded, strict=True))
    carry_of = dict(zip(w.next_carry, w.before_carry, strict=True))
    after_reads = after.reads()
    next_carries = {
        value: carry_of[value]
        for value in after_reads
        if value in carry_of and value.node is not None and not is_constant(value)
    }
    before_steady = _steady(before, w.before, w.before_invariants, changing)
    before_available = {*before_steady, *counters}
    after_available = {v for v, source in forwarded.items() if source in before_available}
    after_steady = _steady(after, w.after, w.after_invariants, changing)
    after_cut = min_cut_residuals(
        after_reads, {*after_steady, *next_carries, *after_available}, read_only
    )
    after_residuals = [value for value in after_cut if value not in w.after_invariants]
    before_reads = [*before.reads(), *next_carries.values()]
    before_residuals = set(min_cut_residuals(before_reads, before_available, read_only))

    # A carry that `before` merely forwards is recorded by `after`, which runs once less.
    def is_recorded_by_before(value: Value) -> bool:
        source = forwarded.get(value)
        if source is None:
            return False
        return source not in w.before_carry or source in before_residuals

    from_before = [value for value in after_residuals if is_recorded_by_before(value)]
    needed = [*before_reads, *(forwarded[value] for value in from_before)]
    before_cut = min_cut_residuals(needed, before_available, read_only)
    before_records = [value for value in before_cut if value not in w.before_invariants]
    after_records = [value for value in after_residuals if value not in from_before]
    plan = TapePlan(counters, forwarded, next_carries, before_records, after_records)
    return _with_segments(plan) if w.applied in LEAVES_MEMORY else plan


def _steady(
    transposed: Transposed, region: Graph, invariants: Sequence[Value], changing: Collection[int]
) -> set[Value]:
    """Return the invariants that cost nothing to keep, and the sizes of the others."""
    changed = {invariants[k] for k in changing}
    if not changed:
        return {*invariants}
    nodes = (*region.nodes, *transposed.b.forward_shape_reads)
    sizes = {x.results[0] for x in nodes if is_shape_read(x) and x.operands[0] in changed}
    return {*invariants} - changed | sizes


def _with_segments(plan: TapePlan) -> TapePlan:
    """Return a plan whose larger records are written to segments."""

    def split(records: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        spilled = [value for value in records if is_spilled(value.type)]
        return [value for value in records if value not in spilled], spilled

    before, before_spilled = split(plan.before_records)
    after, after_spilled = split(plan.after_records)
    return replace(
        plan,
        before_records=before,
        after_records=after,
        before_spilled=before_spilled,
        after_spilled=after_spilled,
    )


@dataclass(frozen=True, slots=True)
class RecordingLoop:
    """The forward loop with a trip count and a list for each recorded value.

    Attributes:
        nodes: the nodes that replace the forward loop; the last is the loop itself.
        trips: its trip count.
        lists: the list of each recorded value.
        segments: for each spilled value the list of segments, and its index in each of them.
    """

    nodes: Sequence[Node]
    trips: Value
    lists: dict[Value, Value]
    segments: dict[Value, tuple[Value, int]]


def recording_loop(
    node: Node, plan: TapePlan, before: Transposed, after: Transposed
) -> RecordingLoop:
    """Build the loop that also counts its trips and records the values of a plan."""
    return _RecordingLoopBuilder(WhileParts.of(node), plan, before, after).build(node)


class _RecordingLoopBuilder:
    """Adds a trip count and lists of records to the carry of a loop."""

    def __init__(
        self, w: WhileParts, plan: TapePlan, before: Transposed, after: Transposed
    ) -> None:
        self.w, self.plan, self.before, self.after = w, plan, before, after
        self.before_types = _record_types(plan.before_records, plan.before_spilled)
        self.after_types = _record_types(plan.after_records, plan.after_spilled)

    @property
    def is_limited(self) -> bool:
        """Whether the loop stops at its limit, which a loop that spills does not reach."""
        return self.w.limit > 0 and self.w.applied not in LEAVES_MEMORY

    def build(self, node: Node) -> RecordingLoop:
        b, w, plan = Build(""), self.w, self.plan
        b.source = node.source
        new_lists = [b.list_new(type) for type in (*self.before_types, *self.after_types)]
        carry = [*w.carry, b.integer(0), *new_lists]
        before, after = self._before_region(), self._after_region()
        loop = b.while_(
            carry,
            w.invariants,
            before,
            after,
            applied=w.applied,
            limit=w.limit,
            parallel_iterations=w.parallel_iterations,
        )
        trips, *final_lists = loop.results[len(w.forwarded) :]
        lists: dict[Value, Value] = {}
        segments: dict[Value, tuple[Value, int]] = {}
        remaining = iter(final_lists)
        for records, spilled in (
            (plan.before_records, plan.before_spilled),
            (plan.after_records, plan.after_spilled),
        ):
            lists.update(zip(records, remaining, strict=False))
            if spilled:
                handles = next(remaining)
                segments.update({value: (handles, k) for k, value in enumerate(spilled)})
        return RecordingLoop(b.nodes, trips, lists, segments)

    def _before_region(self) -> Graph:
        region = _RecordingRegion(self, self.w.before, len(self.w.carry), self.before)
        plan = self.plan
        pushed = region.push(region.before_lists, plan.before_records, plan.before_spilled)
        trips = region.trips
        if self.is_limited:
            records = [region.mapping[value] for value in self.plan.before_records]
            trips = limited(region.b, trips, records, self.after_types, self.w)
        return region.finish([trips, *pushed, *region.after_lists])

    def _after_region(self) -> Graph:
        region = _RecordingRegion(self, self.w.after, len(self.w.forwarded), self.after)
        plan = self.plan
        pushed = region.push(region.after_lists, plan.after_records, plan.after_spilled)
        trips = region.b.add(region.trips, region.b.integer(1))
        if self.is_limited:
            records = [region.mapping[value] for value in self.plan.after_records]
            trips = limited(region.b, trips, records, self.before_types, self.w)
        return region.finish([trips, *region.before_lists, *pushed])


class _RecordingRegion:
    """A copy of a region, with a trip count and lists after its first params and results."""

    def __init__(
        self, loop: _RecordingLoopBuilder, region: Graph, varying: int, transposed: Transposed
    ) -> None:
        b = self.b = Build(region.name)
        b.source = loop.w.source
        self.loop, self.region = loop, region
        self.mapping = {v: b.param(v.type, v.name) for v in region.params[:varying]}
        self.trips = b.param(TRIP_COUNT)
        self.before_lists = [b.param(ListType(type)) for type in loop.before_types]
        self.after_lists = [b.param(ListType(type)) for type in loop.after_types]
        self.mapping |= {v: b.param(v.type, v.name) for v in region.params[varying:]}
        b.nodes += copy_nodes(region.nodes, self.mapping, transposed.bwd.replaced)
        b.nodes += copy_nodes(transposed.b.forward_shape_reads, self.mapping)

    def push(
        self, lists: Sequence[Value], records: Sequence[Value], spilled: Sequence[Value]
    ) -> list[Value]:
        values = [self.mapping[value] for value in records]
        if spilled:
            values.append(
                self.b.spill(
                    [self.mapping[value] for value in spilled],
                    limit=self.loop.w.limit,
                    loop=at(self.loop.w.source),
                    memory=self.loop.w.applied,
                )
            )
        pairs = zip(lists, values, strict=True)
        return [self.b.list_push(list, value) for list, value in pairs]

    def finish(self, recorded: Sequence[Value]) -> Graph:
        return self.b.finish([*(self.mapping[v] for v in self.region.results), *recorded])


def _record_types(records: Sequence[Value], spilled: Sequence[Value]) -> list[Type]:
    """Return the types of what a region records in a trip."""
    return [*map(record_type, records), *([HOST] if spilled else [])]


def record_type(value: Value) -> Type:
    """Return the type of a record; sizes that may differ from trip to trip get new symbols."""
    names: dict[Symbol, Symbol] = {symbol: new_symbol() for symbol in symbols(value.type)}
    return substitute(value.type, names)
