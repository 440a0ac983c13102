"""Reductions of small arrays, bit for bit in the order in which native code reduces arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.scalarize.rule import ExpansionRule
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.target.small_arrays import size
from wend.ir.graph import Node, Value
from wend.ir.op import TABLE, Op
from wend.ops import elementwise, reducing, shaping
from wend.ops.build import Build


def _is_float_sum(node: Node) -> bool:
    return node.op.step is elementwise.add and node.results[0].tensor.dtype.kind == "f"


def _axes(node: Node) -> tuple[int, ...]:
    if node.op is not shaping.sum_to:
        return tuple(node.attrs["axes"])
    dims, result_dims = node.operands[0].tensor.dims, node.results[0].tensor.dims
    num_leading = len(dims) - len(result_dims)
    pairs = enumerate(zip(dims[num_leading:], result_dims, strict=True), num_leading)
    return (
        *range(num_leading),
        *(k for k, (operand_dim, result_dim) in pairs if result_dim == 1 and operand_dim != 1),
    )


def _expand_reduction(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    """Reduce contiguous rows first, then the other axes, as native code does for arrays."""
    (x, *_), axes = node.operands, _axes(node)
    dims, b = x.tensor.dims, scope.b
    numbers = np.arange(size(x.type)).reshape(dims)  # type: ignore[arg-type]
    elements, rank = scope.elements(x), len(dims)
    outer_rank = rank
    while outer_rank and outer_rank - 1 in axes:
        outer_rank -= 1
    remaining_axes = [k for k in range(outer_rank) if k not in axes]
    totals: dict[tuple[int, ...], Value] = {}
    step = node.op.step
    assert step is not None
    for position in np.ndindex(*dims[:outer_rank]):  # type: ignore[arg-type]
        row = [elements[number] for number in np.ravel(numbers[position])]
        partial = _reduce_row(b, node, step, row) if outer_rank < rank else row[0]
        key = tuple(position[k] for k in remaining_axes)
        if key in totals:
            totals[key] = b.emit(step, totals[key], partial)
        elif outer_rank == rank and _is_float_sum(node):
            totals[key] = plus_zero(b, partial)
        else:
            totals[key] = partial
    return [tuple(totals.values())]


def plus_zero(b: Build, x: Value) -> Value:
    """Add a term to the initial 0 of a sum, which turns −0.0 into 0.0."""
    return b.add(b.constant(0, x.tensor.dtype), x)


def _reduce_row(b: Build, node: Node, step: Op, row: Sequence[Value]) -> Value:
    if _is_float_sum(node):
        return _pairwise_sum(b, row)
    total, *others = row
    for x in others:
        total = b.emit(step, total, x)
    return total


def _pairwise_sum(b: Build, row: Sequence[Value]) -> Value:
    """Sum a row in NumPy's pairwise order; see sums.py."""
    if len(row) < 8:
        total = plus_zero(b, row[0])
        tail = row[1:]
    else:
        sums = list(row[:8])
        num_blocked = len(row) // 8 * 8
        for start in range(8, num_blocked, 8):
            sums = [b.add(x, y) for x, y in zip(sums, row[start : start + 8], strict=True)]
        while len(sums) > 1:
            sums = [b.add(x, y) for x, y in zip(sums[::2], sums[1::2], strict=True)]
        # Where the 0 is added matters only if all terms are −0.0.
        total, tail = plus_zero(b, sums[0]), row[num_blocked:]
    for x in tail:
        total = b.add(total, x)
    return total


def _sum_to_fits(node: Node) -> bool:
    """Return whether native code reduces it; otherwise NumPy does, in another order."""
    lead = len(node.operands[0].tensor.dims) - len(node.results[0].tensor.dims)
    return not node.results[0].tensor.dims or not lead or len(_axes(node)) == lead


def operand_size(node: Node) -> int:
    """Return the number of elements of the first operand."""
    return size(node.operands[0].type)


# argmin and argmax
def _expand_arg_extremum(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    """Emit the position of the first extremum of each row, or of the first NaN if there is one."""
    (x,), axis = node.operands, node.attrs["axis"]
    elements = scope.elements(x)
    rows = np.moveaxis(np.arange(len(elements)).reshape(x.tensor.dims), axis, -1)  # type: ignore[arg-type]
    return [
        tuple(_arg_extremum(scope.b, node, [elements[k] for k in row]) for row in _as_rows(rows))
    ]


def _as_rows(numbers: np.ndarray) -> np.ndarray:
    return numbers.reshape(-1, numbers.shape[-1])


def _arg_extremum(b: Build, node: Node, row: Sequence[Value]) -> Value:
    compare = elementwise.gt if node.op is reducing.argmax else elementwise.lt
    best, position = row[0], b.integer(0)
    for k, x in enumerate(row[1:], 1):
        is_better = b.emit(compare, x, best)
        if x.tensor.dtype.kind == "f":
            is_nan = b.emit(elementwise.isnan, x)
            is_number = b.emit(elementwise.bit_not, b.emit(elementwise.isnan, best))
            is_better_or_nan = b.emit(elementwise.bit_or, is_better, is_nan)
            is_better = b.emit(elementwise.bit_and, is_better_or_nan, is_number)
        best = b.select(is_better, x, best)
        position = b.select(is_better, b.integer(k), position)
    return position


def _arg_extremum_cost(node: Node) -> int:
    return 6 * operand_size(node)


RULES: Mapping[Op, ExpansionRule] = {
    **{op: ExpansionRule(_expand_reduction, cost=operand_size) for op in TABLE.values() if op.step},
    shaping.sum_to: ExpansionRule(_expand_reduction, _sum_to_fits, operand_size),
    reducing.argmax: ExpansionRule(_expand_arg_extremum, cost=_arg_extremum_cost),
    reducing.argmin: ExpansionRule(_expand_arg_extremum, cost=_arg_extremum_cost),
}
