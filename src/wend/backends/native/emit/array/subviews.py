"""Subviews of arrays, axis by axis, from slices and from positions that are values."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.array.indexing import checked_position, wrapped_position
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.fusion.subview_alias import subview_entries, subview_positions
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node
from wend.ops import parts


@dataclass(frozen=True, slots=True)
class AxisSlice:
    """A slice of one axis.

    Attributes:
        first: The first position.
        count: The number of positions.
        step: The distance between positions; None if the slice is a single position and the axis is
            dropped.
    """

    first: str
    count: str
    step: int | None


def axis_slices(
    low: Lowering, node: Node, dims: Sequence[str], positions: Sequence[Registers]
) -> tuple[list[AxisSlice], list[str]]:
    """Return the slices that a node takes of its first operand, and the dims of the subview.

    Args:
        low: The lowering of the function; a position out of range traps.
        node: A node that loads, stores or adds to a subview.
        dims: The dims of the first operand.
        positions: The slots of the node's last operands, which are positions.
    """
    words = [
        emit_cast(low.w, Kind(value.tensor.dtype), WORD, slots[0])
        for value, slots in zip(subview_positions(node), positions, strict=True)
    ]
    first = len(node.operands) - len(words)
    entries = parts.by_axis(subview_entries(node, len(dims)), range(len(words)))
    slices = []
    for (entry, numbers), size in zip(entries, dims, strict=True):
        if entry == parts.AT:
            offset = low.offsets.get((node, first + numbers[0]))
            word = words[numbers[0]]
            position = (
                checked_position(low, word, size) if offset is None else low.sizes.add(word, offset)
            )
            slices.append(AxisSlice(position, "1", None))
        elif entry == parts.CUT:
            slices.append(_clipped_range(low, size, [words[k] for k in numbers]))
        else:
            assert not isinstance(entry, str)
            slices.append(resolve_slice(low, size, entry))
    return slices, [axis_slice.count for axis_slice in slices if axis_slice.step is not None]


def resolve_slice(low: Lowering, size: str, bounds: Sequence[int | None]) -> AxisSlice:
    """Return the slice of an axis that a Python slice selects."""
    first, last, step_or_none = bounds
    step = 1 if step_or_none is None else step_or_none
    sizes = low.sizes
    if is_literal(size):
        static_range = slice(first, last, step).indices(int(size))
        return AxisSlice(str(static_range[0]), str(len(range(*static_range))), step)
    end = size if step > 0 else sizes.sub(size, "1")
    lower_limit = "0" if step > 0 else "-1"

    def clipped(bound: int | None, default: str) -> str:
        if bound is None:
            return default
        if bound >= 0:
            return sizes.min(str(bound), end)
        return sizes.max(sizes.add(size, str(bound)), lower_limit)

    start = clipped(first, "0" if step > 0 else end)
    stop = clipped(last, end if step > 0 else "-1")
    distance = sizes.max(sizes.sub(stop, start) if step > 0 else sizes.sub(start, stop), "0")
    return AxisSlice(
        start, sizes.div(sizes.add(distance, str(abs(step) - 1)), str(abs(step))), step
    )


def _clipped_range(low: Lowering, size: str, positions: Sequence[str]) -> AxisSlice:
    """Return the range between two positions, which are clipped to the axis."""
    sizes, bounds = low.sizes, []
    for bound in positions:
        if not is_literal(bound):
            bound = wrapped_position(low, bound, size)
        elif int(bound) < 0:
            bound = sizes.add(size, bound)
        bounds.append(sizes.max(sizes.min(bound, size), "0"))
    return AxisSlice(bounds[0], sizes.max(sizes.sub(bounds[1], bounds[0]), "0"), 1)
