"""A callee's frame states, also of what the caller has written to its own arguments (D36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.types import TOKEN, Type
from wend.ops.control import call, if_, while_
from wend.ops.frame_states import ELEMENT, frame_state


def attach_writes(
    graph: Graph, renamed: Mapping[int, int], written: Sequence[int], types: Sequence[Type]
) -> Graph:
    """Return a callee with a further param for each argument that its caller has written to.

    Args:
        graph: the callee.
        renamed: the caller's argument that an argument of the callee is, where it is one.
        written: the numbers of the arguments that the caller has written to.
        types: their types.
    """
    extra = [Value(type) for type in types]
    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        (copy,) = copy_nodes([node], mapping)
        if node.op is frame_state:
            copy = _with_writes(copy, renamed, dict(zip(written, extra, strict=True)))
        elif node.op in _TRANSPARENT and _has_checks(node):
            regions = [attach_writes(r, renamed, written, types) for r in node.regions]
            result_types = [result.type for result in node.results]
            copy = Node(
                node.op, [*copy.operands, *extra], node.attrs, regions, result_types, node.source
            )
        mapping.update(zip(node.results, copy.results, strict=True))
        nodes.append(copy)
    results = tuple(mapping.get(value, value) for value in graph.results)
    return Graph(graph.name, (*graph.params, *extra), tuple(nodes), results)


# Operations whose regions take further operands as further params
_TRANSPARENT = (while_, if_, call)


def _has_checks(node: Node) -> bool:
    return any(Effect.CHECK in region.effects() for region in node.regions)


def _with_writes(node: Node, renamed: Mapping[int, int], outer: Mapping[int, Value]) -> Node:
    """Return a frame state with the caller's writes; those of the callee to an array are later."""
    token, *values = node.operands
    contents = dict(outer)
    for k, value in zip(node.attrs["written"], values, strict=True):
        if k in renamed or k == ELEMENT:
            contents[renamed.get(k, k)] = value
    attrs = {"written": tuple(contents)}
    return Node(frame_state, [token, *contents.values()], attrs, (), [TOKEN], node.source)
