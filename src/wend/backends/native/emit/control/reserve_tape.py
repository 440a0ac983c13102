"""Reservation of tape for a counting loop: one record per expected trip."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.analysis.list_classes import Arena
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.value_layout import Registers
from wend.ir.dtypes import INT64
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.ops import creating, elementwise
from wend.ops.control import WhileParts

# At most this many records are reserved at once, because an error may end a longer loop early.
_MAX_RESERVED_TRIPS = 1 << 24
_COUNTER_TYPE = TensorType(INT64, ())


def reserve_tape(
    low: Lowering, parts: WhileParts, arenas: Sequence[Arena], starts: Sequence[Registers]
) -> None:
    """Reserve a record per trip, and one for the last test, in the arenas of a loop's tapes.

    `starts` are the slots of the initial carry.
    """
    counter_and_bound = _find_counter(parts) if arenas else None
    if counter_and_bound is None:
        return
    counter, bound = counter_and_bound
    w = low.w
    limit = _literal(bound)
    if limit is None:
        limit = low.values[parts.invariants[parts.before_invariants.index(bound)]][0]
    trips = w.define(f"sub i64 {limit}, {starts[counter][0]}")
    nonnegative = w.define(f"call i64 @llvm.smax.i64(i64 {trips}, i64 0)")
    reserved_trips = w.define(
        f"call i64 @llvm.smin.i64(i64 {nonnegative}, i64 {_MAX_RESERVED_TRIPS})"
    )
    records = w.define(f"add i64 {reserved_trips}, 1")
    for arena in arenas:
        low.arenas.reserve(arena, w.define(f"add i64 {low.arenas.fill(arena)}, {records}"))


def _find_counter(parts: WhileParts) -> tuple[int, Value] | None:
    """Return the carry that counts up by 1 while it is less than a bound, and the bound."""
    test = parts.predicate.node
    if test is None or test.op is not elementwise.lt:
        return None
    count, bound = test.operands
    if count not in parts.before_carry or count.type != _COUNTER_TYPE:
        return None
    if bound not in parts.before_invariants and _literal(bound) is None:
        return None
    index = parts.before_carry.index(count)
    step = parts.next_carry[index].node
    if step is None or step.op is not elementwise.add or _literal(step.operands[1]) != "1":
        return None
    forwarded = step.operands[0]
    if forwarded not in parts.after_forwarded:
        return None
    forwarded_index = parts.after_forwarded.index(forwarded)
    return (index, bound) if parts.forwarded[forwarded_index] is count else None


def _literal(value: Value) -> str | None:
    """Return an integer constant as an LLVM literal, or None."""
    if value.node is None or value.node.op is not creating.constant or value.type != _COUNTER_TYPE:
        return None
    return str(int(value.node.attrs["value"]))
