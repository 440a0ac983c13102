"""Makes room for the tapes of a loop that counts: so many records as it will make trips."""

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

# For more trips than these there is no room at once: an error may end the loop long before.
_MOST = 1 << 24
_COUNTER = TensorType(INT64, ())


def reserve(
    low: Lowering, parts: WhileParts, arenas: Sequence[Arena], starts: Sequence[Registers]
) -> None:
    """Make room in arenas for a record a trip, and one for the last test.

    Args:
        low: what writes.
        parts: the loop.
        arenas: those of its tapes.
        starts: the slots of the carry.
    """
    found = _counter(parts) if arenas else None
    if found is None:
        return
    counter, bound = found
    w = low.w
    limit = _number(bound)
    if limit is None:
        limit = low.values[parts.invariants[parts.before_invariants.index(bound)]][0]
    trips = w.define(f"sub i64 {limit}, {starts[counter][0]}")
    some = w.define(f"call i64 @llvm.smax.i64(i64 {trips}, i64 0)")
    few = w.define(f"call i64 @llvm.smin.i64(i64 {some}, i64 {_MOST})")
    records = w.define(f"add i64 {few}, 1")
    for arena in arenas:
        end = w.define(f"add i64 {low.arenas.fill(arena)}, {records}")
        low.arenas.reserve(arena, end)


def _counter(parts: WhileParts) -> tuple[int, Value] | None:
    """The carry that counts up by 1 while it is under a bound, and the bound."""
    test = parts.predicate.node
    if test is None or test.op is not elementwise.lt:
        return None
    count, bound = test.operands
    if count not in parts.before_carry or count.type != _COUNTER:
        return None
    if bound not in parts.before_invariants and _number(bound) is None:
        return None
    index = parts.before_carry.index(count)
    step = parts.next_carry[index].node
    if step is None or step.op is not elementwise.add or _number(step.operands[1]) != "1":
        return None
    handed = step.operands[0]
    if handed not in parts.after_forwarded:
        return None
    place = parts.after_forwarded.index(handed)
    return (index, bound) if parts.forwarded[place] is count else None


def _number(value: Value) -> str | None:
    """A constant as LLVM writes it."""
    if value.node is None or value.node.op is not creating.constant or value.type != _COUNTER:
        return None
    return str(int(value.node.attrs["value"]))
