"""Cuts what lies between some values out of a graph, with no more effects than were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice
from wend.ir.types import TOKEN


@dataclass(frozen=True, slots=True)
class Pruned:
    """A part of a graph.

    Attributes:
        graph: feeds, the world if it has effects, captures; to fetches, and the world.
        has_world: whether it has effects.
        captures: which captures of the old graph those of the new one are, by position.
    """

    graph: Graph
    has_world: bool
    captures: tuple[int, ...]


class _AtHand:
    """What need not be computed; params that are not to be had are noted."""

    def __init__(self, graph: Graph, feeds: Sequence[Value]) -> None:
        self.known = {*feeds, *graph.captures}
        self.missing: dict[Value, None] = {}

    def __contains__(self, value: object) -> bool:
        assert isinstance(value, Value)
        if value in self.known or value.type == TOKEN:
            return True
        if value.node is None:
            self.missing[value] = None
        return value.node is None


def missing_params(graph: Graph, feeds: Sequence[Value], wanted: Sequence[Value]) -> list[Value]:
    """The params that are no feeds, and without which a value cannot be computed."""
    at_hand = _AtHand(graph, feeds)
    backward_slice(wanted, at_hand)
    return list(at_hand.missing)


def prune(
    graph: Graph, feeds: Sequence[Value], fetches: Sequence[Value], effects: Sequence[Node] = ()
) -> Pruned:
    """The part of a graph that computes some of its values from others.

    Of its effects only those are left that were asked for, and those of nodes on the way: their
    order stays.

    Args:
        graph: where the values belong.
        feeds: values that will be given.
        fetches: values that are wanted. They depend on feeds and captures only.
        effects: nodes that are to run, whatever they give.
    """
    wanted = [*fetches, *(operand for node in effects for operand in node.operands)]
    kept = {*backward_slice(wanted, _AtHand(graph, feeds)), *effects}
    mapping = {value: Value(value.type, name=value.name) for value in (*feeds, *graph.captures)}
    world = Value(TOKEN, name="world")
    mapping.update({param: world for param in graph.params if param.type == TOKEN})
    given = dict(mapping)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node in kept:
            nodes += copy_nodes([node], mapping)
            mapping.update(given)  # of a node on the way a result may be fed
        else:
            mapping.update(_passed_by(node, mapping))
    results = [mapping[value] for value in fetches]
    last = [mapping[value] for value in graph.results if value.type == TOKEN]
    has_world = any(value is not world for value in last)
    used = {*results, *(operand for node in nodes for operand in node.operands)}
    places = [
        k
        for k, capture in enumerate(graph.captures)
        if capture not in feeds and mapping[capture] in used
    ]
    captures = tuple(mapping[graph.captures[k]] for k in places)
    params = (*(mapping[value] for value in feeds), *([world] if has_world else []), *captures)
    results += last if has_world else []
    new = Graph(f"{graph.name}_pruned", params, tuple(nodes), tuple(results), captures)
    return Pruned(new, has_world, tuple(places))


def _passed_by(node: Node, mapping: dict[Value, Value]) -> dict[Value, Value]:
    """What stands for the tokens of a node that is left out: those that it took."""
    taken = [operand for operand in node.operands if operand.type == TOKEN]
    gave = [result for result in node.results if result.type == TOKEN]
    return {new: mapping[old] for new, old in zip(gave, taken, strict=True)}


def has_effect(node: Node) -> bool:
    """Whether a node does something besides what it gives."""
    return node.op.effect is not Effect.NONE or any(r.type == TOKEN for r in node.results)
