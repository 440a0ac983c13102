"""Lists: records in arenas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from wend.backends.native.analysis.list_classes import ListClass, root
from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_INDEX, BAD_LENGTH, BAD_SHAPE
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.target.kinds import REGISTERS, WORD, Kind
from wend.backends.native.target.value_layout import (
    Registers,
    is_scalar,
    references,
    registers,
)
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import ListType, MaybeType, TensorType, Type
from wend.ops import lists


def emit_new(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Nothing: an empty list is made where it is used."""
    return [("poison", "poison")]


def emit_push(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Append in place, if nothing lies behind the list; else to a copy."""
    list, place = operands[0], low.places.used(node, 0)
    element = _given(low, node, 1, place)
    arenas = low.arenas
    if place.tape is not None:
        # Nothing else is in its arena meanwhile; the loop notes the fill when it is done.
        record = arenas.end(list)
        if low.places.leads(node):
            arenas.reserve(place.arena, low.w.define(f"add i64 {record}, 1"))
        arenas.store(place, record, element)
        return [(list[0], low.w.define(f"add i64 {list[1]}, 1"))]
    list = arenas.at_end(place, list)
    record = arenas.end(list)
    end = low.w.define(f"add i64 {record}, 1")
    arenas.reserve(place.arena, end)
    arenas.set_fill(place.arena, end)
    arenas.store(place, record, element)
    return [(list[0], low.w.define(f"add i64 {list[1]}, 1"))]


def emit_pop(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """A shorter list, and its former last element."""
    (list,) = operands
    w, arenas, place = low.w, low.arenas, low.places.used(node, 0)
    low.traps.check(w.define(f"icmp ne i64 {list[1]}, 0"), BAD_INDEX)
    length = w.define(f"sub i64 {list[1]}, 1")
    end = arenas.end(list)
    record = w.define(f"sub i64 {end}, 1")
    last = arenas.load(place, record)
    _retain(low, place, last)
    if node in low.ownership.in_place:
        # Its record is free again, if it is the arena's last, and refers to nothing.
        fill = arenas.fill(place.arena)
        is_last = w.define(f"icmp eq i64 {end}, {fill}")
        arenas.set_fill(place.arena, w.define(f"select i1 {is_last}, i64 {record}, i64 {fill}"))
        for k in references(place.element):
            low.arrays.release(w.define(f"select i1 {is_last}, ptr {last[k]}, ptr null"))
    return [(list[0], length), low.coerce(node, last, place.element, node.results[1].type)]


def emit_get(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Read by position."""
    list, place = operands[0], low.places.used(node, 0)
    element = low.arenas.load(place, _record(low, list, _position(low, node, operands)))
    _retain(low, place, element)
    return [low.coerce(node, element, place.element, node.results[0].type)]


def emit_set(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Replace by position, in a copy unless the list is no longer read."""
    place = low.places.used(node, 0)
    element = _given(low, node, 2, place)
    list = _writable(low, node, place, operands[0])
    record = _record(low, list, _position(low, node, operands))
    if references(place.element):
        _release(low, place, low.arenas.load(place, record))
    low.arenas.store(place, record, element)
    return [list]


def emit_add_at(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Add by position, in a copy unless the list is no longer read."""
    place = low.places.used(node, 0)
    if not has_sums(place.element):
        return NotImplemented
    list = _writable(low, node, place, operands[0])
    element = low.coerce(node, low.pooled(node, 2), node.operands[2].type, place.element)
    record = _record(low, list, _position(low, node, operands))
    places = (place.inner, low.places.maybe_used(node, 2), place.inner)
    old = low.arenas.load(place, record)
    total = add_values(low, place.element, old, element, places)
    _release(low, place, old)
    low.arenas.store(place, record, total)
    return [list]


def emit_len(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """The length."""
    return [(operands[0][1],)]


def emit_zeros(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """A list like another, of zeros."""
    like, result = low.places.used(node, 0), low.places.of(node.results[0])
    return [zeros(low, like, operands[0], result)]


def emit_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Two lists of one length, added element by element."""
    if not has_sums(node.results[0].type):
        return NotImplemented
    places = (low.places.used(node, 0), low.places.used(node, 1), low.places.of(node.results[0]))
    x, y = operands
    return [add_values(low, node.results[0].type, x, y, places)]


def _given(low: Lowering, node: Node, index: int, place: ListClass) -> Registers:
    """An operand as an element to be kept, with a reference of its own."""
    element = low.owned(node, index)
    return low.coerce(node, element, node.operands[index].type, place.element)


def _retain(low: Lowering, place: ListClass, element: Registers) -> None:
    for k in references(place.element):
        low.arrays.retain(element[k])


def _release(low: Lowering, place: ListClass, element: Registers) -> None:
    for k in references(place.element):
        low.arrays.release(element[k])


def _position(low: Lowering, node: Node, operands: Sequence[Registers]) -> str:
    """The position that an operation is given, as i64."""
    return write_cast(low.w, Kind(node.operands[1].tensor.dtype), WORD, operands[1][0])


def _writable(low: Lowering, node: Node, place: ListClass, list: Registers) -> Registers:
    return list if node in low.ownership.in_place else low.arenas.copy(place, list)


def _record(low: Lowering, list: Registers, index: str) -> str:
    """The number of the record at a position, which may count from the end."""
    w = low.w
    is_negative = w.define(f"icmp slt i64 {index}, 0")
    from_end = w.define(f"add i64 {index}, {list[1]}")
    place = w.define(f"select i1 {is_negative}, i64 {from_end}, i64 {index}")
    low.traps.check(w.define(f"icmp ult i64 {place}, {list[1]}"), BAD_INDEX)
    return w.define(f"add i64 {list[0]}, {place}")


def zeros(low: Lowering, like: ListClass, list: Registers, result: ListClass) -> Registers:
    """A list as long as another, and as deep, of zeros."""
    made = low.arenas.allocate(result, list[1])
    low.arenas.clear(result, made)
    if is_scalar(result.element) or isinstance(result.element, MaybeType):
        return made

    def fill(index: str) -> None:
        source = low.w.define(f"add i64 {list[0]}, {index}")
        target = low.w.define(f"add i64 {made[0]}, {index}")
        low.arenas.store(result, target, _zero(low, like, low.arenas.load(like, source), result))

    low.w.loop(list[1], fill)
    return made


def _zero(low: Lowering, like: ListClass, element: Registers, result: ListClass) -> Registers:
    """An element of zeros."""
    type = result.element
    if isinstance(type, ListType):
        assert like.inner is not None and result.inner is not None
        return zeros(low, root(like.inner), element, root(result.inner))
    assert isinstance(type, TensorType)
    element = low.conversions.coerce(element, like.element, type)
    array = low.arrays.of(type, element)
    made = low.arrays.new(array.dtype, array.dims)
    low.arrays.clear(made)
    return low.arrays.slots(type, made)


Three: TypeAlias = tuple[
    ListClass | None, ListClass | None, ListClass | None
]  # of x, of y, of their sum


def add_values(low: Lowering, type: Type, x: Registers, y: Registers, places: Three) -> Registers:
    """The sum of two values of a type; an absent one is the identity."""
    match type:
        case MaybeType(of=inner):
            return _add_maybes(low, inner, x, y, places)
        case ListType():
            return _add_lists(low, x, y, places)
        case TensorType():
            return _add_tensors(low, type, x, y)
    return ()


def has_sums(type: Type) -> bool:
    """Whether there is code that adds two values of a type."""
    match type:
        case MaybeType(of=inner) | ListType(element=inner):
            return has_sums(inner)
        case TensorType(dtype=dtype):
            return type.shape is not None and (dtype in REGISTERS or dtype.kind == "c")
    return True


def _parts(array: Array) -> Array:
    """The same memory as numbers that registers hold: of complex ones both parts."""
    if array.dtype.kind != "c":
        return array
    return Array(array.pointer, np.dtype(f"f{array.dtype.itemsize // 2}"), (*array.dims, "2"))


def _add_tensors(low: Lowering, type: TensorType, x: Registers, y: Registers) -> Registers:
    def add(kind: Kind, a: str, b: str) -> str:
        opcode = "fadd" if kind.is_real else "or" if kind.is_bool else "add"
        return low.w.define(f"{opcode} {kind.text} {a}, {b}")

    if is_scalar(type):
        return (add(Kind(type.dtype), x[0], y[0]),)
    one, other = low.arrays.of(type, x), low.arrays.of(type, y)
    for mine, theirs in zip(one.dims, other.dims, strict=True):
        low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
    made = low.arrays.new(type.dtype, one.dims)
    total, a, b = map(_parts, (made, one, other))

    def each(k: str) -> None:
        found = add(total.kind, low.arrays.load(a, k), low.arrays.load(b, k))
        low.arrays.store(total, k, found)

    low.w.loop(low.arrays.count(total), each)
    return low.arrays.slots(type, made)


def _add_lists(low: Lowering, x: Registers, y: Registers, places: Three) -> Registers:
    a, b, out = (root(place) for place in places if place is not None)
    low.traps.check(low.w.define(f"icmp eq i64 {x[1]}, {y[1]}"), BAD_LENGTH)
    made = low.arenas.allocate(out, x[1])

    def fill(index: str) -> None:
        at = [low.w.define(f"add i64 {list[0]}, {index}") for list in (x, y, made)]
        first = low.conversions.coerce(low.arenas.load(a, at[0]), a.element, out.element)
        second = low.conversions.coerce(low.arenas.load(b, at[1]), b.element, out.element)
        inner = (a.inner, b.inner, out.inner)
        low.arenas.store(out, at[2], add_values(low, out.element, first, second, inner))

    low.w.loop(x[1], fill)
    return made


def _add_maybes(low: Lowering, inner: Type, x: Registers, y: Registers, places: Three) -> Registers:
    """Add in a block of its own: there is work to do only where both are there."""
    w = low.w
    types, owned = registers(inner), references(inner)
    either = w.define(f"or i1 {x[0]}, {y[0]}")
    both = w.define(f"and i1 {x[0]}, {y[0]}")
    chosen = tuple(
        w.define(f"select i1 {x[0]}, {type} {a}, {type} {b}")
        for type, a, b in zip(types, x[1:], y[1:], strict=True)
    )
    adds, alone, done = w.new_label("adds"), w.new_label("alone"), w.new_label("added")
    w.branch(both, adds, alone)
    w.start(alone)
    for k in owned:
        low.arrays.retain(chosen[k])
    here = w.block
    w.jump(done)
    w.start(adds)
    total = add_values(low, inner, x[1:], y[1:], places)
    source = w.block
    w.jump(done)
    w.start(done)
    return (either, *w.merge(types, [(chosen, here), (total, source)]))


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
