"""The blocks of a loop: its trips, and a copy of small innermost loops without range checks.

Such a loop is emitted twice. A guard before it tests that all positions of the trips are in range
(`range_guards.py`). Where it holds, the copy runs, which has neither range checks nor a safepoint
in its trips; LLVM can vectorize it. Else the loop runs as it is, so it fails in the same trip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.analysis.affine_positions import counted_accesses, tape_reads
from wend.backends.native.analysis.list_classes import Arena, ListClass
from wend.backends.native.analysis.vectorizable_loops import is_vectorizable
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import FrameState
from wend.backends.native.emit.control.precompute import (
    LookaheadPlan,
    emit_lookahead,
    find_lookahead,
)
from wend.backends.native.emit.control.range_guards import (
    MAX_TRIPS,
    RangeGuard,
    emit_range_guard,
    range_guard_of_tapes,
)
from wend.backends.native.emit.control.short_loops import is_short, max_short_trips
from wend.backends.native.emit.scalar.elements import can_widen
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers, is_scalar, registers
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, without_maybe
from wend.ops.control import WhileParts
from wend.ops.frame_states import contents_in, trip_state
from wend.ops.updating import ELEMENT_POSITIONS

# A loop that carries only scalars first reads the clock after this many trips.
_SCALAR_LOOP_FIRST_SAFEPOINT = 16
# So many loops of a function have a copy, so that code stays in proportion to the program.
MAX_GUARDED_LOOPS = 24


@dataclass(frozen=True, slots=True)
class _EnteredLoop:
    """A loop as it is entered.

    Attributes:
        low: the lowering of the function.
        node: the loop.
        parts: its parts.
        invariant_slots: the registers of its invariants.
        plan: what it computes ahead.
    """

    low: Lowering
    node: Node
    parts: WhileParts
    invariant_slots: Sequence[Registers]
    plan: LookaheadPlan | None

    def invariants(self, params: Sequence[Value]) -> list[Registers]:
        """Return the registers of the invariants as params of a region."""
        return self.low.coerce_all(self.node, self.invariant_slots, self.parts.invariants, params)


def emit_loop(
    low: Lowering,
    node: Node,
    parts: WhileParts,
    starts: Sequence[Registers],
    invariant_slots: Sequence[Registers],
) -> list[Registers]:
    """Emit the blocks of a loop; return the registers of what its test forwards at last."""
    loop = _EnteredLoop(low, node, parts, invariant_slots, find_lookahead(parts))
    outer = low.offsets
    low.offsets = {**outer, **dict.fromkeys(tape_reads(parts), "0")}
    forwarded = _emit_entered(loop, starts)
    low.offsets = outer
    return forwarded


def _emit_entered(loop: _EnteredLoop, starts: Sequence[Registers]) -> list[Registers]:
    low, parts, counted = loop.low, loop.parts, None
    is_in_budget = low.guarded_loops < MAX_GUARDED_LOOPS
    if is_in_budget and loop.plan is None and low.instrumentation is None:
        counted = counted_accesses(parts, low.emitters)
    if counted is None:
        return _emit_checked(loop, starts)
    slots = [*starts, *loop.invariants(parts.before_invariants)]
    is_split = counted.test.is_predicate and counted.repeats_test
    block_trips = max_short_trips(parts)
    params = dict(zip(parts.before.params, slots, strict=True))
    of_tapes = tape_reads(parts)
    if is_split and of_tapes and all((x.node, x.operand) in of_tapes for x in counted.accesses):
        guard = range_guard_of_tapes(low, counted, params)
    else:
        max_trips = MAX_TRIPS if is_split else block_trips
        guard = emit_range_guard(low, counted, params, max_trips)
    if guard.holds == "false":
        return _emit_checked(loop, starts)
    if guard.holds == "true":
        return _emit_unchecked(loop, starts, guard, block_trips, is_split)
    low.guarded_loops += 1
    w = low.w
    unchecked, checked, joined = (w.new_label(hint) for hint in ("inrange", "checked", "joined"))
    w.branch(guard.holds, unchecked, checked)
    w.start(unchecked)
    sources = [(_emit_unchecked(loop, starts, guard, block_trips, is_split), w.block)]
    w.jump(joined)
    w.start(checked)
    sources.append((_emit_checked(loop, starts), w.block))
    w.jump(joined)
    w.start(joined)
    return [
        w.merge(registers(value.type), [(slots[k], block) for slots, block in sources])
        for k, value in enumerate(parts.forwarded)
    ]


def _emit_checked(loop: _EnteredLoop, starts: Sequence[Registers]) -> list[Registers]:
    """Emit a loop whose trips check positions and count down to a safepoint."""
    low, parts, outer = loop.low, loop.parts, loop.low.vectorizes
    low.vectorizes = is_short(parts) and _is_in_range(parts) and is_vectorizable(parts, can_widen)

    def end_trip(next_carry: Sequence[Registers]) -> None:
        if not is_short(parts):
            has_only_scalars = all(is_scalar(param.type) for param in parts.before_carry)
            first = _SCALAR_LOOP_FIRST_SAFEPOINT if has_only_scalars else 1
            _emit_safepoint(loop, next_carry, first)

    forwarded, _ = _emit_trips(loop, starts, end_trip)
    low.vectorizes = outer
    return forwarded


def _is_in_range(parts: WhileParts) -> bool:
    """Return whether all positions in the trips of a loop are known to be in range."""
    accesses = [node for node in parts.after.nodes if node.op in ELEMENT_POSITIONS]
    return all(node.attrs.get("in_bounds", False) for node in accesses)


def _emit_unchecked(
    loop: _EnteredLoop,
    starts: Sequence[Registers],
    guard: RangeGuard,
    block_trips: int,
    is_split: bool,
) -> list[Registers]:
    """Emit a loop whose positions are in range, in blocks of trips with a safepoint after each."""
    low, w = loop.low, loop.low.w
    outer = low.offsets, low.traps.version, low.vectorizes
    low.offsets, low.traps.version = guard.offsets, low.guarded_loops
    low.vectorizes = is_vectorizable(loop.parts, can_widen)
    is_one_block = is_literal(guard.trips) and int(guard.trips) <= block_trips
    if not is_split or is_one_block:
        forwarded, _ = _emit_trips(loop, starts, lambda _: None)
    else:
        entry, again, done = w.block, w.new_label("block"), w.new_label("trips.done")
        w.jump(again)
        w.start(again)
        carry, close = _open_carry(loop, starts, entry)
        remaining, close_remaining = w.open_phi("i64", guard.trips, entry)
        trips = w.define(f"call i64 @llvm.umin.i64(i64 {remaining}, i64 {block_trips})")
        forwarded, carry = _emit_trips(loop, carry, lambda _: None, trips)
        pause = w.new_label("block.done")
        left = w.define(f"sub i64 {remaining}, {trips}")
        w.branch(w.define(f"icmp ne i64 {left}, 0"), pause, done)
        w.start(pause)
        _emit_safepoint(loop, carry, 1)
        close(carry)
        close_remaining(left)
        w.jump(again)
        w.start(done)
    low.offsets, low.traps.version, low.vectorizes = outer
    return forwarded


def _emit_trips(
    loop: _EnteredLoop,
    starts: Sequence[Registers],
    end_trip: Callable[[Sequence[Registers]], None],
    trips: str | None = None,
) -> tuple[list[Registers], list[Registers]]:
    """Emit a block for `before`, whose phis are the carry, and one for `after`.

    Args:
        loop: the loop.
        starts: the registers of the first carry.
        end_trip: emits the end of a trip, from the registers of the next carry.
        trips: how many trips run, an i64; None: the test decides.

    Returns:
        The registers of what `before` forwards at last, and those of its carry.
    """
    low, node, parts, plan = loop.low, loop.node, loop.parts, loop.plan
    w = low.w
    head, body, done = (w.new_label(hint) for hint in ("before", "after", "done"))
    preheader = w.block
    w.jump(head)
    w.start(head)
    carry, close_carry = _open_carry(loop, starts, preheader)
    buffered, close_buffered = w.open_phi("i64", "0", preheader) if plan else ("0", None)
    next_buffered = "0"
    trip, close_trip = w.open_phi("i64", "0", preheader) if trips else ("0", None)

    owns_reference = [True] * len(carry) + [False] * len(parts.invariants)
    (predicate,), *forwarded = _emit_region(
        low, parts.before, [*carry, *loop.invariants(parts.before_invariants)], owns_reference
    )
    low.traps.node = node
    if trips:
        predicate = w.define(f"icmp ult i64 {trip}, {trips}")
    w.branch(predicate, body, done)
    w.start(body)
    start_ticks = low.instrumentation.start_trip(parts.after) if low.instrumentation else None
    forwarded_params = low.coerce_all(node, forwarded, parts.forwarded, parts.after_forwarded)
    after_params = [*forwarded_params, *loop.invariants(parts.after_invariants)]
    owns_reference = [True] * len(forwarded_params) + [False] * len(parts.invariants)
    if plan:
        low.values.update(zip(parts.after.params, after_params, strict=True))
        next_buffered = emit_lookahead(low, plan, buffered)
    next_carry = _emit_region(low, parts.after, after_params, owns_reference)
    low.traps.node = node
    next_slots = low.coerce_all(node, next_carry, parts.next_carry, parts.before_carry)
    if low.instrumentation:
        low.instrumentation.count_trip(start_ticks)
    end_trip(next_slots)
    close_carry(next_slots)
    if close_buffered:
        close_buffered(next_buffered)
    if close_trip:
        close_trip(w.define(f"add nuw i64 {trip}, 1"))
    w.jump(head)
    w.start(done)
    return forwarded, carry


def _emit_safepoint(loop: _EnteredLoop, carry: Sequence[Registers], first_trip: int) -> None:
    """Emit a safepoint between trips; an interrupt leaves what the next trip starts from."""
    traps, safepoints = loop.low.traps, loop.low.safepoints
    outer = traps.state
    traps.state = _state_between_trips(loop, carry) or outer
    safepoints.count_trip(safepoints.new_counter(first_trip))
    traps.state = outer


def _state_between_trips(loop: _EnteredLoop, carry: Sequence[Registers]) -> FrameState | None:
    """Return the frame state before a trip that starts from a carry, if it is known."""
    low, parts = loop.low, loop.parts
    trip = trip_state(parts)
    if trip is None or trip.state not in low.traps.states:
        return None
    invariants = [low.values[param] for param in parts.after_invariants]
    registers_of = {"carry": carry, "invariant": invariants}
    contents = contents_in(trip.state)
    tokens = trip.state.operands[: len(trip.state.operands) - len(contents)]
    operands = [low.values[token] for token in tokens]
    for value, source in zip(contents, trip.sources, strict=True):
        operands.append(low.values[value] if source is None else registers_of[source[0]][source[1]])
    return FrameState.of(trip.state, operands, None, frozenset())


def _open_carry(
    loop: _EnteredLoop, starts: Sequence[Registers], preheader: str
) -> tuple[list[Registers], Callable[[Sequence[Registers]], None]]:
    """Append phis for the carry; return them, and what sets the values of the next trip."""
    w = loop.low.w
    sharing = _register_sharing(loop.low, loop.node, loop.parts)
    carry: list[Registers] = []
    open_phis = []
    for k, (param, start) in enumerate(zip(loop.parts.before_carry, starts, strict=True)):
        if sharing[k] != k:
            carry.append(carry[sharing[k]])
            continue
        phis = [
            w.open_phi(r, s, preheader) for r, s in zip(registers(param.type), start, strict=True)
        ]
        carry.append(tuple(name for name, _ in phis))
        open_phis.append((k, [close for _, close in phis]))

    def close(next_slots: Sequence[Registers]) -> None:
        for k, close_phis in open_phis:
            for close_phi, slot in zip(close_phis, next_slots[k], strict=True):
                close_phi(slot)

    return carry, close


def _register_sharing(low: Lowering, node: Node, parts: WhileParts) -> list[int]:
    """Return, for each carry, the first carry whose registers it shares.

    The tapes in one arena always have the same length.
    """
    first: dict[Arena, int] = {}
    sharing = []
    for k in range(len(parts.carry)):
        tape = tape_class(low, node, parts, k)
        sharing.append(k if tape is None else first.setdefault(tape.arena, k))
    return sharing


def tape_class(low: Lowering, node: Node, parts: WhileParts, carry: int) -> ListClass | None:
    """Return the list class of a carry if it is a tape of the loop."""
    if not isinstance(without_maybe(parts.before_carry[carry].type), ListType):
        return None
    list_class = low.list_classes.of(parts.before_carry[carry])
    return list_class if list_class.tape is node else None


def _emit_region(
    low: Lowering, region: Graph, param_slots: Sequence[Registers], owns_reference: Sequence[bool]
) -> list[Registers]:
    """Emit a region of a loop; lists local to one run of it free their records at its end."""
    local = _local_arenas(low, region)
    fills = [low.arenas.fill(arena) for arena in local]
    low.loop_depth += 1
    results = low.emit_graph(region, param_slots, owns_reference)
    low.loop_depth -= 1
    for arena, fill in zip(local, fills, strict=True):
        low.arenas.truncate(arena, fill)
    return results


def _local_arenas(low: Lowering, region: Graph) -> list[Arena]:
    """Return the arenas of lists that are allocated in a region and do not escape it."""
    allocated = {list_class.arena: None for list_class in low.list_classes.allocated_in(region)}
    escaping = {
        list_class.arena
        for value in (*region.params, *region.results)
        for list_class in low.list_classes.nested(value)
    }
    return [arena for arena in allocated if arena not in escaping]
