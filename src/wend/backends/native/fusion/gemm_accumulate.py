"""Which products are but added to an array: those are added there, and are never in memory."""

from __future__ import annotations

from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.fusion.op_classes import WRITERS
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Node, Value
from wend.ops import contracting, elementwise


def takes_product(uses: LastUses, node: Node) -> bool:
    """Whether a node adds a product in place."""
    if node.op is not elementwise.add:
        return False
    makers = (value.node for value in node.operands)
    dots = [m for m in makers if m is not None and m.op is contracting.dot_general]
    return any(sum_of(uses, dot) is not None for dot in dots)


def sum_of(uses: LastUses, product: Node) -> Value | None:
    """The array that a product is added to, if that is all and the array is then done with.

    So gradients of matrices are summed up.
    """
    (result,) = product.results
    takers = uses.users(result)
    if uses.is_result(result) or len(takers) != 1 or takers[0].op is not elementwise.add:
        return None
    others = [value for value in takers[0].operands if value is not result]
    if len(others) != 1 or others[0].type != result.type or is_scalar(result.type):
        return None
    (other,) = others
    is_sum = other.node is None or other.node.op is elementwise.add
    is_last = uses.users(other) == takers and not uses.is_result(other)
    can_wait = not any(_may_change(uses, value) for value in product.operands)
    return other if is_sum and is_last and can_wait else None


def _may_change(uses: LastUses, value: Value) -> bool:
    """Whether what is read later on would have to be copied, since it is changed meanwhile.

    A nest does so only to what nobody else holds.
    """
    takers = [taker for taker in uses.users(value) if taker.op is not loop_nest]
    return any(taker.op in WRITERS or taker.regions for taker in takers)
