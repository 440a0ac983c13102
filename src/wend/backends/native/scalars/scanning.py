"""Running sums and products, and linear recurrences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from wend.backends.native.scalars.reducing import operand_size
from wend.backends.native.scalars.rule import Rule
from wend.backends.native.scalars.scope import Elements, Scope
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import reducing, scanning


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
    reducing.cumsum: _running(_add),
    scanning.cumprod: _running(_multiply),
    scanning.linear_recurrence: _running(_recur),
}
