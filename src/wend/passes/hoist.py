"""Moves what does not change from trip to trip out of loops.

What is moved out of `after` runs even where the loop makes no trip. So only operations that cannot
fail are moved, and it is done to what is to be run, not to what is to be differentiated: a value
that no trip used would have a derivative, and 0 · inf is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes, lift, on_operands, with_nodes
from wend.ir.types import TensorType
from wend.ops import contracting, creating, elementwise, parts, reducing, shaping
from wend.ops.control import WhileParts, while_

# Of equal and known sizes these cannot fail, just as what is cheap, but for two of that.
_SAFE = {
    reducing.reduce_sum,
    reducing.reduce_prod,
    reducing.reduce_any,
    reducing.reduce_all,
    reducing.cumsum,
    contracting.dot_general,
    shaping.concat,
    shaping.sum_to,
}
_UNSAFE = {
    elementwise.pow,
    shaping.narrow,
    parts.take_part,
}  # negative integer powers; positions out of range


def hoist(graph: Graph) -> Graph:
    """Move loop invariants out, of inner loops first."""

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = on_operands(node, operands, [hoist(region) for region in node.regions])
        if copy.op is while_:
            moved, copy = _without_invariants(copy)
            nodes += moved
        nodes.append(copy)
        return copy.results

    return with_nodes(graph, put)


def _without_invariants(loop: Node) -> tuple[list[Node], Node]:
    """The nodes that stand before the loop now, and the loop that takes their results.

    Constants are not moved by themselves: machine code holds them where they are used.
    """
    w = WhileParts.of(loop)
    moved: list[Node] = []
    found: list[Value] = []
    parts = []
    for region, invariants in ((w.before, w.before_invariants), (w.after, w.after_invariants)):
        steady = _steady(region, invariants)
        outer = lift(steady, moved, dict(zip(invariants, w.invariants, strict=True)))
        parts.append((region, steady, len(found)))
        found += [outer[value] for value in steady]
    if not moved:
        return [], loop
    regions = [_taking(region, steady, at, found) for region, steady, at in parts]
    operands, types = (*loop.operands, *found), [result.type for result in loop.results]
    return moved, Node(loop.op, operands, loop.attrs, regions, types, loop.source)


def _steady(region: Graph, invariants: Sequence[Value]) -> list[Value]:
    """What of a region depends on invariants alone and is read by what does not, or is a result."""
    constant = {v for node in region.nodes if node.op is creating.constant for v in node.results}
    steady = {*invariants, *constant}
    staying = []
    for node in region.nodes:
        if _is_safe(node) and steady.issuperset(node.operands):
            steady.update(node.results)
        else:
            staying.append(node)
    read = dict.fromkeys([v for node in staying for v in node.operands])
    read.update(dict.fromkeys(region.results))
    return [v for v in read if v in steady and v not in constant and v not in invariants]


def _taking(region: Graph, steady: Sequence[Value], at: int, found: Sequence[Value]) -> Graph:
    """The region with a further param for each value found; those from `at` on are its own."""
    params = [Value(value.type) for value in found]
    mapping = dict(zip(steady, params[at:], strict=False))
    nodes = copy_nodes([n for n in region.nodes if not mapping.keys() >= {*n.results}], mapping)
    results = tuple(mapping.get(v, v) for v in region.results)
    return Graph(region.name, (*region.params, *params), tuple(nodes), results)


def _is_safe(node: Node) -> bool:
    """Whether a node can run where its results are not asked for."""
    if node.regions or node.op.effect is not Effect.NONE or node.op in _UNSAFE:
        return False
    types = [value.type for value in (*node.operands, *node.results)]
    if not all(isinstance(type, TensorType) and type.is_static for type in types):
        return False  # sizes that do not fit are found at run time
    return node.op.is_cheap or node.op in _SAFE
