"""A callee's frame states, also of what the caller has written to its own arguments (D36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.types import TOKEN, Type
from wend.ops.control import call, if_, while_
from wend.ops.frame_states import ELEMENT, frame_state

# What the containers of the caller hold at a state of the callee's: for each of their numbers the
# index of a further param, or the number that the callee has for it
ContainerContents = Sequence[tuple[int, int]]


def attach_writes(
    graph: Graph,
    renamed: Mapping[int, int],
    written: Sequence[int | None],
    types: Sequence[Type],
    containers: Mapping[int, ContainerContents] = MappingProxyType({}),
) -> Graph:
    """Return a callee with further params for what its caller has written to its own arguments.

    Args:
        graph: the callee.
        renamed: the caller's argument that an argument of the callee is, where it is one.
        written: for each further param its number in frame states; None if only `containers`
            refers to it.
        types: their types.
        containers: what the caller's lists and dicts hold, by the first number under which the
            callee tells what its own hold.
    """
    extra = [Value(type) for type in types]
    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        (copy,) = copy_nodes([node], mapping)
        if node.op is frame_state:
            copy = _with_writes(copy, renamed, written, extra, containers)
        elif node.op in _TRANSPARENT and _has_checks(node):
            regions = [attach_writes(r, renamed, written, types, containers) for r in node.regions]
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


def _with_writes(
    node: Node,
    renamed: Mapping[int, int],
    written: Sequence[int | None],
    extra: Sequence[Value],
    containers: Mapping[int, ContainerContents],
) -> Node:
    """Return a frame state with the caller's writes; those of the callee to an array are later."""
    token, *values = node.operands
    contents = {k: x for k, x in zip(written, extra, strict=True) if k is not None}
    own = dict(zip(node.attrs["written"], values, strict=True))
    contents |= {renamed.get(k, k): x for k, x in own.items() if k in renamed or k == ELEMENT}
    first = max((k for k in own if k < ELEMENT), default=None)
    if first is not None and first in containers:
        contents = {k: x for k, x in contents.items() if k >= ELEMENT}
        for k, source in containers[first]:
            contents[k] = own[source] if source < ELEMENT else extra[source]
    attrs = {"written": tuple(contents)}
    return Node(frame_state, [token, *contents.values()], attrs, (), [TOKEN], node.source)
