"""Lets loops repeat numbers and rows themselves: what is only broadcast does not come from outside.

`hoist` has moved such arrays out of loops. In a nest they cost nothing, and in memory a read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, copy_nodes, with_nodes
from wend.ops import shaping
from wend.ops.control import WhileParts, while_

Computes: TypeAlias = Callable[[Node], bool]


def sink_broadcasts(graph: Graph, computes: Computes) -> Graph:
    """Broadcast in loops what only nests in them read.

    Args:
        graph: what is to be written.
        computes: whether a node computes arrays element by element.
    """
    if not any(_is_given_spread(node) for node in graph.walk()):
        return graph

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = copy_node(node, operands)
        if node.op is while_:
            copy = _with_spread_inside(copy, computes)
        copy = copy_node(
            copy, copy.operands, [sink_broadcasts(region, computes) for region in copy.regions]
        )
        nodes.append(copy)
        return copy.results

    return with_nodes(graph, put)


def _is_given_spread(node: Node) -> bool:
    """Whether something is broadcast to be given to a loop."""
    makers = (value.node for value in node.operands) if node.op is while_ else ()
    return any(maker is not None and maker.op is shaping.broadcast_to for maker in makers)


def _with_spread_inside(loop: Node, computes: Computes) -> Node:
    w = WhileParts.of(loop)
    params = list(zip(w.before_invariants, w.after_invariants, strict=True))
    makers: dict[Value, Node] = {}
    operands = [*loop.operands]
    for k, (value, (before, after)) in enumerate(zip(w.invariants, params, strict=True)):
        maker = value.node
        if maker is None or maker.op is not shaping.broadcast_to or len(maker.operands) > 1:
            continue
        if all(_only_nests_read(r, p, computes) for r, p in ((w.before, before), (w.after, after))):
            operands[len(w.carry) + k] = maker.operands[0]
            makers[before] = makers[after] = maker
    if not makers:
        return loop
    regions = [_spreading(region, makers) for region in loop.regions]
    types = [result.type for result in loop.results]
    made = Node(loop.op, operands, loop.attrs, regions, types, loop.source)
    for old, new in zip(loop.results, made.results, strict=True):
        new.name = old.name
    return made


def _spreading(region: Graph, makers: Mapping[Value, Node]) -> Graph:
    """The region with smaller params, which are made as large as they were."""
    params, nodes = [], []
    mapping: dict[Value, Value] = {}
    for param in region.params:
        new = param
        if param in makers:
            maker = makers[param]
            new = Value(maker.operands[0].type, name=param.name)
            spread = copy_node(maker, [new])
            nodes.append(spread)
            mapping[param] = spread.results[0]
        params.append(new)
    nodes += copy_nodes(region.nodes, mapping)
    results = tuple(mapping.get(value, value) for value in region.results)
    return Graph(region.name, tuple(params), tuple(nodes), results)


def _only_nests_read(region: Graph, param: Value, computes: Computes) -> bool:
    """Whether all that a region does with a param is to compute elements of it."""
    if param in region.results:
        return False
    for node in region.nodes:
        if param not in node.operands or computes(node):
            continue
        if node.op is not while_:
            return False
        w = WhileParts.of(node)
        if param in w.carry:
            return False
        inner = zip(w.invariants, w.before_invariants, w.after_invariants, strict=True)
        for value, before, after in inner:
            pairs = ((w.before, before), (w.after, after))
            if value is param and not all(_only_nests_read(*pair, computes) for pair in pairs):
                return False
    return True
