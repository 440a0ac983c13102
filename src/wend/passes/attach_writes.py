"""A callee's frame states, also of what the caller has written to its own arguments (D36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.types import TOKEN, Type
from wend.ops.control import call, if_, while_
from wend.ops.frame_states import base_of, contents_in, frame_state, values_of
from wend.runtime.partial_writes import ELEMENT, element_keys, is_element, outside

# How the containers of the caller have changed at a state of the callee's: for each number the
# index of a further param, or the number that the callee has for it
ContainerContents = Sequence[tuple[int, int]]


def attach_writes(
    graph: Graph,
    renamed: Mapping[int, int],
    written: Sequence[int | None],
    types: Sequence[Type],
    containers: Mapping[Node, ContainerContents] = MappingProxyType({}),
) -> Graph:
    """Return a callee with further params for what its caller has written to its own arguments.

    Args:
        graph: the callee.
        renamed: the caller's argument that an argument of the callee is, where it is one.
        written: for each further param its number in frame states; None if only `containers`
            refers to it.
        types: their types.
        containers: how the caller's lists and dicts have changed at each frame state of the
            callee's. If there are some, no frame state continues another.
    """
    extra = [Value(type) for type in types]
    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        (copy,) = copy_nodes([node], mapping)
        if node.op is frame_state:
            own = {k: mapping.get(x, x) for k, x in values_of(node).items()} if containers else None
            copy = _with_writes(copy, renamed, written, extra, own, containers.get(node, ()))
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
    own: Mapping[int, Value] | None,
    changes: ContainerContents,
) -> Node:
    """Return a frame state with the caller's writes; those of the callee to an array are later.

    Args:
        node: the frame state.
        renamed: the caller's argument that an argument of the callee is, where it is one.
        written: the numbers of the further params.
        extra: the further params.
        own: what the frame state and those that it continues hold; None: it continues them.
        changes: how the caller's lists and dicts have changed.
    """
    base = base_of(node) if own is None else None
    contents: dict[int, Value] = {}
    if base is None:
        depth = len(element_keys(own or node.attrs["written"]))
        pairs = zip(written, extra, strict=True)
        contents = {outside(k, depth): x for k, x in pairs if k is not None}
    if own is None:
        own = dict(zip(node.attrs["written"], contents_in(node), strict=True))
    else:
        contents = {k: x for k, x in contents.items() if k >= ELEMENT}
    contents |= {renamed.get(k, k): x for k, x in own.items() if k in renamed or is_element(k)}
    contents |= {k: own[x] if x < ELEMENT else extra[x] for k, x in changes}
    operands = [node.operands[0], *([] if base is None else [base]), *contents.values()]
    return Node(frame_state, operands, {"written": tuple(contents)}, (), [TOKEN], node.source)
