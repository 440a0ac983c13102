"""Between lists and arrays, along a new first axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import Symbol, TensorType
from wend.ops import lists


def emit_stack(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The elements one after the other; they have to be of one shape."""
    list, place = operands[0], low.places.used(node, 0)
    element, result = place.element, node.results[0].tensor
    if not isinstance(element, TensorType) or element.shape is None or result.shape is None:
        return NotImplemented
    length = list[1]
    if is_scalar(element):
        made = low.new_result(node, [length])

        def put(k: str) -> None:
            record = low.w.define(f"add i64 {list[0]}, {k}")
            low.arrays.store(made, k, low.arenas.load(place, record)[0])

        low.w.loop(length, put)
        return [low.give(node, made)]
    dims = _element_dims(low, node, list, element)
    made = low.new_result(node, [length, *dims])
    size = low.sizes.mul(low.sizes.product(dims), str(element.dtype.itemsize))

    def copy(k: str) -> None:
        record = low.w.define(f"add i64 {list[0]}, {k}")
        row = low.arrays.of(element, low.arenas.load(place, record))
        for mine, wanted in zip(row.dims, dims, strict=True):
            low.traps.check(low.sizes.equal(mine, wanted), BAD_SHAPE)
        at = low.w.define(f"mul i64 {k}, {size}")
        target = low.w.define(f"getelementptr i8, ptr {made.pointer}, i64 {at}")
        low.arrays.move(target, row.pointer, size)

    low.w.loop(length, copy)
    return [low.give(node, made)]


def _element_dims(
    low: Lowering, node: Node, list: Registers, element: TensorType
) -> tuple[str, ...]:
    """The sizes of the first element; of an empty list those that are given."""
    if element.is_static:
        return tuple(map(str, element.dims))
    w, place = low.w, low.places.used(node, 0)
    given = ["0" for _ in element.dims]
    if len(node.operands) > 1:
        array = low.array(node, 1)
        given = [low.arrays.load(array, str(k)) for k in range(len(element.dims))]
    some, done, here = w.new_label("some"), w.new_label("sized"), w.block
    w.branch(w.define(f"icmp ne i64 {list[1]}, 0"), some, done)
    w.start(some)
    first = low.arrays.of(element, low.arenas.load(place, list[0])).dims
    there = w.block
    w.jump(done)
    w.start(done)
    return tuple(
        w.phi("i64", (mine, here), (theirs, there)) if isinstance(dim, Symbol) else str(dim)
        for dim, mine, theirs in zip(element.dims, given, first, strict=True)
    )


def emit_unstack(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """A copy of each row."""
    value, place = node.operands[0].tensor, low.places.of(node.results[0])
    element = place.element
    if value.shape is None or value.dtype not in REGISTERS or not isinstance(element, TensorType):
        return NotImplemented
    array = low.array(node, 0)
    length, dims = array.dims[0], array.dims[1:]
    made = low.arenas.allocate(place, length)
    row = low.sizes.product(dims)

    def each(k: str) -> None:
        record = low.w.define(f"add i64 {made[0]}, {k}")
        if is_scalar(element):
            low.arenas.store(place, record, (low.arrays.load(array, k),))
            return
        address = low.arrays.address(array, low.sizes.mul(k, row))
        item = low.arrays.copied(Array(address, array.dtype, dims))
        low.arenas.store(place, record, low.conversions.tensor(item, element))

    low.w.loop(length, each)
    return [made]


EMITTERS: Mapping[Op, Emit] = {lists.list_stack: emit_stack, lists.list_unstack: emit_unstack}
