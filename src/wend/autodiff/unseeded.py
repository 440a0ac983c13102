"""A backward graph for fewer cotangents: those that never arrive are Zero, and cost nothing.

A backward graph is linear in its cotangents. What is computed from Zero alone is Zero, and a sum
is what is left of it. So a cotangent that does not arrive is not 0 · inf somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import reached_values
from wend.ir.types import MaybeType, TensorType, Type, without_maybe
from wend.ops import elementwise, lists, maybe, shaping
from wend.ops.build import Build

_SUMS = (elementwise.add, maybe.autograd_add, lists.list_add)


class UnknownZero(Exception):
    """A sum needs zeros of a type whose sizes only the run knows."""


def without_seeds(
    backward: Graph, seeds: Sequence[Value], absent: Iterable[Value]
) -> tuple[Graph, tuple[bool, ...]]:
    """The backward graph where some of its `seeds` do not arrive.

    Returns:
        The graph of the params that are left and the results that are; and of each result
        whether it is left.

    Raises:
        UnknownZero: a node takes both what arrives and what does not, of unknown size.
    """
    missing = set(absent)
    b, moved = Build(backward.name), reached_values(backward, seeds)
    kept = [param for param in backward.params if param not in missing]
    mapping = {param: b.param(param.type, param.name) for param in kept}
    for node in backward.nodes:
        linear = [operand for operand in node.operands if operand in moved]
        if linear and missing.issuperset(linear):
            missing.update(node.results)
        elif missing.isdisjoint(linear):
            b.nodes += copy_nodes([node], mapping)
        else:
            _partly(b, node, mapping, missing)
    left = tuple(result not in missing for result in backward.results)
    results = [mapping[value] for value in backward.results if value not in missing]
    return b.finish(results), left


def _partly(b: Build, node: Node, mapping: dict[Value, Value], missing: set[Value]) -> None:
    """Copy a node of which some operands do not arrive."""
    b.source = node.source
    if node.op in _SUMS:
        (other,) = (operand for operand in node.operands if operand not in missing)
        result, left = node.results[0], mapping[other]
        if isinstance(left.type, MaybeType) and not isinstance(result.type, MaybeType):
            left = b.emit(maybe.instantiate, left, _zeros(b, result.type))
        mapping[result] = b.refine(left, _like(left.type, result.type))
        return
    for operand in node.operands:
        if operand in missing:
            mapping[operand] = _zeros(b, operand.type)
            missing.remove(operand)
    b.nodes += copy_nodes([node], mapping)


def _like(given: Type, wanted: Type) -> Type:
    """The type wanted, a maybe only if what is given is one."""
    return wanted if isinstance(given, MaybeType) else without_maybe(wanted)


def _zeros(b: Build, type: Type) -> Value:
    if isinstance(type, MaybeType):
        return b.zero(type.of)
    if not isinstance(type, TensorType) or not type.is_static:
        raise UnknownZero(str(type))
    number = b.constant(np.zeros((), type.dtype))
    return number if not type.dims else b.emit(shaping.broadcast_to, number, shape=type.dims)
