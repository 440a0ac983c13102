"""Lists: records in arenas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from wend.backends.native.analysis.list_classes import ListClass, root
from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_INDEX, BAD_LENGTH
from wend.backends.native.emit.array.indexing import wrapped_position
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.target.kinds import REGISTERS, WORD, Kind
from wend.backends.native.target.value_layout import Registers, is_scalar, references, registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import ListType, MaybeType, TensorType, Type
from wend.ops import lists


def emit_new(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit nothing: an empty list is created where it is used."""
    return [("poison", "poison")]


def emit_push(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit an append: in place if the list ends its arena, else to a copy."""
    list, list_class = operands[0], low.list_classes.of_use(node, 0)
    element = _owned_element(low, node, 1, list_class)
    arenas = low.arenas
    if list_class.tape is not None:
        # A tape has its arena to itself; the loop stores the fill when it ends.
        record = arenas.end(list)
        if low.list_classes.starts_record(node):
            arenas.reserve(list_class.arena, low.w.define(f"add i64 {record}, 1"))
        arenas.store(list_class, record, element)
        return [(list[0], low.w.define(f"add i64 {list[1]}, 1"))]
    list = arenas.ensure_at_end(list_class, list)
    record = arenas.end(list)
    end = low.w.define(f"add i64 {record}, 1")
    arenas.reserve(list_class.arena, end)
    arenas.set_fill(list_class.arena, end)
    arenas.store(list_class, record, element)
    return [(list[0], low.w.define(f"add i64 {list[1]}, 1"))]


def emit_pop(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit the list without its last element, and that element."""
    (list,) = operands
    w, arenas, list_class = low.w, low.arenas, low.list_classes.of_use(node, 0)
    low.traps.check(w.define(f"icmp ne i64 {list[1]}, 0"), BAD_INDEX)
    length = w.define(f"sub i64 {list[1]}, 1")
    end = arenas.end(list)
    record = w.define(f"sub i64 {end}, 1")
    last = arenas.load(list_class, record)
    low.arrays.retain_all(list_class.element, last)
    if node in low.ownership.in_place:
        # If its record is the arena's last, the record is freed and its references released.
        fill = arenas.fill(list_class.arena)
        is_last = w.define(f"icmp eq i64 {end}, {fill}")
        arenas.set_fill(
            list_class.arena, w.define(f"select i1 {is_last}, i64 {record}, i64 {fill}")
        )
        for k in references(list_class.element):
            low.arrays.release(w.define(f"select i1 {is_last}, ptr {last[k]}, ptr null"))
    return [(list[0], length), low.coerce(node, last, list_class.element, node.results[1].type)]


def emit_get(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a read by position."""
    list, list_class = operands[0], low.list_classes.of_use(node, 0)
    element = low.arenas.load(list_class, _record(low, node, list, _position(low, node, operands)))
    low.arrays.retain_all(list_class.element, element)
    return [low.coerce(node, element, list_class.element, node.results[0].type)]


def emit_set(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a write by position; in a copy unless this is the last use of the list."""
    list_class = low.list_classes.of_use(node, 0)
    element = _owned_element(low, node, 2, list_class)
    list = _writable(low, node, list_class, operands[0])
    record = _record(low, node, list, _position(low, node, operands))
    if references(list_class.element):
        low.arrays.release_all(list_class.element, low.arenas.load(list_class, record))
    low.arenas.store(list_class, record, element)
    return [list]


def emit_add_at(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit an addition by position; in a copy unless this is the last use of the list."""
    list_class = low.list_classes.of_use(node, 0)
    if not is_addable(list_class.element):
        return NotImplemented
    list = _writable(low, node, list_class, operands[0])
    element = low.coerce(node, low.refcounted(node, 2), node.operands[2].type, list_class.element)
    record = _record(low, node, list, _position(low, node, operands))
    list_classes = (list_class.inner, low.list_classes.of_use_or_none(node, 2), list_class.inner)
    old = low.arenas.load(list_class, record)
    total = add_values(low, list_class.element, old, element, list_classes)
    low.arrays.release_all(list_class.element, old)
    low.arenas.store(list_class, record, total)
    return [list]


def emit_len(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Return the length."""
    return [(operands[0][1],)]


def emit_zeros(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a list of zeros with the structure of another."""
    like, result = low.list_classes.of_use(node, 0), low.list_classes.of(node.results[0])
    return [zeros(low, like, operands[0], result)]


def emit_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the elementwise sum of two lists of one length."""
    if not is_addable(node.results[0].type):
        return NotImplemented
    list_classes = (
        low.list_classes.of_use(node, 0),
        low.list_classes.of_use(node, 1),
        low.list_classes.of(node.results[0]),
    )
    x, y = operands
    return [add_values(low, node.results[0].type, x, y, list_classes)]


def _owned_element(low: Lowering, node: Node, index: int, list_class: ListClass) -> Registers:
    """Return an operand as an element to store, with a reference of its own."""
    element = low.owned(node, index)
    return low.coerce(node, element, node.operands[index].type, list_class.element)


def _position(low: Lowering, node: Node, operands: Sequence[Registers]) -> str:
    """Return the position operand as i64."""
    return emit_cast(low.w, Kind(node.operands[1].tensor.dtype), WORD, operands[1][0])


def _writable(low: Lowering, node: Node, list_class: ListClass, list: Registers) -> Registers:
    """Return the list itself if it may be updated in place, else a copy."""
    return list if node in low.ownership.in_place else low.arenas.copy(list_class, list)


def _record(low: Lowering, node: Node, list: Registers, index: str) -> str:
    """Return the number of the record at a position; a negative one counts from the end."""
    if (node, 1) in low.offsets:
        return low.w.define(f"add i64 {list[0]}, {low.sizes.add(index, low.offsets[node, 1])}")
    wrapped = wrapped_position(low, index, list[1])
    low.traps.check(low.w.define(f"icmp ult i64 {wrapped}, {list[1]}"), BAD_INDEX)
    return low.w.define(f"add i64 {list[0]}, {wrapped}")


def zeros(low: Lowering, like: ListClass, list: Registers, result: ListClass) -> Registers:
    """Emit a list of zeros as long and as deep as another."""
    result_list = low.arenas.allocate(result, list[1])
    low.arenas.clear(result, result_list)
    if is_scalar(result.element) or isinstance(result.element, MaybeType):
        return result_list

    def fill(index: str) -> None:
        source = low.w.define(f"add i64 {list[0]}, {index}")
        target = low.w.define(f"add i64 {result_list[0]}, {index}")
        low.arenas.store(result, target, _zero(low, like, low.arenas.load(like, source), result))

    low.w.loop(list[1], fill)
    return result_list


def _zero(low: Lowering, like: ListClass, element: Registers, result: ListClass) -> Registers:
    """Emit an element of zeros."""
    type = result.element
    if isinstance(type, ListType):
        assert like.inner is not None and result.inner is not None
        return zeros(low, root(like.inner), element, root(result.inner))
    assert isinstance(type, TensorType)
    element = low.conversions.coerce(element, like.element, type)
    array = low.arrays.of(type, element)
    out = low.arrays.new(array.dtype, array.dims)
    low.arrays.clear(out)
    return low.arrays.slots(type, out)


# The list classes of x, y and their sum
ListClassTriple: TypeAlias = tuple[ListClass | None, ListClass | None, ListClass | None]


def add_values(
    low: Lowering, type: Type, x: Registers, y: Registers, list_classes: ListClassTriple
) -> Registers:
    """Emit the sum of two values of a type; an absent one is the identity."""
    match type:
        case MaybeType(of=inner):
            return _add_maybes(low, inner, x, y, list_classes)
        case ListType():
            return _add_lists(low, x, y, list_classes)
        case TensorType():
            return _add_tensors(low, type, x, y)
    return ()


def is_addable(type: Type) -> bool:
    """Return whether native code can add two values of a type."""
    match type:
        case MaybeType(of=inner) | ListType(element=inner):
            return is_addable(inner)
        case TensorType(dtype=dtype):
            return type.shape is not None and (dtype in REGISTERS or dtype.kind == "c")
    return True


def _parts(array: Array) -> Array:
    """Return an array as one that registers can hold: complex numbers become pairs of reals."""
    if array.dtype.kind != "c":
        return array
    return Array(array.pointer, np.dtype(f"f{array.dtype.itemsize // 2}"), (*array.dims, "2"))


def _add_tensors(low: Lowering, type: TensorType, x: Registers, y: Registers) -> Registers:
    """Emit the sum of two arrays or scalars."""

    def add(kind: Kind, a: str, b: str) -> str:
        opcode = "fadd" if kind.is_real else "or" if kind.is_bool else "add"
        return low.w.define(f"{opcode} {kind.text} {a}, {b}")

    if is_scalar(type):
        return (add(Kind(type.dtype), x[0], y[0]),)
    x_array, y_array = low.arrays.of(type, x), low.arrays.of(type, y)
    low.check_equal_dims(x_array.dims, y_array.dims)
    out = low.arrays.new(type.dtype, x_array.dims)
    total, a, b = map(_parts, (out, x_array, y_array))

    def each(k: str) -> None:
        element = add(total.kind, low.arrays.load(a, k), low.arrays.load(b, k))
        low.arrays.store(total, k, element)

    low.w.loop(low.arrays.count(total), each)
    return low.arrays.slots(type, out)


def _add_lists(
    low: Lowering, x: Registers, y: Registers, list_classes: ListClassTriple
) -> Registers:
    """Emit the elementwise sum of two lists."""
    x_class, y_class, out_class = (
        root(list_class) for list_class in list_classes if list_class is not None
    )
    low.traps.check(low.w.define(f"icmp eq i64 {x[1]}, {y[1]}"), BAD_LENGTH)
    out_list = low.arenas.allocate(out_class, x[1])

    def fill(index: str) -> None:
        records = [low.w.define(f"add i64 {list[0]}, {index}") for list in (x, y, out_list)]
        first = low.conversions.coerce(
            low.arenas.load(x_class, records[0]), x_class.element, out_class.element
        )
        second = low.conversions.coerce(
            low.arenas.load(y_class, records[1]), y_class.element, out_class.element
        )
        inner = (x_class.inner, y_class.inner, out_class.inner)
        low.arenas.store(
            out_class, records[2], add_values(low, out_class.element, first, second, inner)
        )

    low.w.loop(x[1], fill)
    return out_list


def _add_maybes(
    low: Lowering, inner: Type, x: Registers, y: Registers, list_classes: ListClassTriple
) -> Registers:
    """Emit the sum of two values that may be absent; a branch adds if both are present."""
    w = low.w
    types = registers(inner)
    is_present = w.define(f"or i1 {x[0]}, {y[0]}")
    both_present = w.define(f"and i1 {x[0]}, {y[0]}")
    present_value = tuple(
        w.define(f"select i1 {x[0]}, {type} {a}, {type} {b}")
        for type, a, b in zip(types, x[1:], y[1:], strict=True)
    )
    adds, alone, done = w.new_label("adds"), w.new_label("alone"), w.new_label("added")
    w.branch(both_present, adds, alone)
    w.start(alone)
    low.arrays.retain_all(inner, present_value)
    alone_block = w.block
    w.jump(done)
    w.start(adds)
    total = add_values(low, inner, x[1:], y[1:], list_classes)
    add_block = w.block
    w.jump(done)
    w.start(done)
    return (is_present, *w.merge(types, [(present_value, alone_block), (total, add_block)]))


EMITTERS: Mapping[Op, Emit] = {
    lists.list_new: emit_new,
    lists.list_push: emit_push,
    lists.list_pop: emit_pop,
    lists.list_get: emit_get,
    lists.list_set: emit_set,
    lists.list_add_at: emit_add_at,
    lists.list_len: emit_len,
    lists.list_zeros: emit_zeros,
    lists.list_add: emit_add,
}
