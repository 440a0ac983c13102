"""The checks of numbers that no result of a graph needs."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Node, Value


def unused_checks(
    checks: Sequence[Node], nodes: Sequence[Node], results: Sequence[Value]
) -> list[Node]:
    """Return the checks that neither a result, nor an effect, nor another check needs."""
    candidates = {*checks}
    if not candidates:
        return []
    needed = {*results}
    unused: list[Node] = []
    for node in reversed(nodes):
        is_needed = not needed.isdisjoint(node.results) or node.op.takes_token
        if node in candidates and not is_needed:
            unused.append(node)
        if is_needed or node in candidates:
            needed.update(node.operands)
    return unused[::-1]
