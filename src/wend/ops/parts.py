"""Parts of arrays as basic indexing names them, where some positions are values.

The attr `entries` has one entry for each axis: `"at"` takes one position, an operand, and drops
the axis; `"cut"` takes two, also operands, and keeps what lies between; a triple is a static
slice. The semantics are those of NumPy's basic indexing: negative positions count from the end,
those of a cut are clipped, and an `"at"` out of range is an IndexError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from wend.base.errors import ShapeError
from wend.ir.graph import Node, Value
from wend.ir.op import Linear, Op
from wend.ir.types import Dim, Shape, TensorType, Type, fresh
from wend.ops.raising import Indexed, if_out_of_range
from wend.ops.shapes import WHOLE, Bounds, check_scalar_index, tensor_of
from wend.ops.shaping import sliced_type

Entry: TypeAlias = str | Bounds
Entries: TypeAlias = tuple[Entry, ...]

AT, CUT = "at", "cut"


def by_axis(
    entries: Sequence[Entry], positions: Sequence[Any]
) -> Iterator[tuple[Entry, Sequence[Any]]]:
    """Yield each entry with the positions that it takes."""
    start = 0
    for entry in entries:
        count = {AT: 1, CUT: 2}.get(entry, 0) if isinstance(entry, str) else 0
        yield entry, positions[start : start + count]
        start += count


def part_type(
    x: TensorType, positions: Sequence[Type], entries: Entries, cuts: Sequence[Dim]
) -> TensorType:
    """Return the type of a part; `cuts` are the sizes of its `"cut"` axes.

    Raises:
        ShapeError: entries and positions do not fit, or a position is no integer.
    """
    count = sum({AT: 1, CUT: 2}[entry] for entry in entries if isinstance(entry, str))
    if len(entries) != len(x.dims) or count != len(positions):
        raise ShapeError(f"{len(entries)} entries and {len(positions)} positions for {x}")
    for position in positions:
        check_scalar_index(position, "a position")
    sizes = iter(cuts)
    slices = tuple(WHOLE if isinstance(entry, str) else entry for entry in entries)
    sliced = zip(sliced_type(x, slices).dims, entries, strict=True)
    dims = (next(sizes) if entry == CUT else dim for dim, entry in sliced if entry != AT)
    return x.with_shape(tuple(dims))


def _key(entries: Entries, positions: Sequence[Any]) -> tuple[Any, ...]:
    key: list[Any] = []
    for entry, entry_positions in by_axis(entries, positions):
        numbers = [int(position) for position in entry_positions]
        key.append(numbers[0] if entry == AT else slice(*(numbers if entry == CUT else entry)))
    return tuple(key)


def _accumulate_take(b: Any, node: Any, ct: Any, index: int, into: Any) -> Any:
    return b.add_part(into, ct, *node.operands[1:], entries=node.attrs["entries"])


def _infer_take(x: Type, *positions: Type, entries: Entries, cuts: Shape) -> TensorType:
    return part_type(tensor_of(x), positions, entries, cuts)


def at_entries(start: int) -> Indexed:
    """Return the axes that a node takes at one position; bounds that cut an axis may be any."""

    def indexed(node: Node) -> Iterator[tuple[int, Value]]:
        entries = by_axis(node.attrs["entries"], node.operands[start:])
        return ((axis, xs[0]) for axis, (entry, xs) in enumerate(entries) if entry == AT)

    return indexed


take_part = Op(
    "take_part",
    _infer_take,
    lambda x, *positions, entries, cuts: x[_key(entries, positions)],
    Linear.adding(_accumulate_take, (0,)),
    is_cheap=True,
    raises=if_out_of_range(at_entries(1)),
)


def _infer_put(into: Type, x: Type, *positions: Type, entries: Entries) -> TensorType:
    into, x = tensor_of(into), tensor_of(x)
    cuts = [fresh() for entry in entries if entry == CUT]
    part = part_type(into, positions, entries, cuts)
    if x.rank != part.rank or x.dtype != part.dtype:
        raise ShapeError(f"puts {part} into {into}, found {x}")
    return into


def _kernel_set(into: Any, x: Any, *positions: Any, entries: Entries) -> Any:
    out = np.array(into)
    out[_key(entries, positions)] = x
    return out


def _kernel_add(into: Any, x: Any, *positions: Any, entries: Entries) -> Any:
    out = np.array(into)
    out[_key(entries, positions)] += x
    return out


def _part_of(b: Any, node: Any, ct: Any) -> Any:
    """Return the part of a cotangent where the second operand was put."""
    _, x, *positions = node.operands
    entries = node.attrs["entries"]
    axes = [k for k, entry in enumerate(e for e in entries if e != AT) if entry == CUT]
    cuts = tuple(x.type.dims[k] for k in axes)
    return b.refine(b.take_part(ct, *positions, entries=entries, cuts=cuts), x.type)


def _transpose_set(b: Any, node: Any, ct: Any, index: int) -> Any:
    if index == 1:
        return _part_of(b, node, ct)
    _, x, *positions = node.operands
    return b.set_part(ct, b.zeros_like(x), *positions, entries=node.attrs["entries"])


set_part = Op(
    "set_part",
    _infer_put,
    _kernel_set,
    Linear(_transpose_set, operands=(0, 1)),
    raises=if_out_of_range(at_entries(2)),
    updates=0,
)
add_part = Op(
    "add_part",
    _infer_put,
    _kernel_add,
    Linear(lambda b, n, ct, i: _part_of(b, n, ct) if i else ct, operands=(0, 1)),
    raises=if_out_of_range(at_entries(2)),
    updates=0,
    addends=(0,),
)
