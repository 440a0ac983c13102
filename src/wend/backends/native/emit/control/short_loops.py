"""Loops that are over so soon that nobody waits for them: they need no safepoints.

Without the exit of a safepoint a loop on numbers is a plain counted loop, which LLVM vectorizes.
"""

from __future__ import annotations

import math

from wend.backends.native.target.loop_nest import loop_nest
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.types import TensorType
from wend.ops.control import WhileParts, if_, while_
from wend.ops.indexing import gather
from wend.ops.loop_counters import trip_count

MAX_NANOSECONDS = 1e6
# Operations on larger arrays, such as products, may take more than a few ns for each element.
_MAX_ELEMENTS = 256
_NODE_NANOSECONDS = 10.0  # more than an operation on numbers takes


def is_short(parts: WhileParts) -> bool:
    """Return whether a loop takes no more than about a millisecond."""
    return _loop_cost(parts) <= MAX_NANOSECONDS


def max_short_trips(parts: WhileParts) -> int:
    """Return how many trips of a loop of operations on numbers take about a millisecond."""
    nodes = sum(1 for region in (parts.before, parts.after) for _ in region.walk())
    return int(MAX_NANOSECONDS / (_NODE_NANOSECONDS * nodes))


def _loop_cost(parts: WhileParts) -> float:
    """Return an upper bound of the time of a loop in ns, infinite if there is none."""
    trips = trip_count(parts)
    if not isinstance(trips, int):
        return math.inf
    return (trips + 1) * (_cost(parts.before) + _cost(parts.after))


def _cost(region: Graph) -> float:
    return sum(map(_node_cost, region.nodes), 0.0)


def _node_cost(node: Node) -> float:
    if node.op is while_:
        return _loop_cost(WhileParts.of(node))
    if node.op is if_:
        return max(map(_cost, node.regions)) + _NODE_NANOSECONDS
    has_effect = node.op.effect not in (Effect.NONE, Effect.CHECK)
    if has_effect or (node.regions and node.op is not loop_nest):
        return math.inf
    values = [*node.operands, *node.results]
    if node.op.updates is not None:  # in place, but where the loop does not own the array yet
        values = [v for k, v in enumerate(node.operands) if k != node.op.updates]
    elif node.op is gather:
        values = [*node.operands[1:], *node.results]
    steps = max(map(_count, values), default=1.0)
    inner = sum(_cost(region) for region in node.regions)
    return steps * max(_NODE_NANOSECONDS, inner)


def _count(value: Value) -> float:
    """Return the number of elements of a value; infinite if it may be large."""
    if not isinstance(value.type, TensorType) or value.type.shape is None:
        return math.inf
    sizes = [size for size in value.type.shape if isinstance(size, int)]
    count = math.prod(sizes) if len(sizes) == len(value.type.shape) else math.inf
    return float(count) if count <= _MAX_ELEMENTS else math.inf
