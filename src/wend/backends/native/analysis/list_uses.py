"""Queries about uses of lists: read-only uses, fresh lists, and tapes pushed once per iteration."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value
from wend.ops import lists
from wend.ops.control import WhileParts

# Operations that read a list without changing any version of it
READS = {lists.list_get, lists.list_len, lists.list_zeros, lists.list_add, lists.list_stack}


def is_new_list(value: Value) -> bool:
    """Return whether a value is an empty list; each of its uses makes a new one."""
    return value.node is not None and value.node.op is lists.list_new


def tape_push(w: WhileParts, carry: int) -> tuple[Graph | None, Node | None]:
    """Return the region and node that push a carry once per iteration.

    The carry must start empty. Returns `(None, None)` if it is not a tape.
    """
    before_push, forwarded_index = _follow(w.before, w.before_carry[carry])
    if forwarded_index is None or forwarded_index < 1:
        return None, None
    after_push, next_index = _follow(w.after, w.after_forwarded[forwarded_index - 1])
    if next_index != carry or (before_push is None) == (after_push is None):
        return None, None
    return (w.before, before_push) if before_push is not None else (w.after, after_push)


def _follow(region: Graph, value: Value) -> tuple[Node | None, int | None]:
    """Follow a list through a region; return its push and the index of the result it becomes."""
    push = None
    while True:
        writers = [n for n in region.nodes if value in n.operands and n.op not in READS]
        result_indices = [k for k, result in enumerate(region.results) if result is value]
        if len(writers) + len(result_indices) != 1:
            return push, None
        if result_indices:
            return push, result_indices[0]
        (node,) = writers
        if push is not None or node.op is not lists.list_push or node.operands[1] is value:
            return push, None
        push, value = node, node.results[0]
