"""Positions of the largest or smallest elements along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.reducing import check_nonempty
from wend.backends.native.rt.ordering import row_argminmax
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import reducing


def _argextreme(predicate: str) -> Emit:
    """Return the emitter of the position of the first extreme element, or of the first NaN."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        value = node.operands[0].tensor
        if value.dtype not in REGISTERS or is_scalar(value):
            return NotImplemented
        array, axis = low.array(node, 0), node.attrs["axis"]
        axis_size, strides = array.dims[axis], low.sizes.strides(array.dims)
        check_nonempty(low, [axis_size])
        update = _update_best(low, array.kind, predicate)

        def best_position(row_start: str) -> str:
            if strides[axis] == "1" and array.dtype in row_argminmax.DTYPES:
                address = low.arrays.address(array, row_start)
                name = row_argminmax.position_name(
                    {"gt": "max", "lt": "min"}[predicate], array.dtype
                )
                return low.calls.row_function(name, "i64", address, axis_size)

            def body(k: str, best_so_far: tuple[str, ...]) -> Sequence[str]:
                at = low.sizes.add(row_start, low.sizes.mul(k, strides[axis]))
                return update(low.arrays.load(array, at), k, *best_so_far)

            first = low.arrays.load(array, row_start)
            return low.w.fold(axis_size, [array.kind.text, "i64"], [first, "0"], body)[1]

        if is_scalar(node.results[0].type):
            return [(best_position("0"),)]
        dims = [size for k, size in enumerate(array.dims) if k != axis]
        if node.attrs["keepdims"]:
            dims.insert(axis, "1")
        if axis == len(array.dims) - 1:
            return [
                low.computed_result(
                    node, dims, lambda k: best_position(low.sizes.mul(k, strides[axis - 1]))
                )
            ]
        out = low.new_result(node, dims)
        _argextreme_rowwise(low, array, axis, out, update)
        return [low.array_result(node, out)]

    return emit


_Update: TypeAlias = Callable[[str, str, str, str], tuple[str, str]]


def _update_best(low: Lowering, kind: Kind, predicate: str) -> _Update:
    """Return a function that emits one step of the search for an extreme element.

    It takes an element, its position, the best element so far and its position, and returns the
    best element with its position.
    """
    sign_prefix = "u" if kind.is_unsigned or kind.is_bool else "s"
    compare, w = f"fcmp o{predicate}" if kind.is_real else f"icmp {sign_prefix}{predicate}", low.w

    def emit(x: str, k: str, best: str, best_k: str) -> tuple[str, str]:
        is_better = w.define(f"{compare} {kind.text} {x}, {best}")
        if kind.is_real:
            is_nan = w.define(f"fcmp uno {kind.text} {x}, {x}")
            is_number = w.define(f"fcmp ord {kind.text} {best}, {best}")
            wins = w.define(f"or i1 {is_better}, {is_nan}")
            is_better = w.define(f"and i1 {wins}, {is_number}")
        return (
            w.define(f"select i1 {is_better}, {kind.text} {x}, {kind.text} {best}"),
            w.define(f"select i1 {is_better}, i64 {k}, i64 {best_k}"),
        )

    return emit


def _argextreme_rowwise(
    low: Lowering, array: Array, axis: int, out: Array, update: _Update
) -> None:
    """Emit the positions along an axis that is not the last, in the order of memory."""
    w, sizes, arrays = low.w, low.sizes, low.arrays
    row = sizes.product(array.dims[axis + 1 :])
    block = sizes.mul(array.dims[axis], row)
    best = arrays.new(array.dtype, [row])

    def each(outer: str) -> None:
        block_start, out_start = sizes.mul(outer, block), sizes.mul(outer, row)

        def initialize(j: str) -> None:
            arrays.store(best, j, arrays.load(array, sizes.add(block_start, j)))
            arrays.store(out, sizes.add(out_start, j), "0")

        def step(k: str) -> None:
            row_start = sizes.add(block_start, sizes.mul(k, row))

            def column(j: str) -> None:
                x, target = arrays.load(array, sizes.add(row_start, j)), sizes.add(out_start, j)
                best_so_far = arrays.load(best, j), arrays.load(out, target)
                best_value, best_position = update(x, k, *best_so_far)
                arrays.store(best, j, best_value)
                arrays.store(out, target, best_position)

            w.loop(row, column)

        w.loop(row, initialize)
        w.loop(array.dims[axis], step)

    w.loop(sizes.product(array.dims[:axis]), each)
    arrays.release(best.pointer)


EMITTERS: Mapping[Op, Emit] = {
    reducing.argmax: _argextreme("gt"),
    reducing.argmin: _argextreme("lt"),
}
