"""Where the largest or smallest element is along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native import extremes
from wend.backends.native.arrays import Array
from wend.backends.native.emit.reducing import expect_some
from wend.backends.native.kinds import REGISTERS
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import reducing


def _extreme_position(how: str) -> Emit:
    """Where the first extreme element is; the first NaN, if there is one."""

    def emit(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
        value = node.operands[0].tensor
        if value.dtype not in REGISTERS or is_scalar(value):
            return NotImplemented
        array, axis = low.array(node, 0), node.attrs["axis"]
        size, own = array.dims[axis], low.sizes.strides(array.dims)
        expect_some(low, [size])

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
    if step == "1" and array.dtype in extremes.DTYPES:
        address = low.arrays.address(array, first)
        return low.calls.of_row(extremes.position_name(how, array.dtype), "i64", address, size)
    better = {"max": "gt", "min": "lt"}[how]
    letter = "u" if kind.is_unsigned or kind.is_bool else "s"
    compare = f"fcmp o{better}" if kind.is_real else f"icmp {letter}{better}"

    def is_better(x: str, so_far: str) -> str:
        """Nothing is better than NaN."""
        better = w.define(f"{compare} {kind.text} {x}, {so_far}")
        if not kind.is_real:
            return better
        nan = w.define(f"fcmp uno {kind.text} {x}, {x}")
        number = w.define(f"fcmp ord {kind.text} {so_far}, {so_far}")
        return w.define(f"and i1 {w.define(f'or i1 {better}, {nan}')}, {number}")

    def body(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
        x = low.arrays.load(array, sizes.add(first, sizes.mul(k, step)))
        better = is_better(x, so_far[0])
        return (
            w.define(f"select i1 {better}, {kind.text} {x}, {kind.text} {so_far[0]}"),
            w.define(f"select i1 {better}, i64 {k}, i64 {so_far[1]}"),
        )

    return w.fold(size, [kind.text, "i64"], [low.arrays.load(array, first), "0"], body)[1]


EMITTERS: Mapping[Op, Emit] = {
    reducing.argmax: _extreme_position("max"),
    reducing.argmin: _extreme_position("min"),
}
