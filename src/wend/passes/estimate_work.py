"""Estimates of the time that operations take, from the sizes of their operands.

They decide what is worth a thread of its own; the results do not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import TensorType, Type
from wend.ops import contracting, decompositions, factors, linalg
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import trip_count

# Seconds for one multiplication and addition, for one element, and for one of a factorisation
_PER_PRODUCT, _PER_ELEMENT, _PER_FACTOR = 1e-10, 1e-9, 1e-9
_UNKNOWN_SIZE = 100


def work(node: Node) -> float:
    """Return the estimated seconds that a node takes, from the types of its operands."""
    shapes = [_shape(x.type) for x in node.operands]
    return seconds(node.op, node.attrs, shapes) if shapes and not node.regions else 0.0


def total_work(node: Node) -> float:
    """Return the estimated seconds that a node and its regions take; a loop of unknown trips: 0."""
    if not node.regions:
        return work(node)
    trips = trip_count(WhileParts.of(node)) if node.op is while_ else 1
    if not isinstance(trips, int):
        return 0.0
    return trips * sum(total_work(inner) for region in node.regions for inner in region.nodes)


def _shape(type: Type) -> tuple[int, ...]:
    if not isinstance(type, TensorType) or type.shape is None:
        return ()
    return tuple(dim if isinstance(dim, int) else _UNKNOWN_SIZE for dim in type.shape)


def seconds(op: Op, attrs: Any, shapes: Sequence[tuple[int, ...]]) -> float:
    """Return the estimated seconds of an operation on arrays of these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    if op is contracting.dot_general:
        axes = (*attrs["contract"][0], *attrs["batch"][0])
        shared = math.prod(shapes[0][k] for k in axes)
        return float(math.prod(sizes) / max(shared, 1) * _PER_PRODUCT)
    if op in FACTORS:
        pairs = zip(shapes, sizes, strict=True)
        return sum(size * shape[-1] for shape, size in pairs if len(shape) > 1) * _PER_FACTOR
    return sum(sizes) * _PER_ELEMENT


_MODULES = (linalg, factors, decompositions)
FACTORS = {op for module in _MODULES for op in vars(module).values() if isinstance(op, Op)}
