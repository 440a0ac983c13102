"""Sums of cotangents, simplified: Zero and an array that stands for it are the identities."""

from __future__ import annotations

from collections.abc import Sequence

from wend.base.zero import Zero
from wend.ir.graph import Node, Value
from wend.ir.rewrite import copy_node
from wend.ir.types import MaybeType, TensorType
from wend.ops import elementwise, lists, maybe, shaping
from wend.ops.build import Build
from wend.ops.creating import is_zeros
from wend.passes.zero_interpreter import Specializer, State, values_of


def specialize_autograd_add(
    s: Specializer, b: Build, node: Node, states: Sequence[State]
) -> Sequence[State]:
    """Add the summands of a sum that may be Zero one after the other."""
    x, y = states
    if isinstance(x, Zero) or isinstance(y, Zero):
        return [y if isinstance(x, Zero) else x]
    for into, part in ((x, y), (y, x)):
        if isinstance(into.type, TensorType) and into.type.shape != () and _is_sum(part):
            assert part.node is not None
            for summand in part.node.operands:
                is_maybe = isinstance(summand.type, MaybeType)
                refined = b.refine(summand, MaybeType(into.type) if is_maybe else into.type)
                (into,) = values_of(specialize_autograd_add(s, b, node, [into, refined]))
            return [into]
    return _simplify_sum(s, b, node, [x, y]) or [b.autograd_add(x, y)]


def _is_sum(value: Value) -> bool:
    """Return whether a value is a sum of arrays that may be Zero.

    Added to an array one after the other, each can be added in place where it arises.
    """
    return value.node is not None and value.node.op is maybe.autograd_add


def specialize_add(
    s: Specializer, b: Build, node: Node, states: Sequence[State]
) -> Sequence[State]:
    """Simplify an addition: an array that stands for a Zero is the identity of sums, too."""
    operands = values_of(states)
    simplified = _simplify_sum(s, b, node, operands)
    if simplified:
        return simplified
    sum_node = b.emit_node(node.op, operands)
    sum_node.remark = node.remark
    return sum_node.results


def _simplify_sum(
    s: Specializer, b: Build, node: Node, operands: Sequence[Value]
) -> Sequence[State]:
    """Return a sum without an addition of its own; empty where it needs one."""
    x, y = operands
    if x.type != y.type:
        return []
    if x in s.zeros:
        return [y]
    if y in s.zeros:
        return [x]
    if node.op is not elementwise.add:
        for into, part in ((x, y), (y, x)):
            updates = _updates_of_zeros(part)
            for update in updates:
                b.nodes.append(copy_node(update, [into, *update.operands[1:]]))
                (into,) = b.nodes[-1].results
            if updates:
                return [into]
    return []


def _updates_of_zeros(value: Value) -> list[Node]:
    """Return the additions into parts of zeros that make a value, in order; none if others do.

    x + add_at(zeros, v) is add_at(x, v): a loop that reads one item a trip must not touch all.
    """
    updates: list[Node] = []
    while (node := value.node) is not None:
        is_addition = node.op.updates == 0 and node.op.addends == (0,)
        if is_addition:
            updates.append(node)
        elif node.op is not shaping.refine:  # the result has the type of what is added to
            break
        value = node.operands[0]
    return updates[::-1] if _is_zeros(value) else []


def _is_zeros(value: Value) -> bool:
    """Return whether every element, of an array or a list, is zero in every run."""
    return is_zeros(value) or (value.node is not None and value.node.op is lists.list_zeros)
