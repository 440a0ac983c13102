"""What running a trace takes beside its operations: records of loops, calls of Python, memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from wend.backends.protocol import Executable
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType, Type, without_maybe
from wend.ops import lists
from wend.ops.control import WhileParts, while_

_SLOT = 8  # bytes: what a number takes in a record, and a list or an array beside its elements


def costs(runs: Iterable[tuple[Graph, Executable]]) -> list[str]:
    """A line for each of them.

    Args:
        runs: graphs as they are run, with what runs them.
    """
    found: list[str] = []
    for graph, run in runs:
        found += records(graph)
        found += [f"runs in Python: {node.op.name}{at(node.source)}" for node in run.host_nodes]
    return list(dict.fromkeys(found))


def memory(runs: Iterable[Executable]) -> list[str]:
    """A line about the memory that waits for the next call, if any does."""
    sizes = [item for run in runs for item in run.kept_memory().items()]
    texts = [f"{size} bytes of {what}" for what, size in sizes if size]
    return [f"holds for the next call: {', '.join(texts)}"] if texts else []


def records(graph: Graph, loop: Node | None = None) -> Iterator[str]:
    """What loops keep of each trip, in order: for the backward pass, or in lists of the program."""
    for node in graph.nodes:
        if node.op is lists.list_push and loop is not None:
            value = node.operands[1]
            what = f"{_name(value, loop)} {value.type}, {_size(value.type)}"
            yield f"keeps {what} a trip of the loop{at(loop.source)}"
        for region in node.regions:
            yield from records(region, node if node.op is while_ else loop)


def _name(value: Value, loop: Node) -> str:
    """The user's variable where that is known, else the operation."""
    w = WhileParts.of(loop)
    if value in w.after_forwarded:
        value = w.before.results[1 + w.after_forwarded.index(value)]
    if value.name is not None:
        return value.name
    return "a carry" if value.node is None else f"{value.node.op.name}{at(value.node.source)}"


def _size(type: Type) -> str:
    kept = without_maybe(type)
    if not isinstance(kept, TensorType):
        return f"{2 * _SLOT} bytes and its records"
    if kept.shape == ():
        return f"{_SLOT} bytes"
    sizes = [dim for dim in kept.shape or () if isinstance(dim, int)]
    if kept.shape is None or len(sizes) < len(kept.shape):
        return f"{_SLOT} bytes and its elements"
    return f"{_SLOT + math.prod(sizes) * kept.dtype.itemsize} bytes"
