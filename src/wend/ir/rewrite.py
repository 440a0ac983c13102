"""Functional graph rewriting: graphs are copied with changes, never edited in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, TypeAlias

from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import TYPE_CLASSES
from wend.ir.traverse import backward_slice
from wend.ir.types import Dim, Symbol, accepts, known_dims, substitute, symbols


def copy_node(
    node: Node,
    operands: Sequence[Value],
    regions: Sequence[Graph] | None = None,
    dims: Mapping[Symbol, Dim] | None = None,
) -> Node:
    """Return a copy of a node on other operands; `dims` renames dimension symbols."""
    regions = node.regions if regions is None else regions
    types = [result.type for result in node.results]
    attrs: Mapping[str, Any] = node.attrs
    if dims:
        attrs = {key: rename_attr(value, dims) for key, value in attrs.items()}
        regions = [copy_graph(region, dims) for region in regions]
        types = [substitute(type, dims) for type in types]
    copy = Node(node.op, operands, attrs, regions, types, node.source)
    copy.remark = node.remark
    keep_names(node.results, copy.results)
    return copy


def with_operands(
    node: Node,
    operands: Sequence[Value],
    regions: Sequence[Graph] | None = None,
    dims: Mapping[Symbol, Dim] | None = None,
) -> Node:
    """Return the node itself if its operands and regions are these, else a copy with them.

    For a one-to-one replacement. Sharing unchanged nodes between successive graphs halves the time
    of passes.
    """
    is_same = not dims and all(map(is_, operands, node.operands))
    if is_same and (regions is None or all(map(is_, regions, node.regions))):
        return node
    return copy_node(node, operands, regions, dims)


def keep_names(old: Iterable[Value], new: Iterable[Value]) -> None:
    """Copy the names of values to those that replace them."""
    for old_value, new_value in zip(old, new, strict=True):
        new_value.name = old_value.name


def rename_attr(attr: Any, dims: Mapping[Symbol, Dim]) -> Any:
    """Return an attr with its dimension symbols renamed."""
    if isinstance(attr, Symbol):
        return dims.get(attr, attr)
    if isinstance(attr, tuple):
        return tuple(rename_attr(item, dims) for item in attr)
    if isinstance(attr, TYPE_CLASSES):
        return substitute(attr, dims)
    return attr


def rename_dims(dims: dict[Symbol, Dim], old: Iterable[Value], new: Iterable[Value]) -> None:
    """Record the new dimensions for the symbols of values, from the values that replace them.

    More may be known of these: a symbol may become a number.
    """
    for old_value, new_value in zip(old, new, strict=True):
        # There are none of unknown rank.
        pairs = zip(known_dims(old_value.type), known_dims(new_value.type), strict=False)
        dims.update((x, dim) for x, dim in pairs if isinstance(x, Symbol) and x != dim)


# (new nodes so far, node, new operands) -> results; appends the nodes that replace `node`.
NodeRewriter: TypeAlias = Callable[[list[Node], Node, list[Value]], Sequence[Value]]


def rewrite_nodes(graph: Graph, rewrite: NodeRewriter) -> Graph:
    """Return the graph with each node rewritten.

    `rewrite` appends the replacement of a node to the new nodes, and returns its results.
    """
    mapping: dict[Value, Value] = {}  # of the values that are replaced: few, in most passes
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = [*node.operands]
        if mapping:
            operands = [mapping.get(value, value) for value in operands]
        replacements = rewrite(nodes, node, operands)
        if replacements is not node.results:
            mapping.update(zip(node.results, replacements, strict=True))
    results = tuple(mapping.get(value, value) for value in graph.results)
    return rebuild_graph(graph, graph.params, nodes, results)


def rebuild_graph(
    graph: Graph, params: Sequence[Value], nodes: Sequence[Node], results: Sequence[Value]
) -> Graph:
    """Return a graph with other nodes, or the graph itself if nothing differs."""
    new = tuple(params), tuple(nodes), tuple(results)
    old = graph.params, graph.nodes, graph.results
    if new == old:  # values and nodes are equal if they are the same
        return graph
    captures = tuple(capture for capture in graph.captures if capture in new[0])
    return Graph(graph.name, *new, captures)


def copy_nodes(
    nodes: Iterable[Node],
    mapping: dict[Value, Value],
    replaced: Mapping[Node, Sequence[Node]] | None = None,
) -> list[Node]:
    """Copy nodes with their operands mapped; the results are added to `mapping`.

    `replaced` gives nodes that replace some; the first results of the last of them replace the
    results of the old node, and all of their results are mapped as well.
    """
    copies = []
    dims: dict[Symbol, Dim] = {}  # symbols of replaced nodes -> those of their replacements
    for node in nodes:
        replacements = replaced.get(node, (node,)) if replaced else (node,)
        for replacement in replacements:
            copy = copy_node(
                replacement, [mapping.get(v, v) for v in replacement.operands], dims=dims
            )
            mapping.update(zip(replacement.results, copy.results, strict=True))
            copies.append(copy)
        if replacements[-1] is not node:
            results = copies[-1].results[: len(node.results)]
            mapping.update(zip(node.results, results, strict=True))
            rename_dims(dims, node.results, results)
    return copies


def lift(
    values: Iterable[Value], nodes: list[Node], sources: Mapping[Value, Value]
) -> dict[Value, Value]:
    """Copy the computation of values into another graph.

    Args:
        values: the values to compute.
        nodes: the nodes of the graph under construction; the copies are appended.
        sources: maps values that are not to be recomputed to values of that graph.

    Returns:
        The new value for each value that was copied or given.

    Raises:
        ValueError: a value depends on a param that is no source.

    Example:
        >>> import wend
        >>> from wend.ir import lift
        >>> from wend.ops.build import Build
        >>> graph = wend.function(lambda x: x * x + 1.0).get_concrete_function(2.0).graph
        >>> b = Build("square")
        >>> x = b.param(graph.params[0].type)
        >>> square = graph.nodes[0].results[0]
        >>> b.finish([lift([square], b.nodes, {graph.params[0]: x})[square]])
        <graph square: 1 nodes>
    """
    mapping = dict(sources)
    nodes += copy_nodes(backward_slice(values, mapping), mapping)
    return mapping


def inline(graph: Graph, arguments: Sequence[Value], nodes: list[Node]) -> tuple[Value, ...]:
    """Append a copy of a graph's nodes to `nodes`, and return its new results.

    Symbols of the params bind to the dimensions of the arguments; other symbols of the graph are
    renamed, so that a graph may be inlined twice.

    Raises:
        ValueError: an argument is not of its param's type.
    """
    dims: dict[Symbol, Dim] = {}
    for param, argument in zip(graph.params, arguments, strict=True):
        if not accepts(param.type, argument.type, dims):
            raise ValueError(f"{graph.name} takes {param.type}, not {argument.type}")
    mapping = dict(zip(graph.params, arguments, strict=True))
    for node in graph.nodes:
        for result in node.results:
            for symbol in symbols(result.type):
                if symbol not in dims:
                    dims[symbol] = new_symbol()
        copy = copy_node(node, [mapping[operand] for operand in node.operands], dims=dims)
        mapping.update(zip(node.results, copy.results, strict=True))
        nodes.append(copy)
    return tuple(mapping[result] for result in graph.results)


def copy_graph(graph: Graph, dims: Mapping[Symbol, Dim] | None = None) -> Graph:
    """Return a copy of a graph with new values; `dims` renames dimension symbols.

    Regions in which nothing is renamed are shared: graphs are immutable.
    """
    mapping: dict[Value, Value] = {}
    for param in graph.params:
        mapping[param] = Value(substitute(param.type, dims or {}), name=param.name)
    nodes = []
    for node in graph.nodes:
        copy = copy_node(node, [mapping[operand] for operand in node.operands], dims=dims)
        mapping.update(zip(node.results, copy.results, strict=True))
        nodes.append(copy)
    return Graph(
        graph.name,
        tuple(mapping[param] for param in graph.params),
        tuple(nodes),
        tuple(mapping[result] for result in graph.results),
        tuple(mapping[capture] for capture in graph.captures),
    )
