"""Where the largest or smallest element is along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.arrays import Array
from wend.backends.native.exits import BAD_SHAPE
from wend.backends.native.kinds import REGISTERS
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.sizes import known
from wend.backends.native.slots import Slots, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import reducing

# Of so many elements together it is asked first, in vectors, whether any is better: few are.
_BLOCK = 256


def _extreme_position(how: str) -> Emit:
    """Where the first extreme element is; the first NaN, if there is one."""

    def emit(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
        value = node.operands[0].tensor
        if value.dtype not in REGISTERS or is_scalar(value):
            return NotImplemented
        array, axis, w = low.array(node, 0), node.attrs["axis"], low.w
        size, own = array.dims[axis], low.sizes.strides(array.dims)
        equal = low.sizes.equal(size, "0")
        if equal != "false":
            some = "false" if equal == "true" else w.define(f"xor i1 {equal}, true")
            low.exits.unless(some, BAD_SHAPE)

        def best(first: str) -> str:
            return _first_best(low, array, first, size, own[axis], how)

        if is_scalar(node.results[0].type):
            return [(best("0"),)]
        dims = [size for k, size in enumerate(array.dims) if k != axis]
        strides = [stride for k, stride in enumerate(own) if k != axis]
        shape = list(dims)
        if node.attrs["keepdims"]:
            shape.insert(axis, "1")
        made = low.new_result(node, shape)
        places = low.sizes.strides(dims)

        def each(position: tuple[str, ...]) -> None:
            found = best(low.arrays.offset(position, strides))
            low.arrays.store(made, low.arrays.offset(position, places), found)

        low.arrays.nest(dims, each)
        return [low.give(node, made)]

    return emit


def _first_best(low: Lowering, array: Array, first: str, size: str, step: str, how: str) -> str:
    """The number of the best element of a row that starts at `first`."""
    w, sizes, kind = low.w, low.sizes, array.kind
    letter = "u" if kind.is_unsigned or kind.is_bool else "s"
    compare = f"fcmp o{how}" if kind.is_real else f"icmp {letter}{how}"
    types = [kind.text, "i64"]

    def load(k: str) -> str:
        return low.arrays.load(array, sizes.add(first, sizes.mul(k, step)))

    def is_better(x: str, so_far: str) -> str:
        """Nothing is better than NaN."""
        better = w.define(f"{compare} {kind.text} {x}, {so_far}")
        if not kind.is_real:
            return better
        nan = w.define(f"fcmp uno {kind.text} {x}, {x}")
        number = w.define(f"fcmp ord {kind.text} {so_far}, {so_far}")
        return w.define(f"and i1 {w.define(f'or i1 {better}, {nan}')}, {number}")

    def look(start: str, count: str, so_far: Sequence[str]) -> tuple[str, ...]:
        def body(number: str, so_far: tuple[str, ...]) -> Sequence[str]:
            k = sizes.add(start, number)
            x = load(k)
            better = is_better(x, so_far[0])
            return (
                w.define(f"select i1 {better}, {kind.text} {x}, {kind.text} {so_far[0]}"),
                w.define(f"select i1 {better}, i64 {k}, i64 {so_far[1]}"),
            )

        return w.fold(count, types, so_far, body)

    def block(number: str, so_far: tuple[str, ...]) -> Sequence[str]:
        start = sizes.mul(number, str(_BLOCK))
        count = sizes.least(sizes.sub(size, start), str(_BLOCK))
        (some,) = w.fold(
            count,
            ["i1"],
            ["false"],
            lambda k, found: [
                w.define(f"or i1 {found[0]}, {is_better(load(sizes.add(start, k)), so_far[0])}")
            ],
        )
        found, on, here = w.new_label("found"), w.new_label("on"), w.block
        w.branch(some, found, on)
        w.start(found)
        better = look(start, count, so_far)
        there = w.block
        w.jump(on)
        w.start(on)
        return w.merge(types, [(so_far, here), (better, there)])

    begin = [load("0"), "0"]
    if known(size) and int(size) <= _BLOCK:
        return look("0", size, begin)[1]
    blocks = sizes.div(sizes.add(size, str(_BLOCK - 1)), str(_BLOCK))
    return w.fold(blocks, types, begin, block)[1]


EMITTERS: Mapping[Op, Emit] = {
    reducing.argmax: _extreme_position("gt"),
    reducing.argmin: _extreme_position("lt"),
}
