"""Graph equality and digest, which ignore names and source lines (D20)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from wend.ir.graph import Graph
from wend.ir.printer import to_text


def equal(a: Graph, b: Graph) -> bool:
    """Return whether two graphs are equal: the same nodes, types and attrs in the same order."""
    a_text, a_table = _canonical(a)
    b_text, b_table = _canonical(b)
    return (
        a_text == b_text
        and len(a_table) == len(b_table)
        and all(map(_same_entry, a_table, b_table))
    )


def digest(graph: Graph) -> str:
    """Return a hash of a graph; equal for equal graphs, valid within this process."""
    import hashlib  # takes 3 ms, too much for `import wend`

    text, table = _canonical(graph)
    hasher = hashlib.sha256(text.encode())
    for entry in table:
        if isinstance(entry, np.ndarray):
            hasher.update(f"{entry.dtype}{entry.shape}".encode() + entry.tobytes())
        else:
            hasher.update(f"object {id(entry)}".encode())
    return hasher.hexdigest()


def _canonical(graph: Graph) -> tuple[str, list[Any]]:
    """Return the text of a graph without its name, and the side table of the text."""
    table: list[Any] = []
    return to_text(dataclasses.replace(graph, name="_"), table=table), table


def _same_entry(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a is b
