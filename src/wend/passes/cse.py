"""Common subexpression elimination: equal operations on equal operands run once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, rename_attr, rename_dims, rewrite_nodes, with_operands
from wend.ir.types import Dim, Symbol, symbols
from wend.ops import lists


def cse(graph: Graph, merges: Callable[[Node], bool] = lambda node: True) -> Graph:
    """Merge equal nodes, region by region, of those that `merges` holds for."""
    seen: dict[Hashable, Node] = {}
    dims: dict[Symbol, Dim] = {}  # symbols that merging proves equal

    def merge(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        key = _key(node, operands, dims) if merges(node) else None
        if key is not None and key in seen:
            equal: dict[Symbol, Dim] = {}
            rename_dims(equal, node.results, seen[key].results)
            dims.update((old, dim) for old, dim in equal.items() if _last(dim, dims) != old)
            return seen[key].results
        copy = with_operands(node, operands, [cse(region, merges) for region in node.regions], dims)
        nodes.append(copy)
        if key is not None:
            seen[key] = copy
        return copy.results

    return _renamed(rewrite_nodes(graph, merge), dims)


def _renamed(graph: Graph, dims: Mapping[Symbol, Dim]) -> Graph:
    """Return a graph with symbols renamed before they were known to be equal, too."""
    values = [value for node in graph.nodes for value in node.results]
    if not dims or dims.keys().isdisjoint(x for value in values for x in symbols(value.type)):
        return graph
    fixed = {symbol for param in graph.params for symbol in symbols(param.type)}
    last = {old: _last(old, dims) for old in dims if old not in fixed}

    def rename(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        nodes.append(copy_node(node, operands, dims=last))
        return nodes[-1].results

    return rewrite_nodes(graph, rename)


def _last(dim: Dim, dims: Mapping[Symbol, Dim]) -> Dim:
    while isinstance(dim, Symbol) and dim in dims:
        dim = dims[dim]
    return dim


def _key(node: Node, operands: list[Value], dims: dict[Symbol, Dim]) -> Hashable | None:
    """Return a key that equal nodes share; None for nodes that are never merged.

    Every `list_new` stays: lists that share an empty list would copy each other when they grow. Of
    checks that fail alike the first raises the error, whatever the others would tell.
    """
    if node.regions or node.op.effect is not Effect.NONE or node.op is lists.list_new:
        return None
    return (node.op, tuple(operands), attrs_key(node, dims, node.op.error_attrs))


def attrs_key(
    node: Node, dims: Mapping[Symbol, Dim] | None = None, ignored: Sequence[str] = ()
) -> Hashable:
    """Return a key that is equal for equal attrs, with dimension symbols renamed."""
    attrs = sorted((name, value) for name, value in node.attrs.items() if name not in ignored)
    return tuple((name, _hashable(rename_attr(value, dims or {}))) for name, value in attrs)


def _hashable(attr: Any) -> Hashable:
    if isinstance(attr, np.ndarray):
        return (attr.dtype, attr.shape, attr.tobytes())
    if isinstance(attr, float):
        return (float, attr.hex())  # 0.0 and −0.0 are equal, but not the same
    return (type(attr), attr)
