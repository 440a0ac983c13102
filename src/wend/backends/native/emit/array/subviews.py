"""Where parts of arrays lie, axis by axis: for slices, and for positions that are values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.array.indexing import checked
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.fusion.subview_alias import entries_of, positions_of
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.sizes import known
from wend.backends.native.target.value_layout import Registers
from wend.ir.graph import Node
from wend.ops import parts


@dataclass(frozen=True, slots=True)
class Cut:
    """What is taken of an axis.

    Attributes:
        first: the position where it starts.
        count: how much there is.
        step: from one to the next; None where it is one position, and the axis goes.
    """

    first: str
    count: str
    step: int | None


def cuts_of(
    low: Lowering, node: Node, dims: Sequence[str], positions: Sequence[Registers]
) -> tuple[list[Cut], list[str]]:
    """What a node takes of each axis of its first operand, and the sizes of that part.

    Args:
        low: what writes; it leaves where a position is out of range.
        node: one that takes, sets or adds to a part.
        dims: the sizes of the operand.
        positions: the slots of the node's last operands, which say where.
    """
    words = [
        write_cast(low.w, Kind(value.tensor.dtype), WORD, slots[0])
        for value, slots in zip(positions_of(node), positions, strict=True)
    ]
    entries = parts.by_axis(entries_of(node, len(dims)), words)
    cuts = []
    for (entry, given), size in zip(entries, dims, strict=True):
        if entry == parts.AT:
            cuts.append(Cut(checked(low, given[0], size), "1", None))
        elif entry == parts.CUT:
            cuts.append(_between(low, size, given))
        else:
            assert not isinstance(entry, str)
            cuts.append(sliced(low, size, entry))
    return cuts, [cut.count for cut in cuts if cut.step is not None]


def sliced(low: Lowering, size: str, bounds: Sequence[int | None]) -> Cut:
    """What a slice takes of an axis."""
    first, last, given_step = bounds
    step = 1 if given_step is None else given_step
    sizes = low.sizes
    if known(size):
        known_bounds = slice(first, last, step).indices(int(size))
        return Cut(str(known_bounds[0]), str(len(range(*known_bounds))), step)
    end = size if step > 0 else sizes.sub(size, "1")
    least = "0" if step > 0 else "-1"

    def clipped(bound: int | None, default: str) -> str:
        if bound is None:
            return default
        if bound >= 0:
            return sizes.least(str(bound), end)
        return sizes.most(sizes.add(size, str(bound)), least)

    start = clipped(first, "0" if step > 0 else end)
    stop = clipped(last, end if step > 0 else "-1")
    far = sizes.most(sizes.sub(stop, start) if step > 0 else sizes.sub(start, stop), "0")
    return Cut(start, sizes.div(sizes.add(far, str(abs(step) - 1)), str(abs(step))), step)


def _between(low: Lowering, size: str, words: Sequence[str]) -> Cut:
    """What lies between two positions, which are clipped."""
    sizes, bounds = low.sizes, []
    for bound in words:
        if not known(bound):
            negative = low.w.define(f"icmp slt i64 {bound}, 0")
            moved = low.w.define(f"add i64 {bound}, {size}")
            bound = low.w.define(f"select i1 {negative}, i64 {moved}, i64 {bound}")
        elif int(bound) < 0:
            bound = sizes.add(size, bound)
        bounds.append(sizes.most(sizes.least(bound, size), "0"))
    return Cut(bounds[0], sizes.most(sizes.sub(bounds[1], bounds[0]), "0"), 1)
