"""Which innermost loops on numbers LLVM vectorizes, once each function they call has vectors.

A function of a number is tuned for latency: it has branches, or is the C library's, and a loop with
such a call stays scalar. In these loops it is called in the form that LLVM's vectorizer widens.
What it asks of a loop is what Allen and Kennedy (1987) ask: no trip reads what an earlier one has
computed. LLVM finds out by itself whether arrays overlap.
"""

from __future__ import annotations

from collections.abc import Callable

from wend.backends.native.analysis.affine_positions import (
    Affine,
    Combination,
    LoopValues,
    Number,
)
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Node, Value
from wend.ops import creating, elementwise, indexing
from wend.ops.control import WhileParts
from wend.ops.loop_counters import counters, trip_count
from wend.ops.updating import ELEMENT_POSITIONS

# LLVM unrolls shorter loops instead
MIN_TRIPS = 16
_REDUCTIONS = {elementwise.add, elementwise.bit_or}


def is_vectorizable(w: WhileParts, can_widen: Callable[[Node], bool]) -> bool:
    """Return whether trips of a loop whose positions are in range can be computed in vectors.

    Args:
        w: the loop.
        can_widen: whether an elementwise operation has a form for vectors.
    """
    trips = trip_count(w)
    if isinstance(trips, int) and trips < MIN_TRIPS:
        return False
    accesses = []
    for node in w.after.nodes:
        if node.op in ELEMENT_POSITIONS:
            accesses.append(node)
        elif node.op is not creating.constant and not can_widen(node):
            return False
    return _are_independent(LoopValues(w), accesses)


def _are_independent(values: LoopValues, accesses: list[Node]) -> bool:
    """Return whether a trip needs nothing that an earlier one has computed or stored."""
    w, counting = values.w, counters(values.w)
    updates = {node.results[0]: node for node in accesses if node.op.updates is not None}
    unread = {*updates.values()}
    for param, following in zip(w.before_carry, w.next_carry, strict=True):
        if param in counting or values.resolve(following) is param:
            continue
        if _is_reduction(values, param, following):
            continue
        store = updates.get(following)
        if store is None or values.resolve(store.operands[0]) is not param:
            return False
        unread.discard(store)
        position = _position(values, store)
        if position is None or position[-1].slope not in (1, -1):
            return False
        reads = (x for x in accesses if x.op is indexing.gather)
        if not all(_is_of_later_trips(values, x, store, position) for x in reads):
            return False
    return not unread and all(
        _position(values, node) is not None for node in accesses if node.op is indexing.gather
    )


def _is_reduction(values: LoopValues, param: Value, following: Value) -> bool:
    """Return whether a carry is a reduction: terms that are added in order, or flags."""
    node = following.node
    if node is None or node.op not in _REDUCTIONS or not is_scalar(param.type):
        return False
    uses = [x for other in values.w.after.nodes for x in other.operands]
    results = [*values.w.next_carry]
    so_far = [x for x in (*uses, *results) if values.resolve(x) is param]
    return len(so_far) == 1 and so_far[0] in node.operands


def _position(values: LoopValues, node: Node) -> list[Affine] | None:
    """Return the positions of an element, if only the last one changes in the loop."""
    coordinates = node.operands[ELEMENT_POSITIONS[node.op] :]
    positions = [x for x in map(values.affine, coordinates) if x is not None]
    numbers = [*node.operands[1:], *(() if node.op.updates == 0 else node.results)]
    if len(positions) < len(coordinates) or not all(is_scalar(x.type) for x in numbers):
        return None
    return positions if all(x.slope == 0 for x in positions[:-1]) else None


def _is_of_later_trips(values: LoopValues, read: Node, store: Node, position: list[Affine]) -> bool:
    """Return whether a read is of another array, or of what this trip or later ones store."""
    source = values.resolve(read.operands[0])
    if source is store.results[0]:
        return False
    if source is not values.resolve(store.operands[0]):
        return True
    at = _position(values, read)
    if at is None or at[:-1] != position[:-1] or at[-1].slope != position[-1].slope:
        return False
    (base, ahead), (start, behind) = _split(at[-1].first), _split(position[-1].first)
    slope = position[-1].slope
    return base == start and isinstance(slope, int) and (ahead - behind) * slope >= 0


def _split(number: Number) -> tuple[Number, int]:
    """Return a number as the sum of another and a constant."""
    if isinstance(number, int):
        return 0, number
    if isinstance(number, Combination) and isinstance(number.y, int) and number.op != "mul":
        base, by = _split(number.x)
        return base, by + (number.y if number.op == "add" else -number.y)
    return number, 0
