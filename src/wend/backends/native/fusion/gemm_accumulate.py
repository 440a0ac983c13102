"""GEMM accumulation (beta = 1): products that are only added to an array are never stored."""

from __future__ import annotations

from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Node, Value
from wend.ops import contracting, elementwise


def accumulates_product(uses: LastUses, node: Node) -> bool:
    """Return whether a node adds a product in place."""
    if node.op is not elementwise.add:
        return False
    producers = (value.node for value in node.operands)
    dots = [
        producer
        for producer in producers
        if producer is not None and producer.op is contracting.dot_general
    ]
    return any(accumulator_of(uses, dot) is not None for dot in dots)


def accumulator_of(uses: LastUses, product: Node) -> Value | None:
    """Return the array that a product is added to, if both have no other use.

    Gradients of matrices are accumulated in this way.
    """
    (result,) = product.results
    users = uses.users(result)
    if uses.is_result(result) or len(users) != 1 or users[0].op is not elementwise.add:
        return None
    others = [value for value in users[0].operands if value is not result]
    if len(others) != 1 or others[0].type != result.type or is_scalar(result.type):
        return None
    (other,) = others
    is_sum = other.node is None or other.node.op is elementwise.add
    is_last = uses.users(other) == users and not uses.is_result(other)
    can_defer = not any(_may_change(uses, value) for value in product.operands)
    return other if is_sum and is_last and can_defer else None


def _may_change(uses: LastUses, value: Value) -> bool:
    """Return whether deferring a read would force a copy, because the value is updated meanwhile.

    Nests update only values that nobody else holds.
    """
    users = [user for user in uses.users(value) if user.op is not loop_nest]
    return any(user.op.updates is not None or user.regions for user in users)
