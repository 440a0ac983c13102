"""Reductions over axes, in the order that native code has for arrays, to the last bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.scalarize.rule import Rule
from wend.backends.native.scalarize.scope import Elements, Scope
from wend.backends.native.target.small_arrays import size
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import elementwise, reducing, shaping
from wend.ops.build import Build

_STEPS: Mapping[Op, Op] = {
    reducing.reduce_sum: elementwise.add,
    reducing.reduce_prod: elementwise.mul,
    reducing.reduce_max: elementwise.maximum,
    reducing.reduce_min: elementwise.minimum,
    reducing.reduce_any: elementwise.bit_or,
    reducing.reduce_all: elementwise.bit_and,
    shaping.sum_to: elementwise.add,
}


def _is_float_sum(node: Node) -> bool:
    return _STEPS[node.op] is elementwise.add and node.results[0].tensor.dtype.kind == "f"


def _axes(node: Node) -> tuple[int, ...]:
    if node.op is not shaping.sum_to:
        return tuple(node.attrs["axes"])
    dims, wanted = node.operands[0].tensor.dims, node.results[0].tensor.dims
    lead = len(dims) - len(wanted)
    pairs = enumerate(zip(dims[lead:], wanted, strict=True), lead)
    return (*range(lead), *(k for k, (mine, theirs) in pairs if theirs == 1 and mine != 1))


def _write_reduction(scope: Scope, node: Node) -> Sequence[Elements]:
    """As native code reduces arrays: rows that lie side by side first, then over the others."""
    (x, *_), axes = node.operands, _axes(node)
    dims, b = x.tensor.dims, scope.b
    numbers = np.arange(size(x.type)).reshape(dims)  # type: ignore[arg-type]
    given, rank = scope.elements(x), len(dims)
    tail = rank
    while tail and tail - 1 in axes:
        tail -= 1
    kept = [k for k in range(tail) if k not in axes]
    totals: dict[tuple[int, ...], Value] = {}
    for place in np.ndindex(*dims[:tail]):  # type: ignore[arg-type]
        row = [given[number] for number in np.ravel(numbers[place])]
        found = _row(b, node, row) if tail < rank else row[0]
        key = tuple(place[k] for k in kept)
        if key in totals:
            totals[key] = b.emit(_STEPS[node.op], totals[key], found)
        elif tail == rank and _is_float_sum(node):
            totals[key] = plus_zero(b, found)
        else:
            totals[key] = found
    return [tuple(totals.values())]


def plus_zero(b: Build, x: Value) -> Value:
    """What a sum that starts with 0 has after its first term: −0.0 becomes 0.0."""
    return b.add(b.constant(0, x.tensor.dtype), x)


def _row(b: Build, node: Node, row: Sequence[Value]) -> Value:
    if _is_float_sum(node):
        return _pairwise(b, row)
    total, *rest = row
    for x in rest:
        total = b.emit(_STEPS[node.op], total, x)
    return total


def _pairwise(b: Build, row: Sequence[Value]) -> Value:
    """In NumPy's order; see sums.py."""
    if len(row) < 8:
        total = plus_zero(b, row[0])
        rest = row[1:]
    else:
        sums = list(row[:8])
        whole = len(row) // 8 * 8
        for start in range(8, whole, 8):
            sums = [b.add(x, y) for x, y in zip(sums, row[start : start + 8], strict=True)]
        while len(sums) > 1:
            sums = [b.add(x, y) for x, y in zip(sums[::2], sums[1::2], strict=True)]
        # Only where all terms are −0.0 does it matter where the 0 is added.
        total, rest = plus_zero(b, sums[0]), row[whole:]
    for x in rest:
        total = b.add(total, x)
    return total


def _sum_to_fits(node: Node) -> bool:
    """Whether native code does it on arrays; else NumPy does, in an order of its own."""
    lead = len(node.operands[0].tensor.dims) - len(node.results[0].tensor.dims)
    return not node.results[0].tensor.dims or not lead or len(_axes(node)) == lead


def operand_size(node: Node) -> int:
    """The number of elements of the first operand."""
    return size(node.operands[0].type)


# Where the extreme element is
def _write_position(scope: Scope, node: Node) -> Sequence[Elements]:
    """The first extreme element of each line; the first NaN, if there is one."""
    (x,), axis = node.operands, node.attrs["axis"]
    given = scope.elements(x)
    lines = np.moveaxis(np.arange(len(given)).reshape(x.tensor.dims), axis, -1)  # type: ignore[arg-type]
    return [tuple(_best(scope.b, node, [given[k] for k in line]) for line in _rows(lines))]


def _rows(lines: np.ndarray) -> np.ndarray:
    return lines.reshape(-1, lines.shape[-1])


def _best(b: Build, node: Node, line: Sequence[Value]) -> Value:
    more = elementwise.gt if node.op is reducing.argmax else elementwise.lt
    best, place = line[0], b.integer(0)
    for k, x in enumerate(line[1:], 1):
        is_better = b.emit(more, x, best)
        if x.tensor.dtype.kind == "f":
            is_nan = b.emit(elementwise.isnan, x)
            is_number = b.emit(elementwise.bit_not, b.emit(elementwise.isnan, best))
            either = b.emit(elementwise.bit_or, is_better, is_nan)
            is_better = b.emit(elementwise.bit_and, either, is_number)
        best = b.select(is_better, x, best)
        place = b.select(is_better, b.integer(k), place)
    return place


def _position_cost(node: Node) -> int:
    return 6 * operand_size(node)


RULES: Mapping[Op, Rule] = {
    **{op: Rule(_write_reduction, cost=operand_size) for op in _STEPS},
    shaping.sum_to: Rule(_write_reduction, _sum_to_fits, operand_size),
    reducing.argmax: Rule(_write_position, cost=_position_cost),
    reducing.argmin: Rule(_write_position, cost=_position_cost),
}
