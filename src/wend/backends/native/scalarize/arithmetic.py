"""Elementwise operations, products and running sums of small arrays, element by element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.emit.scalar.functions import is_one_number
from wend.backends.native.scalarize.reducing import operand_size, plus_zero
from wend.backends.native.scalarize.rule import Rule
from wend.backends.native.scalarize.scope import Elements, Scope
from wend.backends.native.target.kinds import FLOAT32
from wend.backends.native.target.small_arrays import size
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import contracting, elementwise, reducing, scanning


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


def _lines(node: Node) -> list[list[int]]:
    """The numbers of the elements along the axis of a node, in its order."""
    dims, axis = node.operands[0].tensor.dims, node.attrs["axis"]
    numbers = np.arange(operand_size(node)).reshape(dims)  # type: ignore[arg-type]
    lines = np.moveaxis(numbers, axis, -1).reshape(-1, numbers.shape[axis])
    found: list[list[int]] = lines.tolist()
    return [line[::-1] for line in found] if node.attrs.get("reverse", False) else found


def _running(step: Callable[[Scope, Node, Value, int], Value]) -> Rule:
    """Each element from the one before it; `step` is given that and the number of the element."""

    def write(scope: Scope, node: Node) -> Sequence[Elements]:
        found = list(scope.elements(node.operands[-1]))
        for line in _lines(node):
            for before, k in itertools.pairwise(line):
                found[k] = step(scope, node, found[before], k)
        return [tuple(found)]

    return Rule(write, cost=lambda node: 2 * operand_size(node))


def _add(scope: Scope, node: Node, before: Value, k: int) -> Value:
    return scope.b.add(before, scope.elements(node.operands[0])[k])


def _multiply(scope: Scope, node: Node, before: Value, k: int) -> Value:
    return scope.b.mul(before, scope.elements(node.operands[0])[k])


def _recur(scope: Scope, node: Node, before: Value, k: int) -> Value:
    a, x = (scope.elements(value)[k] for value in node.operands)
    return scope.b.add(x, scope.b.mul(a, before))


RULES: Mapping[Op, Rule] = {
    contracting.dot_general: Rule(_write_dot, _dot_fits, _dot_cost),
    **{op: Rule(_write_each, _each_fits, _each_cost) for op in ELEMENTS},
    elementwise.stop_gradient: Rule(_write_same),
    reducing.cumsum: _running(_add),
    scanning.cumprod: _running(_multiply),
    scanning.linear_recurrence: _running(_recur),
}
