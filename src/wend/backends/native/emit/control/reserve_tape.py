"""Reservation of tape for a counting loop: one record per expected trip."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.analysis.list_classes import Arena
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.value_layout import Registers
from wend.ops.control import WhileParts
from wend.ops.loop_counters import as_integer, outer_value, tested_counter

# At most this many records are reserved at once, because an error may end a longer loop early.
_MAX_RESERVED_TRIPS = 1 << 24


def reserve_tape(
    low: Lowering, parts: WhileParts, arenas: Sequence[Arena], starts: Sequence[Registers]
) -> None:
    """Reserve a record per trip, and one for the last test, in the arenas of a loop's tapes.

    `starts` are the slots of the initial carry.
    """
    tested = tested_counter(parts) if arenas else None
    if tested is None or tested.step != 1 or tested.is_inclusive:
        return
    w, bound = low.w, as_integer(tested.bound)
    limit: object = bound
    if bound is None:
        if tested.bound not in parts.before_invariants:
            return
        limit = low.values[outer_value(parts, tested.bound)][0]
    counter = parts.before_carry.index(tested.param)
    trips = w.define(f"sub i64 {limit}, {starts[counter][0]}")
    nonnegative = w.define(f"call i64 @llvm.smax.i64(i64 {trips}, i64 0)")
    reserved_trips = w.define(
        f"call i64 @llvm.smin.i64(i64 {nonnegative}, i64 {_MAX_RESERVED_TRIPS})"
    )
    records = w.define(f"add i64 {reserved_trips}, 1")
    for arena in arenas:
        low.arenas.reserve(arena, w.define(f"add i64 {low.arenas.fill(arena)}, {records}"))
