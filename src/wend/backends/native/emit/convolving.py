"""The convolution of two vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.emit.elements import ELEMENTS
from wend.backends.native.exits import BAD_SHAPE
from wend.backends.native.kinds import REGISTERS
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import convolving, elementwise

_BLOCK = 1024  # elements that a processor's own cache holds, twice


def emit_convolve(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """The longer vector, in blocks, added as often as the shorter has elements."""
    if node.operands[0].tensor.dtype not in REGISTERS:
        return NotImplemented
    x, y, w, sizes = low.array(node, 0), low.array(node, 1), low.w, low.sizes
    for array in (x, y):
        empty = sizes.equal(array.dims[0], "0")
        if empty != "false":
            low.exits.unless(w.define(f"xor i1 {empty}, true"), BAD_SHAPE)
    count = sizes.sub(sizes.add(x.dims[0], y.dims[0]), "1")
    made = low.new_result(node, (count,))
    low.arrays.clear(made)
    is_shorter = w.define(f"icmp slt i64 {x.dims[0]}, {y.dims[0]}")
    few, many = (
        (
            w.define(f"select i1 {is_shorter}, ptr {a.pointer}, ptr {b.pointer}"),
            w.define(f"select i1 {is_shorter}, i64 {a.dims[0]}, i64 {b.dims[0]}"),
        )
        for a, b in ((x, y), (y, x))
    )
    kind, arrays = x.kind, low.arrays
    add, mul = ELEMENTS[elementwise.add], ELEMENTS[elementwise.mul]

    def at(pointer: str, k: str) -> str:
        return w.define(f"getelementptr {kind.element}, ptr {pointer}, i64 {k}")

    def block(number: str) -> None:
        first = w.define(f"mul i64 {number}, {_BLOCK}")
        length = sizes.least(sizes.sub(many[1], first), str(_BLOCK))

        def each(i: str) -> None:
            factor = arrays.load_at(kind, at(few[0], i))
            source, start = at(many[0], first), at(at(made.pointer, i), first)

            def step(k: str) -> None:
                place = at(start, k)
                product = mul.write(low, node, kind, factor, arrays.load_at(kind, at(source, k)))
                total = add.write(low, node, kind, arrays.load_at(kind, place), product)
                arrays.store_at(kind, place, total)

            w.loop(length, step)

        w.loop(few[1], each)

    w.loop(sizes.div(sizes.add(many[1], str(_BLOCK - 1)), str(_BLOCK)), block)
    return [low.give(node, made)]


EMITTERS: Mapping[Op, Emit] = {convolving.convolve: emit_convolve}
