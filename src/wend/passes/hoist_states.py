"""Frame states leave loops that change nothing which they tell (D36).

A loop that reads elements of arrays has a state in each trip, for the reads may fail. Where all its
states tell the same, and nothing of it changes in the loop, one state before the loop tells it. A
loop that is left without a token has no order among checks, so other passes may move it.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, rewrite_nodes, with_operands
from wend.ir.types import TOKEN
from wend.ops.control import WhileParts, while_
from wend.ops.frame_states import frame_state
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.dce import dce


def hoist_states(graph: Graph) -> Graph:
    """Move frame states before loops in which they do not differ."""
    if frame_state not in graph.ops:
        return graph
    hoisted = _hoisted(graph)
    return graph if hoisted is graph else dce(canonicalize_loops(hoisted))


def _hoisted(graph: Graph) -> Graph:
    """Return the graph with states moved out of its loops, inner loops first."""

    def hoist(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [_hoisted(region) for region in node.regions])
        state = _common_state(copy) if copy.op is while_ else None
        if state is not None:
            nodes.append(state)
            copy = _without_states(copy, state)
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, hoist)


def _common_state(loop: Node) -> Node | None:
    """Return the state of all trips of a loop, before it; None if they differ or there is none."""
    w = WhileParts.of(loop)
    states: list[tuple[Node, list[Value | None]]] = []
    for region, invariants in ((w.before, w.before_invariants), (w.after, w.after_invariants)):
        outer = dict(zip(invariants, w.invariants, strict=True))
        for node in region.nodes:
            if node.op is frame_state:
                states.append((node, [outer.get(x) for x in node.operands[1:]]))
            elif not states and _may_fail(node):
                return None  # what an earlier state tells of the first trip
    if len({(tuple(sorted(node.attrs.items())), *contents) for node, contents in states}) != 1:
        return None
    if sum(node.op is frame_state for region in loop.regions for node in region.walk()) > len(
        states
    ):
        return None
    node, contents = states[0]
    known = [x for x in contents if x is not None]
    if len(known) < len(contents):
        return None
    tokens = [x for x in w.carry if x.type == TOKEN]
    if len(tokens) != 1:
        return None
    return Node(frame_state, [*tokens, *known], node.attrs, (), [TOKEN], node.source)


def _may_fail(node: Node) -> bool:
    inner = (node, *(x for region in node.regions for x in region.walk()))
    return any(x.op.effect is not Effect.NONE or x.op.may_fail(x) for x in inner)


def _without_states(loop: Node, state: Node) -> Node:
    """Return the loop without its states, on the token of the one before it."""

    def drop(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is frame_state:
            return operands[:1]
        nodes.append(with_operands(node, operands))
        return nodes[-1].results

    regions = [rewrite_nodes(region, drop) for region in loop.regions]
    operands = [state.results[0] if x is state.operands[0] else x for x in loop.operands]
    return copy_node(loop, operands, regions)
