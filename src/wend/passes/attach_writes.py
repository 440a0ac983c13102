"""A callee's checks, also carrying what the caller has written to its own arguments (D36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.types import Type
from wend.ops.control import call, if_, while_
from wend.ops.effects import raise_if


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
        if node.op is raise_if:
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
    """Return a check with the caller's writes; those of the callee to the same array are later."""
    written: Sequence[int] = node.attrs.get("written", ())
    count = len(node.operands) - len(written)
    contents = dict(outer)
    for k, value in zip(written, node.operands[count:], strict=True):
        if k in renamed:
            contents[renamed[k]] = value
    attrs = {**node.attrs, "written": tuple(contents)}
    operands = [*node.operands[:count], *contents.values()]
    return Node(node.op, operands, attrs, (), [r.type for r in node.results], node.source)
