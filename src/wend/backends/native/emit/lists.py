"""Lists: records in arenas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from wend.backends.native.arenas import BAD_INDEX, BAD_LENGTH
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.places import Place, root
from wend.backends.native.slots import Slots, registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import ListType, MaybeType, Type
from wend.ops import lists


def emit_new(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Nothing: an empty list is made where it is used."""
    return [("poison", "poison")]


def emit_push(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Append in place, if nothing lies behind the list; else to a copy."""
    list, element = operands
    place = low.places.used(node, 0)
    element = low.fit(node, element, node.operands[1].type, place.element)
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


def emit_pop(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """A shorter list, and its former last element."""
    (list,) = operands
    w, arenas, place = low.w, low.arenas, low.places.used(node, 0)
    arenas.check(w.define(f"icmp ne i64 {list[1]}, 0"), BAD_INDEX)
    length = w.define(f"sub i64 {list[1]}, 1")
    end = arenas.end(list)
    record = w.define(f"sub i64 {end}, 1")
    last = arenas.load(place, record)
    if node in low.ownership.in_place:
        # Its record is free again, if it is the arena's last.
        fill = arenas.fill(place.arena)
        is_last = w.define(f"icmp eq i64 {end}, {fill}")
        arenas.set_fill(place.arena, w.define(f"select i1 {is_last}, i64 {record}, i64 {fill}"))
    return [(list[0], length), last]


def emit_get(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Read by position."""
    list, (index,) = operands
    return [low.arenas.load(low.places.used(node, 0), _record(low, list, index))]


def emit_set(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Replace by position, in a copy unless the list is no longer read."""
    list, (index,), element = operands
    place = low.places.used(node, 0)
    list = _writable(low, node, place, list)
    element = low.fit(node, element, node.operands[2].type, place.element)
    low.arenas.store(place, _record(low, list, index), element)
    return [list]


def emit_add_at(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Add by position, in a copy unless the list is no longer read."""
    list, (index,), element = operands
    place = low.places.used(node, 0)
    list = _writable(low, node, place, list)
    element = low.fit(node, element, node.operands[2].type, place.element)
    record = _record(low, list, index)
    places = (place.inner, low.places.maybe_used(node, 2), place.inner)
    total = add_values(low, place.element, low.arenas.load(place, record), element, places)
    low.arenas.store(place, record, total)
    return [list]


def emit_len(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """The length."""
    return [(operands[0][1],)]


def emit_zeros(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """A list like another, of zeros."""
    like, result = low.places.used(node, 0), low.places.of(node.results[0])
    return [zeros(low, like, operands[0], result)]


def emit_add(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Two lists of one length, added element by element."""
    places = (low.places.used(node, 0), low.places.used(node, 1), low.places.of(node.results[0]))
    x, y = operands
    return [add_values(low, node.results[0].type, x, y, places)]


def _writable(low: Lowering, node: Node, place: Place, list: Slots) -> Slots:
    return list if node in low.ownership.in_place else low.arenas.copy(place, list)


def _record(low: Lowering, list: Slots, index: str) -> str:
    """The number of the record at a position, which may count from the end."""
    w = low.w
    is_negative = w.define(f"icmp slt i64 {index}, 0")
    from_end = w.define(f"add i64 {index}, {list[1]}")
    place = w.define(f"select i1 {is_negative}, i64 {from_end}, i64 {index}")
    low.arenas.check(w.define(f"icmp ult i64 {place}, {list[1]}"), BAD_INDEX)
    return w.define(f"add i64 {list[0]}, {place}")


def zeros(low: Lowering, like: Place, list: Slots, result: Place) -> Slots:
    """A list as long as another, and as deep, of zeros."""
    made = low.arenas.allocate(result, list[1])
    low.arenas.clear(result, made)
    if not isinstance(result.element, ListType):
        return made

    def fill(index: str) -> None:
        source = low.w.define(f"add i64 {list[0]}, {index}")
        target = low.w.define(f"add i64 {made[0]}, {index}")
        assert like.inner is not None and result.inner is not None
        element = low.arenas.load(like, source)
        inner = zeros(low, root(like.inner), element, root(result.inner))
        low.arenas.store(result, target, inner)

    low.w.loop(list[1], fill)
    return made


Three: TypeAlias = tuple[Place | None, Place | None, Place | None]  # of x, of y, of their sum


def add_values(low: Lowering, type: Type, x: Slots, y: Slots, places: Three) -> Slots:
    """The sum of two values of a type; an absent one is the identity."""
    match type:
        case MaybeType(of=inner):
            return _add_maybes(low, inner, x, y, places)
        case ListType():
            return _add_lists(low, type, x, y, places)
    (register,) = registers(type)
    opcode = {"double": "fadd", "i64": "add", "i1": "or"}[register]
    return (low.w.define(f"{opcode} {register} {x[0]}, {y[0]}"),)


def _add_lists(low: Lowering, type: ListType, x: Slots, y: Slots, places: Three) -> Slots:
    a, b, out = (root(place) for place in places if place is not None)
    low.arenas.check(low.w.define(f"icmp eq i64 {x[1]}, {y[1]}"), BAD_LENGTH)
    made = low.arenas.allocate(out, x[1])

    def fill(index: str) -> None:
        at = [low.w.define(f"add i64 {list[0]}, {index}") for list in (x, y, made)]
        first, second = low.arenas.load(a, at[0]), low.arenas.load(b, at[1])
        inner = (a.inner, b.inner, out.inner)
        low.arenas.store(out, at[2], add_values(low, type.element, first, second, inner))

    low.w.loop(x[1], fill)
    return made


def _add_maybes(low: Lowering, inner: Type, x: Slots, y: Slots, places: Three) -> Slots:
    """Add in a block of its own: there is work to do only where both are there."""
    w = low.w
    types = registers(inner)
    either = w.define(f"or i1 {x[0]}, {y[0]}")
    both = w.define(f"and i1 {x[0]}, {y[0]}")
    chosen = tuple(
        w.define(f"select i1 {x[0]}, {type} {a}, {type} {b}")
        for type, a, b in zip(types, x[1:], y[1:], strict=True)
    )
    adds, done, here = w.new_label("adds"), w.new_label("added"), w.block
    w.branch(both, adds, done)
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
