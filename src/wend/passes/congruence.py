"""Whether two values are computed alike from equal values."""

from __future__ import annotations

from wend.ir.graph import Node, Value
from wend.ir.op import Effect
from wend.ops import lists
from wend.passes.cse import attrs_key


def are_congruent(x: Value, y: Value, pairs: dict[Value, Value]) -> bool:
    """Return whether two values are equal if those of `pairs` are."""
    waiting = [(x, y)]
    while waiting:
        x, y = waiting.pop()
        if x is y or pairs.get(x) is y:
            continue
        a, b = x.node, y.node
        if a is None or b is None or not _are_alike(a, b):
            return False
        if a.results.index(x) != b.results.index(y):
            return False
        pairs[x] = y
        waiting += zip(a.operands, b.operands, strict=True)
    return True


def _are_alike(a: Node, b: Node) -> bool:
    """Return whether two nodes compute the same of equal operands."""
    is_plain = not a.regions and a.op.effect is Effect.NONE and a.op is not lists.list_new
    same = a.op is b.op and len(a.operands) == len(b.operands)
    return is_plain and same and attrs_key(a) == attrs_key(b)
