"""The normal form of a graph that is lowered: calls inlined, nothing unused, one order of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wend.backends.dataflow.ordering import Order
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline, rebuild_graph, rename_dims, rewrite_nodes, with_operands
from wend.ir.traverse import backward_slice
from wend.ir.types import Dim, Symbol
from wend.ops.control import call
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.dce import dce
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.lower_parallel_maps import lower_parallel_maps
from wend.passes.pipeline import run_passes


def normalise(graph: Graph) -> Graph:
    """Return the graph that lowering a graph and `functionalize` give back.

    Calls are inlined, linear blocks and parallel maps are written as branches and loops, what no
    result depends on is dropped, and nodes stand in the order in which results need them.
    """
    return _in_order(prepare(graph))


def prepare(graph: Graph) -> Graph:
    """Return the graph without calls and such, its nodes in the order of the program."""
    return run_passes(graph, _PASSES)


def _inline_recomputed(graph: Graph) -> Graph:
    """Inline the calls that a backward pass repeats: nothing merges them with the first run."""

    def inline_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [_inline_recomputed(region) for region in node.regions]
        if node.op is call:
            results = inline(regions[0], operands, nodes)
            rename_dims(dims, node.results, results)
            return results
        nodes.append(with_operands(node, operands, regions, dims))
        return nodes[-1].results

    dims: dict[Symbol, Dim] = {}
    return rewrite_nodes(graph, inline_node)


def _in_order(graph: Graph) -> Graph:
    """Return the graph with its nodes in the order in which results need them, in regions too.

    Effects stay in order, and what may fail stays between them.
    """
    needed = backward_slice(graph.results, frozenset(graph.params))
    positions = {node: k for k, node in enumerate(needed)}
    order: Order[Node] = Order()
    waits: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node in positions:
            waits[node] = sorted(order.waits(node), key=positions.__getitem__)
            order.add(node, [node])

    def dependences(node: Node) -> Iterator[Node]:
        yield from (operand.node for operand in node.operands if operand.node is not None)
        yield from waits[node]

    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in _post_order(needed, dependences):
        operands = [mapping.get(operand, operand) for operand in node.operands]
        copy = with_operands(node, operands, [_in_order(region) for region in node.regions])
        mapping.update(zip(node.results, copy.results, strict=True))
        nodes.append(copy)
    results = [mapping.get(result, result) for result in graph.results]
    return rebuild_graph(graph, graph.params, nodes, results)


def _post_order(
    nodes: Sequence[Node], dependences: Callable[[Node], Iterator[Node]]
) -> Iterator[Node]:
    """Yield each node after what it depends on; iterative, so long chains are safe."""
    seen: set[Node] = set()
    for root in nodes:
        path = [] if root in seen else [(root, dependences(root))]
        seen.add(root)
        while path:
            node, pending = path[-1]
            needed = next((x for x in pending if x not in seen), None)
            if needed is None:
                path.pop()
                yield node
            else:
                seen.add(needed)
                path.append((needed, dependences(needed)))


_PASSES = (
    lower_linear_blocks,
    inline_calls,
    _inline_recomputed,
    lower_parallel_maps,
    canonicalize_loops,
    dce,
)
