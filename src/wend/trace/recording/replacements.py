"""Copies of nodes in which some are replaced; the replacements may be replaced in turn.

A traced tape asks a loop for its records after the loop was recorded. The loop's node is left
unchanged; another node that also returns the records replaces it when the graph is finished.
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
    """Return copies of nodes; the last replacement of a node returns the node's results first."""
    copies: list[Node] = []
    dims: dict[Symbol, Dim] = {}

    def copy(node: Node) -> None:
        if node not in replacements:
            operands = [mapping.get(v, v) for v in node.operands]
            copies.append(copy_node(node, operands, dims=dims))
            mapping.update(zip(node.results, copies[-1].results, strict=True))
            return
        for replacement in replacements[node]:
            copy(replacement)
        results = [mapping[v] for v in replacements[node][-1].results[: len(node.results)]]
        mapping.update(zip(node.results, results, strict=True))
        rename_dims(dims, node.results, results)

    for node in nodes:
        copy(node)
    return copies
