"""Where the largest or smallest element is along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.reducing import expect_some
from wend.backends.native.rt import row_argminmax
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import reducing


def _extreme_position(how: str) -> Emit:
    """Where the first extreme element is; the first NaN, if there is one."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        value = node.operands[0].tensor
        if value.dtype not in REGISTERS or is_scalar(value):
            return NotImplemented
        array, axis = low.array(node, 0), node.attrs["axis"]
        size, own = array.dims[axis], low.sizes.strides(array.dims)
        expect_some(low, [size])
        better = _better(low, array.kind, how)

        def best(first: str) -> str:
            if own[axis] == "1" and array.dtype in row_argminmax.DTYPES:
                address = low.arrays.address(array, first)
                name = row_argminmax.position_name({"gt": "max", "lt": "min"}[how], array.dtype)
                return low.calls.of_row(name, "i64", address, size)

            def body(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
                at = low.sizes.add(first, low.sizes.mul(k, own[axis]))
                return better(low.arrays.load(array, at), k, *so_far)

            start = low.arrays.load(array, first)
            return low.w.fold(size, [array.kind.text, "i64"], [start, "0"], body)[1]

        if is_scalar(node.results[0].type):
            return [(best("0"),)]
        dims = [size for k, size in enumerate(array.dims) if k != axis]
        shape = list(dims)
        if node.attrs["keepdims"]:
            shape.insert(axis, "1")
        made = low.new_result(node, shape)
        if axis == len(array.dims) - 1:
            rows = low.arrays.count(made)
            low.w.loop(
                rows, lambda k: low.arrays.store(made, k, best(low.sizes.mul(k, own[axis - 1])))
            )
        else:
            _positions_of_rows(low, array, axis, made, better)
        return [low.give(node, made)]

    return emit


_Better: TypeAlias = Callable[[str, str, str, str], tuple[str, str]]


def _better(low: Lowering, kind: Kind, how: str) -> _Better:
    """What takes an element, its position and the best before it, and gives the best and where."""
    letter = "u" if kind.is_unsigned or kind.is_bool else "s"
    compare, w = f"fcmp o{how}" if kind.is_real else f"icmp {letter}{how}", low.w

    def write(x: str, k: str, best: str, where: str) -> tuple[str, str]:
        better = w.define(f"{compare} {kind.text} {x}, {best}")
        if kind.is_real:
            nan = w.define(f"fcmp uno {kind.text} {x}, {x}")
            number = w.define(f"fcmp ord {kind.text} {best}, {best}")
            either = w.define(f"or i1 {better}, {nan}")
            better = w.define(f"and i1 {either}, {number}")
        return (
            w.define(f"select i1 {better}, {kind.text} {x}, {kind.text} {best}"),
            w.define(f"select i1 {better}, i64 {k}, i64 {where}"),
        )

    return write


def _positions_of_rows(
    low: Lowering, array: Array, axis: int, made: Array, better: _Better
) -> None:
    """Row by row as they lie in memory, with the best of each column so far beside."""
    w, sizes, arrays = low.w, low.sizes, low.arrays
    row = sizes.product(array.dims[axis + 1 :])
    block = sizes.mul(array.dims[axis], row)
    best = arrays.new(array.dtype, [row])

    def each(outer: str) -> None:
        first, to = sizes.mul(outer, block), sizes.mul(outer, row)

        def start(j: str) -> None:
            arrays.store(best, j, arrays.load(array, sizes.add(first, j)))
            arrays.store(made, sizes.add(to, j), "0")

        def step(k: str) -> None:
            line = sizes.add(first, sizes.mul(k, row))

            def column(j: str) -> None:
                x, place = arrays.load(array, sizes.add(line, j)), sizes.add(to, j)
                before = arrays.load(best, j), arrays.load(made, place)
                found, where = better(x, k, *before)
                arrays.store(best, j, found)
                arrays.store(made, place, where)

            w.loop(row, column)

        w.loop(row, start)
        w.loop(array.dims[axis], step)

    w.loop(sizes.product(array.dims[:axis]), each)
    arrays.release(best.pointer)


EMITTERS: Mapping[Op, Emit] = {
    reducing.argmax: _extreme_position("gt"),
    reducing.argmin: _extreme_position("lt"),
}
