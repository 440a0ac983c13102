"""What running a trace takes beside its operations: records of loops, calls of Python, memory."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.protocol import Executable
from wend.base.source import at
from wend.function.remarks import fused, hoisted, largest, recomputed
from wend.ir.graph import Graph, Node
from wend.ops.records import Record, records

_MOST_RECORDS = 3  # in a line


def costs(graphs: Sequence[Graph], runs: Sequence[Executable]) -> list[str]:
    """A line for each of them, and for what was done to save some.

    Args:
        graphs: those of a trace, as they are run, each once.
        runs: what runs them.
    """
    loops = [loop for run in runs for loop in run.fused]
    calls = [node for run in runs for node in run.host_nodes]
    in_python = [f"runs in Python: {node.op.name}{at(node.source)}" for node in calls]
    done = [*recomputed(graphs), *hoisted(graphs), *fused(loops)]
    return [*_kept(graphs), *done, *dict.fromkeys(in_python)]


def _kept(graphs: Sequence[Graph]) -> list[str]:
    """A line for each loop that keeps records."""
    of_loops: dict[Node, list[Record]] = {}
    for kept in (kept for graph in graphs for kept in records(graph)):
        of_loops.setdefault(kept.loop, []).append(kept)
    found = []
    for loop, group in of_loops.items():
        group.sort(key=lambda kept: (kept.rest == "records", -kept.least))
        names = [*dict.fromkeys(map(str, group))]
        more = len(names) - _MOST_RECORDS
        what = ", ".join(names[:_MOST_RECORDS]) + (f" and {more} more" if more > 0 else "")
        least = sum(kept.least for kept in group)
        rest = dict.fromkeys(kept.rest for kept in group if kept.rest)
        size = " and its ".join([f"{least:,} bytes", *rest])
        found.append((least, f"keeps {what}, {size} a trip of the loop{at(loop.source)}"))
    return largest(found)


def memory(runs: Sequence[Executable]) -> list[str]:
    """A line about the memory that waits for the next call, if any does."""
    sizes = [item for run in runs for item in run.kept_memory().items()]
    texts = [f"{size:,} bytes of {what}" for what, size in sizes if size]
    return [f"holds for the next call: {', '.join(texts)}"] if texts else []
