"""Orders along an axis, places in sorted vectors, and members of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.rt import binary_search, isin, sorts
from wend.backends.native.target.kinds import REGISTERS, Kind, stored
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.backends.native.target.writer import Writer
from wend.ir.dtypes import BOOL
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import searching


def emit_order(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The rows along an axis in order, or their positions."""
    dtype, axis = node.operands[0].tensor.dtype, node.attrs["axis"]
    if dtype not in sorts.DTYPES or is_scalar(node.operands[0].type):
        return NotImplemented
    array = low.array(node, 0)
    size, own = array.dims[axis], low.sizes.strides(array.dims)
    is_sort = node.op is searching.sort
    function = (sorts.sort if is_sort else sorts.argsort)(dtype)
    low.calls.declared[function] = f"void @{function}({sorts.TYPES})"
    made = low.new_result(node, array.dims)
    room = _room(low, (sorts.sort_room if is_sort else sorts.argsort_room)(dtype, own[axis]), size)
    others = [k for k in range(len(own)) if k != axis]

    def line(position: tuple[str, ...]) -> None:
        first = low.arrays.offset(position, [own[k] for k in others])
        source, target = low.arrays.address(array, first), low.arrays.address(made, first)
        given = f"ptr {source}, ptr {target}, i64 {own[axis]}, ptr {room}, i64 {size}"
        low.w.do(f"call void @{function}({given})")

    low.arrays.nest([array.dims[k] for k in others], line)
    low.arrays.release(room)
    return [low.give(node, made)]


def _room(low: Lowering, bytes: int, size: str) -> str:
    """Memory for a row, so many bytes an element."""
    return low.arrays.take(low.sizes.bounded((size, str(bytes)))) if bytes else "null"


def emit_searchsorted(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Where each value belongs, by halves."""
    sorted, values = node.operands[0].tensor, node.operands[1]
    if sorted.dtype not in sorts.DTYPES or is_scalar(sorted):
        return NotImplemented
    keys, array = sorts.Keys(sorted.dtype), low.array(node, 0)
    goes_on = "ult" if node.attrs["side"] == "left" else "ule"

    def key(array: Array, k: str) -> str:
        place = low.w.define(f"load {keys.type}, ptr {low.arrays.address(array, k)}")
        return keys.of(low.w, place)

    def comes_before(wanted: str, k: str) -> str:
        return low.w.define(f"icmp {goes_on} {keys.type} {key(array, k)}, {wanted}")

    def places(wanted: Sequence[str]) -> list[str]:
        return _first_not(low.w, array.dims[0], [partial(comes_before, one) for one in wanted])

    if is_scalar(values.type):
        bits = _bits(low, Kind(sorted.dtype), keys, operands[1][0])
        return [tuple(places([keys.of(low.w, bits)]))]
    given = low.array(node, 1)
    if is_scalar(node.results[0].type):  # of a dtype that lives in memory
        return [tuple(places([key(given, "0")]))]
    made = low.new_result(node, given.dims)

    def search(numbers: Sequence[str]) -> None:
        for k, place in zip(numbers, places([key(given, k) for k in numbers]), strict=True):
            low.arrays.store(made, k, place)

    binary_search.loop(low.w, low.arrays.count(made), search)
    return [low.give(node, made)]


def emit_isin(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Whether each value is among some."""
    value, among = node.operands[0].tensor, low.array(node, 1)
    if value.dtype not in isin.DTYPES:
        return NotImplemented
    function = isin.function(value.dtype)
    low.calls.declared[function] = f"void @{function}({isin.TYPES})"
    if is_scalar(value) and value.dtype in REGISTERS:
        given = Array(low.w.allocate(stored(REGISTERS[value.dtype])), value.dtype, ())
        low.arrays.store(given, "0", operands[0][0])
    else:
        given = low.array(node, 0)
    is_one = is_scalar(value)
    made = Array(low.w.allocate("i8"), BOOL, ()) if is_one else low.new_result(node, given.dims)
    count, size = low.arrays.count(given), among.dims[0]
    each, other = isin.room(value.dtype)
    bytes = low.sizes.add(low.sizes.bounded((size, str(other))), low.sizes.mul(count, str(each)))
    room = low.arrays.take(bytes)
    call = f"ptr {given.pointer}, i64 {count}, ptr {among.pointer}, i64 {size}, ptr {room}"
    low.w.do(f"call void @{function}({call}, ptr {made.pointer})")
    low.arrays.release(room)
    return [(low.arrays.load(made, "0"),) if is_one else low.give(node, made)]


def _first_not(w: Writer, size: str, holds: Sequence[binary_search.Holds]) -> list[str]:
    """The first number under `size` of which each does not hold; it holds of those before."""
    if size == "0":
        return [size for _ in holds]
    some, done, before = w.new_label("some"), w.new_label("done"), w.block
    w.branch(w.define(f"icmp sgt i64 {size}, 0"), some, done)
    w.start(some)
    lasts = binary_search.last(w, size, holds)
    flags = [
        w.define(f"zext i1 {flag(last)} to i64") for flag, last in zip(holds, lasts, strict=True)
    ]
    firsts = [w.define(f"add i64 {last}, {flag}") for last, flag in zip(lasts, flags, strict=True)]
    here = w.block
    w.jump(done)
    w.start(done)
    return [w.phi("i64", ("0", before), (first, here)) for first in firsts]


def _bits(low: Lowering, kind: Kind, keys: sorts.Keys, x: str) -> str:
    """What a number in a register is in memory."""
    if kind.is_bool:
        return low.w.define(f"zext i1 {x} to i8")
    return low.w.define(f"bitcast {kind.text} {x} to {keys.type}") if kind.is_real else x


EMITTERS: Mapping[Op, Emit] = {
    searching.sort: emit_order,
    searching.argsort: emit_order,
    searching.searchsorted: emit_searchsorted,
    searching.isin: emit_isin,
}
