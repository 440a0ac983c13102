"""Loop-invariant code motion.

Code moved out of `after` runs even where the loop makes no trip. So only operations that cannot
fail are moved, and only in graphs about to run, not in graphs to be differentiated: a value that
no trip used would get a derivative, and 0 · inf is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes, lift, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import creating
from wend.ops.control import WhileParts, while_


# With static shapes these cannot fail, and neither can the operations marked `is_cheap`, except
# `_UNSAFE`.
def hoist(graph: Graph) -> Graph:
    """Move loop-invariant nodes out of loops, inner loops first."""

    def hoist_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [hoist(region) for region in node.regions])
        if copy.op is while_:
            moved, copy = _hoist_from_loop(copy)
            nodes += moved
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, hoist_node)


def _hoist_from_loop(loop: Node) -> tuple[list[Node], Node]:
    """Return the nodes to put before a loop, and the loop that takes their results.

    Constants are not moved by themselves: machine code materializes them where they are used.
    """
    w = WhileParts.of(loop)
    hoisted: list[Node] = []
    hoisted_values: list[Value] = []
    region_parts = []
    for region, invariants in ((w.before, w.before_invariants), (w.after, w.after_invariants)):
        invariant_values = _hoistable(region, invariants)
        outer = lift(invariant_values, hoisted, dict(zip(invariants, w.invariants, strict=True)))
        region_parts.append((region, invariant_values, len(hoisted_values)))
        hoisted_values += [outer[value] for value in invariant_values]
    if not hoisted:
        return [], loop
    for node in hoisted:
        node.remark = Remark(loop=loop.source)
    regions = [
        _with_hoisted(region, invariant_values, first, hoisted_values)
        for region, invariant_values, first in region_parts
    ]
    operands, types = (*loop.operands, *hoisted_values), [result.type for result in loop.results]
    copy = Node(loop.op, operands, loop.attrs, regions, types, loop.source)
    copy.remark = loop.remark
    return hoisted, copy


def _hoistable(region: Graph, invariants: Sequence[Value]) -> list[Value]:
    """Return the invariant values of a region that its variant nodes or its results read."""
    constant = {v for node in region.nodes if node.op is creating.constant for v in node.results}
    invariant = {*invariants, *constant}
    variant = []
    for node in region.nodes:
        if _is_speculatable(node) and invariant.issuperset(node.operands):
            invariant.update(node.results)
        else:
            variant.append(node)
    read = dict.fromkeys([v for node in variant for v in node.operands])
    read.update(dict.fromkeys(region.results))
    return [v for v in read if v in invariant and v not in constant and v not in invariants]


def _with_hoisted(
    region: Graph, invariant_values: Sequence[Value], first: int, hoisted_values: Sequence[Value]
) -> Graph:
    """Return the region with a param for each hoisted value; its own start at `first`."""
    params = [Value(value.type) for value in hoisted_values]
    mapping = dict(zip(invariant_values, params[first:], strict=False))
    nodes = copy_nodes([n for n in region.nodes if not mapping.keys() >= {*n.results}], mapping)
    results = tuple(mapping.get(v, v) for v in region.results)
    return Graph(region.name, (*region.params, *params), tuple(nodes), results)


def _is_speculatable(node: Node) -> bool:
    """Return whether a node may run where its results may be unused."""
    if node.regions or node.op.effect is not Effect.NONE or node.op.may_fail(node):
        return False
    types = [value.type for value in (*node.operands, *node.results)]
    if not all(isinstance(type, TensorType) and type.is_static for type in types):
        return False  # a shape mismatch is only detected at run time
    return node.op.is_cheap or node.op.is_speculatable
