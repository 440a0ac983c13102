"""Operations that compute: element by element, sums and products in the order that loops have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.emit.elements import ELEMENTS, is_one_number
from wend.backends.native.kinds import FLOAT32
from wend.backends.native.scalars.rule import Rule
from wend.backends.native.scalars.scope import Elements, Scope
from wend.backends.native.scalars.small import size
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import contracting, elementwise, reducing, shaping
from wend.ops.build import Build

# What counts as one operation, of those that are not functions
_PLAIN = {
    *(elementwise.add, elementwise.sub, elementwise.mul, elementwise.div, elementwise.neg),
    *(elementwise.abs, elementwise.sqrt, elementwise.select, elementwise.cast),
    *(elementwise.bit_and, elementwise.bit_or, elementwise.bit_xor, elementwise.bit_not),
    *(elementwise.eq, elementwise.ne, elementwise.lt, elementwise.le, elementwise.gt),
    *(elementwise.ge, elementwise.reciprocal, elementwise.maximum, elementwise.minimum),
    *(elementwise.isnan, elementwise.isinf, elementwise.isfinite, elementwise.sign),
}
_FUNCTION = 12  # so many instructions a function is worth, at least
_MOST_FUNCTIONS = 4  # of more elements they are computed faster by vectors, in a loop


# Element by element
def _each_fits(node: Node) -> bool:
    if node.op not in _PLAIN and size(node.results[0].type) > _MOST_FUNCTIONS:
        return False
    is_power = node.op is elementwise.pow and node.results[0].tensor.dtype != FLOAT32
    if is_power and not is_one_number(node.operands[1]):
        return False  # an exponent for each element is another power than one for all
    return ELEMENTS[node.op].takes(node)


def _write_each(scope: Scope, node: Node) -> Sequence[Elements]:
    given = zip(*(scope.elements(value) for value in node.operands), strict=True)
    return [tuple(scope.b.emit(node.op, *xs, **node.attrs) for xs in given)]


def _each_cost(node: Node) -> int:
    return size(node.results[0].type) * (1 if node.op in _PLAIN else _FUNCTION)


def _write_same(scope: Scope, node: Node) -> Sequence[Elements]:
    return [scope.elements(node.operands[0])]


# Reductions
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


def _operand_size(node: Node) -> int:
    return size(node.operands[0].type)


# Running sums
def _write_cumsum(scope: Scope, node: Node) -> Sequence[Elements]:
    (x,), axis, b = node.operands, node.attrs["axis"], scope.b
    numbers = np.arange(size(x.type)).reshape(x.tensor.dims)  # type: ignore[arg-type]
    lines = np.moveaxis(numbers, axis, -1).reshape(-1, numbers.shape[axis])
    found = list(scope.elements(x))
    for line in lines[:, ::-1] if node.attrs["reverse"] else lines:
        if x.tensor.dtype.kind == "f":
            found[line[0]] = plus_zero(b, found[line[0]])
        for before, k in itertools.pairwise(line):
            found[k] = b.add(found[before], found[k])
    return [tuple(found)]


# Products
def _depth(node: Node) -> int:
    dims = node.operands[0].tensor.dims
    return math.prod(dims[k] for k in node.attrs["contract"][0])


def _dot_fits(node: Node) -> bool:
    x, y = (value.tensor for value in node.operands)
    return x.dtype.kind != "b" and bool(x.dims) and bool(y.dims)


def _write_dot(scope: Scope, node: Node) -> Sequence[Elements]:
    """Products of pairs, added in order."""
    b, (mine, theirs) = scope.b, (_in_rows(node, k) for k in (0, 1))
    x, y = (scope.elements(value) for value in node.operands)
    found = []
    for rows, columns in zip(mine, theirs, strict=True):  # of each matrix of a stack
        for row in rows:
            for column in columns:
                first, *rest = (b.mul(x[i], y[j]) for i, j in zip(row, column, strict=True))
                total = plus_zero(b, first) if first.tensor.dtype.kind == "f" else first
                for term in rest:
                    total = b.add(total, term)
                found.append(total)
    return [tuple(found)]


def _in_rows(node: Node, k: int) -> np.ndarray:
    """The numbers of an operand's elements, by matrix of the stack, row, and place in the row."""
    value, contract, batch = node.operands[k].tensor, node.attrs["contract"], node.attrs["batch"]
    free = [a for a in range(len(value.dims)) if a not in contract[k] and a not in batch[k]]
    numbers = np.arange(size(value)).reshape(value.dims)  # type: ignore[arg-type]
    ordered = numbers.transpose((*batch[k], *free, *contract[k]))
    stack = math.prod(value.dims[a] for a in batch[k])
    return ordered.reshape(stack, -1, _depth(node))


def _dot_cost(node: Node) -> int:
    return 2 * size(node.results[0].type) * _depth(node)


RULES: Mapping[Op, Rule] = {
    **{op: Rule(_write_each, _each_fits, _each_cost) for op in ELEMENTS},
    elementwise.stop_gradient: Rule(_write_same),
    **{op: Rule(_write_reduction, cost=_operand_size) for op in _STEPS},
    shaping.sum_to: Rule(_write_reduction, _sum_to_fits, _operand_size),
    reducing.cumsum: Rule(_write_cumsum, cost=_operand_size),
    contracting.dot_general: Rule(_write_dot, _dot_fits, _dot_cost),
}
