"""Copies nodes with others in place of some, which may have stand-ins themselves.

A tape in a trace asks a loop for its records after the loop was recorded. The loop's node stays
as it is; another, which also gives the records, stands for it when the graph is finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wend.ir.graph import Node, Value
from wend.ir.rewrite import copy_node, rename_dims
from wend.ir.types import Dim, Symbol

Replacements = Mapping[Node, Sequence[Node]]


def copy_with_replacements(
    nodes: Iterable[Node], mapping: dict[Value, Value], replacements: Replacements
) -> list[Node]:
    """Copy nodes; the last stand-in of a node gives the node's results first."""
    copies: list[Node] = []
    dims: dict[Symbol, Dim] = {}

    def copy(node: Node) -> None:
        if node not in replacements:
            operands = [mapping.get(v, v) for v in node.operands]
            copies.append(copy_node(node, operands, dims=dims))
            mapping.update(zip(node.results, copies[-1].results, strict=True))
            return
        for other in replacements[node]:
            copy(other)
        results = [mapping[v] for v in replacements[node][-1].results[: len(node.results)]]
        mapping.update(zip(node.results, results, strict=True))
        rename_dims(dims, node.results, results)

    for node in nodes:
        copy(node)
    return copies
