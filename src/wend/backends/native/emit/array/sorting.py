"""Sorting along an axis, binary search in sorted vectors, and membership."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.rt.ordering import binary_search, isin, sorts
from wend.backends.native.target.kinds import REGISTERS, Kind, memory_type
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.backends.native.target.writer import Writer
from wend.ir.dtypes import BOOL
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import searching


def emit_sort(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the sorted rows along an axis, or the positions that sort them."""
    dtype, axis = node.operands[0].tensor.dtype, node.attrs["axis"]
    if dtype not in sorts.DTYPES or is_scalar(node.operands[0].type):
        return NotImplemented
    array = low.array(node, 0)
    size, strides = array.dims[axis], low.sizes.strides(array.dims)
    is_sort = node.op is searching.sort
    function = (sorts.sort if is_sort else sorts.argsort)(dtype)
    low.calls.external[function] = f"void @{function}({sorts.TYPES})"
    out = low.new_result(node, array.dims)
    workspace = _workspace(
        low, (sorts.sort_room if is_sort else sorts.argsort_room)(dtype, strides[axis]), size
    )
    other_axes = [k for k in range(len(strides)) if k != axis]

    def sort_row(position: tuple[str, ...]) -> None:
        first = low.arrays.offset(position, [strides[k] for k in other_axes])
        source, target = low.arrays.address(array, first), low.arrays.address(out, first)
        args = f"ptr {source}, ptr {target}, i64 {strides[axis]}, ptr {workspace}, i64 {size}"
        low.w.do(f"call void @{function}({args})")

    low.arrays.for_each_position([array.dims[k] for k in other_axes], sort_row)
    low.arrays.release(workspace)
    return [low.array_result(node, out)]


def _workspace(low: Lowering, bytes: int, size: str) -> str:
    """Allocate so many bytes per element of a row."""
    return (
        low.arrays.allocate(low.sizes.saturating_product((size, str(bytes)))) if bytes else "null"
    )


def emit_searchsorted(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the insertion positions of values, by binary search."""
    sorted, values = node.operands[0].tensor, node.operands[1]
    if sorted.dtype not in sorts.DTYPES or is_scalar(sorted):
        return NotImplemented
    keys, array = sorts.Keys(sorted.dtype), low.array(node, 0)
    predicate = "ult" if node.attrs["side"] == "left" else "ule"

    def key(array: Array, k: str) -> str:
        bits = low.w.define(f"load {keys.type}, ptr {low.arrays.address(array, k)}")
        return keys.of(low.w, bits)

    def comes_before(needle: str, k: str) -> str:
        return low.w.define(f"icmp {predicate} {keys.type} {key(array, k)}, {needle}")

    def search_keys(needles_keys: Sequence[str]) -> list[str]:
        return _partition_points(
            low.w, array.dims[0], [partial(comes_before, one) for one in needles_keys]
        )

    if is_scalar(values.type):
        bits = _bit_pattern(low, Kind(sorted.dtype), keys, operands[1][0])
        return [tuple(search_keys([keys.of(low.w, bits)]))]
    needles = low.array(node, 1)
    if is_scalar(node.results[0].type):  # its dtype has no register
        return [tuple(search_keys([key(needles, "0")]))]
    out = low.new_result(node, needles.dims)

    def search(indices: Sequence[str]) -> None:
        for k, position in zip(
            indices, search_keys([key(needles, k) for k in indices]), strict=True
        ):
            low.arrays.store(out, k, position)

    binary_search.loop(low.w, low.arrays.count(out), search)
    return [low.array_result(node, out)]


def emit_isin(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit whether each value is an element of a vector."""
    value, candidates = node.operands[0].tensor, low.array(node, 1)
    if value.dtype not in isin.DTYPES:
        return NotImplemented
    function = isin.function(value.dtype)
    low.calls.external[function] = f"void @{function}({isin.TYPES})"
    if is_scalar(value) and value.dtype in REGISTERS:
        needles = Array(low.w.allocate(memory_type(REGISTERS[value.dtype])), value.dtype, ())
        low.arrays.store(needles, "0", operands[0][0])
    else:
        needles = low.array(node, 0)
    is_single = is_scalar(value)
    out = Array(low.w.allocate("i8"), BOOL, ()) if is_single else low.new_result(node, needles.dims)
    count, size = low.arrays.count(needles), candidates.dims[0]
    needle_bytes, candidate_bytes = isin.room(value.dtype)
    bytes = low.sizes.add(
        low.sizes.saturating_product((size, str(candidate_bytes))),
        low.sizes.mul(count, str(needle_bytes)),
    )
    workspace = low.arrays.allocate(bytes)
    args = (
        f"ptr {needles.pointer}, i64 {count}, ptr {candidates.pointer}, i64 {size}, ptr {workspace}"
    )
    low.w.do(f"call void @{function}({args}, ptr {out.pointer})")
    low.arrays.release(workspace)
    return [(low.arrays.load(out, "0"),) if is_single else low.array_result(node, out)]


def _partition_points(
    w: Writer, size: str, predicates: Sequence[binary_search.Predicate]
) -> list[str]:
    """Return, for each predicate, the first number below `size` for which it is false.

    A predicate must hold for all numbers before that.
    """
    if size == "0":
        return [size for _ in predicates]

    def search() -> list[str]:
        lasts = binary_search.last(w, size, predicates)
        flags = [
            w.define(f"zext i1 {flag(last)} to i64")
            for flag, last in zip(predicates, lasts, strict=True)
        ]
        return [
            w.define(f"add i64 {last}, {flag}") for last, flag in zip(lasts, flags, strict=True)
        ]

    positions, entry, search_block = w.when(
        ("some", "done"), lambda: w.define(f"icmp sgt i64 {size}, 0"), search
    )
    return [w.phi("i64", ("0", entry), (position, search_block)) for position in positions]


def _bit_pattern(low: Lowering, kind: Kind, keys: sorts.Keys, x: str) -> str:
    """Return the bits of a number in a register as they are in memory."""
    if kind.is_bool:
        return low.w.define(f"zext i1 {x} to i8")
    return low.w.define(f"bitcast {kind.text} {x} to {keys.type}") if kind.is_real else x


EMITTERS: Mapping[Op, Emit] = {
    searching.sort: emit_sort,
    searching.argsort: emit_sort,
    searching.searchsorted: emit_searchsorted,
    searching.isin: emit_isin,
}
