"""Products of matrices, their terms added in order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.scalars.reducing import plus_zero
from wend.backends.native.scalars.rule import Rule
from wend.backends.native.scalars.scope import Elements, Scope
from wend.backends.native.small import size
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import contracting


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


RULES: Mapping[Op, Rule] = {contracting.dot_general: Rule(_write_dot, _dot_fits, _dot_cost)}
