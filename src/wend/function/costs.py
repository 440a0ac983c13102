"""What running a trace takes beside its operations: records of loops, calls of Python, memory."""

from __future__ import annotations

from collections.abc import Iterable

from wend.backends.protocol import Executable
from wend.base.source import at
from wend.ir.graph import Graph
from wend.ops.records import records


def costs(runs: Iterable[tuple[Graph, Executable]]) -> list[str]:
    """A line for each of them.

    Args:
        runs: graphs as they are run, with what runs them.
    """
    found: list[str] = []
    for graph, run in runs:
        found += [f"keeps {kept} of the loop{at(kept.loop.source)}" for kept in records(graph)]
        found += [f"runs in Python: {node.op.name}{at(node.source)}" for node in run.host_nodes]
    return list(dict.fromkeys(found))


def memory(runs: Iterable[Executable]) -> list[str]:
    """A line about the memory that waits for the next call, if any does."""
    sizes = [item for run in runs for item in run.kept_memory().items()]
    texts = [f"{size} bytes of {what}" for what, size in sizes if size]
    return [f"holds for the next call: {', '.join(texts)}"] if texts else []
