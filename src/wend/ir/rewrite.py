"""Copies graphs with changes; nothing is ever edited in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, TypeAlias

from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import TYPE_CLASSES
from wend.ir.traverse import backward_slice
from wend.ir.types import Dim, Symbol, accepts, substitute, symbols


def copy_node(
    node: Node,
    operands: Sequence[Value],
    regions: Sequence[Graph] | None = None,
    dims: Mapping[Symbol, Dim] | None = None,
) -> Node:
    """A node like this one on other operands; `dims` renames dimensions."""
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


def on_operands(
    node: Node,
    operands: Sequence[Value],
    regions: Sequence[Graph] | None = None,
    dims: Mapping[Symbol, Dim] | None = None,
) -> Node:
    """The node itself if these are its operands and regions, else a copy on them.

    For what takes the place of a node, once: graphs that follow each other share what does not
    change, which halves the time of passes.
    """
    is_same = not dims and all(map(is_, operands, node.operands))
    if is_same and (regions is None or all(map(is_, regions, node.regions))):
        return node
    return copy_node(node, operands, regions, dims)


def keep_names(old: Iterable[Value], new: Iterable[Value]) -> None:
    """Let values be called what those are called that they stand for."""
    for before, after in zip(old, new, strict=True):
        after.name = before.name


def rename_attr(attr: Any, dims: Mapping[Symbol, Dim]) -> Any:
    """An attr with its dimensions renamed."""
    if isinstance(attr, Symbol):
        return dims.get(attr, attr)
    if isinstance(attr, tuple):
        return tuple(rename_attr(item, dims) for item in attr)
    if isinstance(attr, TYPE_CLASSES):
        return substitute(attr, dims)
    return attr


def rename_dims(dims: dict[Symbol, Dim], old: Iterable[Value], new: Iterable[Value]) -> None:
    """Note what the dimensions of values are called in the values that stand for them."""
    for before, after in zip(old, new, strict=True):
        pairs = zip(symbols(before.type), symbols(after.type), strict=True)
        dims.update((mine, theirs) for mine, theirs in pairs if mine != theirs)


# Puts what stands for a node at the end of the nodes so far, and gives its results.
Put: TypeAlias = Callable[[list[Node], Node, list[Value]], Sequence[Value]]


def with_nodes(graph: Graph, put: Put) -> Graph:
    """The graph with something in place of each node.

    Args:
        graph: what is copied.
        put: is given the nodes so far, a node of the graph, and its operands as they are now.
    """
    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = [mapping.get(value, value) for value in node.operands]
        mapping.update(zip(node.results, put(nodes, node, operands), strict=True))
    results = tuple(mapping.get(value, value) for value in graph.results)
    return graph_of(graph, graph.params, nodes, results)


def graph_of(
    graph: Graph, params: Sequence[Value], nodes: Sequence[Node], results: Sequence[Value]
) -> Graph:
    """A graph with other nodes; itself, where they are those it has."""
    new = tuple(params), tuple(nodes), tuple(results)
    old = graph.params, graph.nodes, graph.results
    if all(len(a) == len(b) and all(map(is_, a, b)) for a, b in zip(new, old, strict=True)):
        return graph
    captures = tuple(capture for capture in graph.captures if capture in new[0])
    return Graph(graph.name, *new, captures)


def copy_nodes(
    nodes: Iterable[Node],
    mapping: dict[Value, Value],
    replaced: Mapping[Node, Sequence[Node]] | None = None,
) -> list[Node]:
    """Copy nodes with their operands mapped; `mapping` learns where each result went.

    `replaced` gives nodes to stand for some; the first results of the last of them stand for the
    results of the old one, and all of theirs are mapped as well.
    """
    copies = []
    dims: dict[Symbol, Dim] = {}  # what sizes that a replaced node named are called now
    for node in nodes:
        replacements = replaced.get(node, (node,)) if replaced else (node,)
        for stand_in in replacements:
            copy = copy_node(stand_in, [mapping.get(v, v) for v in stand_in.operands], dims=dims)
            mapping.update(zip(stand_in.results, copy.results, strict=True))
            copies.append(copy)
        if replacements[-1] is not node:
            results = copies[-1].results[: len(node.results)]
            mapping.update(zip(node.results, results, strict=True))
            rename_dims(dims, node.results, results)
    return copies


def lift(
    values: Iterable[Value], nodes: list[Node], sources: Mapping[Value, Value]
) -> dict[Value, Value]:
    """Copy what values are computed from to the nodes of another graph.

    Args:
        values: what is wanted there.
        nodes: those of the graph under construction; what is copied is appended.
        sources: values that are not to be computed there, with what stands for each.

    Returns:
        What stands there for each value that was copied or given.

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
    """Append a copy of a graph's nodes to `nodes`, and return what its results have become.

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
    """A copy of a graph with values of its own; `dims` renames dimensions.

    Regions in which nothing is renamed are shared: nobody changes a graph.
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
