"""Elementwise operations, products and scans of small arrays, element by element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.emit.scalar.functions import is_scalar_or_splat
from wend.backends.native.scalarize.reducing import operand_size, plus_zero
from wend.backends.native.scalarize.rule import ExpansionRule
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
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
    return x.dtype.kind != "b" and bool(x.dims or y.dims)


def _expand_dot(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    """Emit each element of a product as a sum of products, in order."""
    b, (lhs_rows, rhs_columns) = scope.b, (_row_numbers(node, k) for k in (0, 1))
    x, y = (scope.elements(value) for value in node.operands)
    elements = []
    for rows, columns in zip(lhs_rows, rhs_columns, strict=True):  # of each matrix of a stack
        for row in rows:
            for column in columns:
                first, *terms = (b.mul(x[i], y[j]) for i, j in zip(row, column, strict=True))
                total = plus_zero(b, first) if first.tensor.dtype.kind == "f" else first
                for term in terms:
                    total = b.add(total, term)
                elements.append(total)
    return [tuple(elements)]


def _row_numbers(node: Node, k: int) -> np.ndarray:
    """Return the numbers of the elements of an operand by matrix, row, and position in the row."""
    value, contract, batch = node.operands[k].tensor, node.attrs["contract"], node.attrs["batch"]
    free = [a for a in range(len(value.dims)) if a not in contract[k] and a not in batch[k]]
    numbers = np.arange(size(value)).reshape(value.dims)  # type: ignore[arg-type]
    ordered = numbers.transpose((*batch[k], *free, *contract[k]))
    stack = math.prod(value.dims[a] for a in batch[k])
    return ordered.reshape(stack, -1, _depth(node))


def _dot_cost(node: Node) -> int:
    return 2 * size(node.results[0].type) * _depth(node)


_INSTRUCTION_NS = 0.5  # an operation that takes less is one instruction
_FUNCTION_COST = 12  # instructions of a function call, at least
_MAX_SCALAR_FUNCTIONS = 4  # for more elements, a vectorized loop is faster


def _elementwise_fits(node: Node) -> bool:
    if node.op.cost > _INSTRUCTION_NS and size(node.results[0].type) > _MAX_SCALAR_FUNCTIONS:
        return False
    is_power = node.op is elementwise.pow and node.results[0].tensor.dtype != FLOAT32
    if is_power and not is_scalar_or_splat(node.operands[1]):
        return False  # `pow` with one exponent for all elements is computed differently
    return ELEMENTS[node.op].supports(node)


def _expand_elementwise(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    element_tuples = zip(*(scope.elements(value) for value in node.operands), strict=True)
    return [tuple(scope.b.emit(node.op, *xs, **node.attrs) for xs in element_tuples)]


def _elementwise_cost(node: Node) -> int:
    return size(node.results[0].type) * (1 if node.op.cost < _INSTRUCTION_NS else _FUNCTION_COST)


def _forward(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    return [scope.elements(node.operands[0])]


def _scan_lines(node: Node) -> list[list[int]]:
    """Return the numbers of the elements along the axis of a scan, in scan order."""
    dims, axis = node.operands[0].tensor.dims, node.attrs["axis"]
    numbers = np.arange(operand_size(node)).reshape(dims)  # type: ignore[arg-type]
    lines = np.moveaxis(numbers, axis, -1).reshape(-1, numbers.shape[axis])
    ordered: list[list[int]] = lines.tolist()
    return [line[::-1] for line in ordered] if node.attrs.get("reverse", False) else ordered


def _scan_rule(step: Callable[[ScalarScope, Node, Value, int], Value]) -> ExpansionRule:
    """Return the rule of a scan; `step` computes a result from the previous one and its number."""

    def expand(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
        results = list(scope.elements(node.operands[-1]))
        for line in _scan_lines(node):
            for before, k in itertools.pairwise(line):
                results[k] = step(scope, node, results[before], k)
        return [tuple(results)]

    return ExpansionRule(expand, cost=lambda node: 2 * operand_size(node))


def _step_sum(scope: ScalarScope, node: Node, before: Value, k: int) -> Value:
    return scope.b.add(before, scope.elements(node.operands[0])[k])


def _step_product(scope: ScalarScope, node: Node, before: Value, k: int) -> Value:
    return scope.b.mul(before, scope.elements(node.operands[0])[k])


def _step_recurrence(scope: ScalarScope, node: Node, before: Value, k: int) -> Value:
    a, x = (scope.elements(value)[k] for value in node.operands)
    return scope.b.add(x, scope.b.mul(a, before))


RULES: Mapping[Op, ExpansionRule] = {
    contracting.dot_general: ExpansionRule(_expand_dot, _dot_fits, _dot_cost),
    **{
        op: ExpansionRule(_expand_elementwise, _elementwise_fits, _elementwise_cost)
        for op in ELEMENTS
    },
    elementwise.stop_gradient: ExpansionRule(_forward),
    reducing.cumsum: _scan_rule(_step_sum),
    scanning.cumprod: _scan_rule(_step_product),
    scanning.linear_recurrence: _scan_rule(_step_recurrence),
}
