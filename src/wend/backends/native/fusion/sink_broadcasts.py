"""Sinks broadcasts into loops, where nests repeat scalars and rows at no cost.

`hoist` has moved these arrays out of the loops; in memory they would cost a read per element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, copy_nodes, keep_names, rewrite_nodes
from wend.ops import creating, shaping
from wend.ops.control import WhileParts, while_

Computes: TypeAlias = Callable[[Node], bool]


def sink_broadcasts(graph: Graph, computes: Computes) -> Graph:
    """Move broadcasts into the loops whose nests are their only readers.

    Args:
        graph: the graph to lower.
        computes: whether a node computes arrays element by element.
    """
    if not graph.ops.issuperset((while_, shaping.broadcast_to)):
        return graph
    if not any(map(_has_broadcast_operand, graph.walk())):
        return graph

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = copy_node(node, operands)
        if node.op is while_:
            copy = _sink_into(copy, computes)
        copy = copy_node(
            copy, copy.operands, [sink_broadcasts(region, computes) for region in copy.regions]
        )
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, rewrite)


def _has_broadcast_operand(node: Node) -> bool:
    """Return whether a loop has a broadcast array among its operands."""
    producers = (value.node for value in node.operands) if node.op is while_ else ()
    return any(
        producer is not None and producer.op is shaping.broadcast_to for producer in producers
    )


def _sink_into(loop: Node, computes: Computes) -> Node:
    w = WhileParts.of(loop)
    params = list(zip(w.before_invariants, w.after_invariants, strict=True))
    broadcasts: dict[Value, Node] = {}
    operands = [*loop.operands]
    for k, (value, (before, after)) in enumerate(zip(w.invariants, params, strict=True)):
        producer = value.node
        if producer is None or producer.op is not shaping.broadcast_to:
            continue
        uses = ((w.before, before), (w.after, after))
        if len(producer.operands) == 1 and all(
            _is_read_by_nests_only(region, param, computes) for region, param in uses
        ):
            operands[len(w.carry) + k] = producer.operands[0]
            broadcasts[before] = broadcasts[after] = producer
    if not broadcasts:
        return loop
    regions = [_with_broadcasts(region, broadcasts) for region in loop.regions]
    types = [result.type for result in loop.results]
    new_loop = Node(loop.op, operands, loop.attrs, regions, types, loop.source)
    keep_names(loop.results, new_loop.results)
    return new_loop


def _with_broadcasts(region: Graph, broadcasts: Mapping[Value, Node]) -> Graph:
    """Return a region whose smaller params are broadcast inside to their former sizes.

    Constants are not params: nests are to see them, as exponents for example.
    """
    params, nodes = [], []
    mapping: dict[Value, Value] = {}
    for param in region.params:
        new_param = param
        if param in broadcasts:
            broadcast = broadcasts[param]
            new_param = Value(broadcast.operands[0].type, name=param.name)
            number, source = new_param, broadcast.operands[0].node
            if source is not None and source.op is creating.constant:
                constant = copy_node(source, [])
                nodes.append(constant)
                (number,) = constant.results
            copy = copy_node(broadcast, [number])
            nodes.append(copy)
            mapping[param] = copy.results[0]
        params.append(new_param)
    nodes += copy_nodes(region.nodes, mapping)
    results = tuple(mapping.get(value, value) for value in region.results)
    return Graph(region.name, tuple(params), tuple(nodes), results)


def _is_read_by_nests_only(region: Graph, param: Value, computes: Computes) -> bool:
    """Return whether a region only reads a param element by element."""
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
            if value is param and not all(
                _is_read_by_nests_only(*pair, computes) for pair in pairs
            ):
                return False
    return True
