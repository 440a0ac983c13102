"""When two graphs are one: equality and digest, which ignore names and source lines (D20)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from wend.ir.graph import Graph
from wend.ir.printer import to_text


def equal(a: Graph, b: Graph) -> bool:
    """Whether two graphs do the same: the same nodes, types and attrs in the same order."""
    a_text, a_table = _canonical(a)
    b_text, b_table = _canonical(b)
    return (
        a_text == b_text
        and len(a_table) == len(b_table)
        and all(map(_same_entry, a_table, b_table))
    )


def digest(graph: Graph) -> str:
    """A hash of a graph: equal for equal graphs, good within this process."""
    import hashlib  # 3 ms: not at `import wend`

    text, table = _canonical(graph)
    found = hashlib.sha256(text.encode())
    for entry in table:
        if isinstance(entry, np.ndarray):
            found.update(f"{entry.dtype}{entry.shape}".encode() + entry.tobytes())
        else:
            found.update(f"object {id(entry)}".encode())
    return found.hexdigest()


def _canonical(graph: Graph) -> tuple[str, list[Any]]:
    """The text of a graph without its name, and what the text refers to."""
    table: list[Any] = []
    text = to_text(dataclasses.replace(graph, name="_"), table=table)
    return text, table


def _same_entry(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a is b
