"""How lists are used: only read, made anew, pushed once a trip of a loop."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value
from wend.ops import lists
from wend.ops.control import WhileParts

# Operations that read a list and leave every version of it as it is
READS = {
    *(lists.list_get, lists.list_len, lists.list_zeros, lists.list_add, lists.list_stack),
}


def is_new_list(value: Value) -> bool:
    """Whether a value is an empty list, to be made at each use."""
    return value.node is not None and value.node.op is lists.list_new


def tape_push(w: WhileParts, carry: int) -> tuple[Graph | None, Node | None]:
    """The region and the node where a carry that starts empty is pushed once a trip, if it is."""
    first, out = _through(w.before, w.before_carry[carry])
    if out is None or out < 1:
        return None, None
    second, end = _through(w.after, w.after_forwarded[out - 1])
    if end != carry or (first is None) == (second is None):
        return None, None
    return (w.before, first) if first is not None else (w.after, second)


def _through(region: Graph, value: Value) -> tuple[Node | None, int | None]:
    """Follow a list through a region: the node that pushes to it, and which result it becomes."""
    push = None
    while True:
        nodes = [n for n in region.nodes if value in n.operands and n.op not in READS]
        places = [k for k, result in enumerate(region.results) if result is value]
        if len(nodes) + len(places) != 1:
            return push, None
        if places:
            return push, places[0]
        (node,) = nodes
        if push is not None or node.op is not lists.list_push or node.operands[1] is value:
            return push, None
        push, value = node, node.results[0]
