"""Subgraph extraction: the part of a graph between some values, with the effects asked for."""

from __future__ import annotations

from collections.abc import Sequence

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice
from wend.ir.types import TOKEN


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A part of a graph.

    Attributes:
        graph: (feeds, the world token if it has effects, captures) → (fetches, the world token).
        has_world: whether it has effects.
        captures: for each capture of the new graph, its position among those of the old one.
    """

    graph: Graph
    has_world: bool
    captures: tuple[int, ...]


class _Available:
    """The values that need no computation; records the params that are missing."""

    def __init__(self, graph: Graph, feeds: Sequence[Value]) -> None:
        self.values = {*feeds, *graph.captures}
        self.missing: dict[Value, None] = {}

    def __contains__(self, value: object) -> bool:
        assert isinstance(value, Value)
        if value in self.values or value.type == TOKEN:
            return True
        if value.node is None:
            self.missing[value] = None
        return value.node is None


def missing_params(graph: Graph, feeds: Sequence[Value], fetches: Sequence[Value]) -> list[Value]:
    """Return the params, other than the feeds, that some values depend on."""
    available = _Available(graph, feeds)
    backward_slice(fetches, available)
    return list(available.missing)


def extract_subgraph(
    graph: Graph, feeds: Sequence[Value], fetches: Sequence[Value], effects: Sequence[Node] = ()
) -> Subgraph:
    """Return the part of a graph that computes some of its values from others.

    Effects are dropped except those asked for and those of nodes in between; their order stays.

    Args:
        graph: the graph that the values belong to.
        feeds: values supplied by the caller.
        fetches: values to compute; they depend on feeds and captures only.
        effects: nodes to run for their effect.
    """
    roots = [*fetches, *(operand for node in effects for operand in node.operands)]
    live = {*backward_slice(roots, _Available(graph, feeds)), *effects}
    mapping = {value: Value(value.type, name=value.name) for value in (*feeds, *graph.captures)}
    world = Value(TOKEN, name="world")
    mapping.update({param: world for param in graph.params if param.type == TOKEN})
    inputs = dict(mapping)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node in live:
            nodes += copy_nodes([node], mapping)
            mapping.update(inputs)  # a result of a live node may itself be fed
        else:
            mapping.update(_bypass_tokens(node, mapping))
    results = [mapping[value] for value in fetches]
    final_tokens = [mapping[value] for value in graph.results if value.type == TOKEN]
    has_world = any(value is not world for value in final_tokens)
    used = {*results, *(operand for node in nodes for operand in node.operands)}
    positions = [
        k
        for k, capture in enumerate(graph.captures)
        if capture not in feeds and mapping[capture] in used
    ]
    captures = tuple(mapping[graph.captures[k]] for k in positions)
    params = (*(mapping[value] for value in feeds), *([world] if has_world else []), *captures)
    results += final_tokens if has_world else []
    new = Graph(f"{graph.name}_pruned", params, tuple(nodes), tuple(results), captures)
    return Subgraph(new, has_world, tuple(positions))


def _bypass_tokens(node: Node, mapping: dict[Value, Value]) -> dict[Value, Value]:
    """Map the tokens that a dropped node gives to those it takes."""
    token_operands = [operand for operand in node.operands if operand.type == TOKEN]
    token_results = [result for result in node.results if result.type == TOKEN]
    return {new: mapping[old] for new, old in zip(token_results, token_operands, strict=True)}


def has_effect(node: Node) -> bool:
    """Return whether a node does more than compute its results."""
    return node.op.effect is not Effect.NONE or any(r.type == TOKEN for r in node.results)
