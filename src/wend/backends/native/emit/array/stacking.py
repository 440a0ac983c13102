"""Conversions between lists and arrays, along a new first axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import Symbol, TensorType
from wend.ops import lists


def emit_stack(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit an array of the elements of a list, which must have one shape."""
    list, list_class = operands[0], low.list_classes.of_use(node, 0)
    element, result = list_class.element, node.results[0].tensor
    if not isinstance(element, TensorType) or element.shape is None or result.shape is None:
        return NotImplemented
    length = list[1]
    if is_scalar(element):

        def number(k: str) -> str:
            record = low.w.define(f"add i64 {list[0]}, {k}")
            return low.arenas.load(list_class, record)[0]

        return [low.computed_result(node, [length], number)]
    dims = _element_dims(low, node, list, element)
    out = low.new_result(node, [length, *dims])
    size = low.sizes.mul(low.sizes.product(dims), str(element.dtype.itemsize))

    def copy(k: str) -> None:
        record = low.w.define(f"add i64 {list[0]}, {k}")
        row = low.arrays.of(element, low.arenas.load(list_class, record))
        low.check_equal_dims(row.dims, dims)
        offset = low.w.define(f"mul i64 {k}, {size}")
        target = low.w.define(f"getelementptr i8, ptr {out.pointer}, i64 {offset}")
        low.arrays.memcpy(target, row.pointer, size)

    low.w.loop(length, copy)
    return [low.array_result(node, out)]


def _element_dims(
    low: Lowering, node: Node, list: Registers, element: TensorType
) -> tuple[str, ...]:
    """Return the dims of the first element; of an empty list, the dims the node is given."""
    if element.is_static:
        return tuple(map(str, element.dims))
    w, list_class = low.w, low.list_classes.of_use(node, 0)
    default_dims = ["0" for _ in element.dims]
    if len(node.operands) > 1:
        array = low.array(node, 1)
        default_dims = [low.arrays.load(array, str(k)) for k in range(len(element.dims))]
    first_dims, entry, load_block = w.when(
        ("some", "sized"),
        lambda: w.define(f"icmp ne i64 {list[1]}, 0"),
        lambda: low.arrays.of(element, low.arenas.load(list_class, list[0])).dims,
    )
    return tuple(
        w.phi("i64", (default_dim, entry), (first_dim, load_block))
        if isinstance(dim, Symbol)
        else str(dim)
        for dim, default_dim, first_dim in zip(element.dims, default_dims, first_dims, strict=True)
    )


def emit_unstack(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a list of copies of the rows."""
    value, list_class = node.operands[0].tensor, low.list_classes.of(node.results[0])
    element = list_class.element
    if value.shape is None or value.dtype not in REGISTERS or not isinstance(element, TensorType):
        return NotImplemented
    array = low.array(node, 0)
    length, dims = array.dims[0], array.dims[1:]
    list = low.arenas.allocate(list_class, length)
    row = low.sizes.product(dims)

    def each(k: str) -> None:
        record = low.w.define(f"add i64 {list[0]}, {k}")
        if is_scalar(element):
            low.arenas.store(list_class, record, (low.arrays.load(array, k),))
            return
        address = low.arrays.address(array, low.sizes.mul(k, row))
        copy = low.arrays.copy(Array(address, array.dtype, dims))
        low.arenas.store(list_class, record, low.conversions.from_array(copy, element))

    low.w.loop(length, each)
    return [list]


EMITTERS: Mapping[Op, Emit] = {lists.list_stack: emit_stack, lists.list_unstack: emit_unstack}
