"""What was done to make a trace fast: computed again, moved out of loops, fused.

Read off the graph that runs, and off what runs it: so it is what was done, whatever was tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from wend.backends.protocol import FusedLoop
from wend.base.source import Source, at, places
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import TensorType
from wend.ops import creating, elementwise, lists, maybe, shaping
from wend.ops.control import while_

_MOST_LINES = 3  # of a kind
_LEAST = 1024  # bytes: loops that save less are as good as any
_MOST_NAMES = 4  # of operations in a line

# What only gives elements that there are is not worth a word.
_MOVES = {
    *(creating.constant, creating.iota, elementwise.cast, elementwise.stop_gradient),
    *(shaping.shape_of, shaping.dim_of, shaping.broadcast_shapes, shaping.broadcast_to),
    *(shaping.refine, shaping.keep_shape, shaping.reshape, shaping.transpose, shaping.slice_),
    *(lists.list_get, maybe.present),
}


def recomputed(graphs: Sequence[Graph]) -> list[str]:
    """A line for each loop whose backward pass computes again what its forward pass had.

    What that saves are the values that the rest of the backward pass reads. Nothing is computed
    again where the forward pass has come to need it no more.
    """
    done: dict[tuple[Op, Source | None], set[Graph]] = defaultdict(set)
    for region in (region for graph in graphs for region, _ in _regions(graph, None)):
        for node in region.nodes:
            if not _is_rematerialized(node):
                done[node.op, node.source].add(region)
    found = []
    for graph in graphs:
        nodes: dict[Source | None, list[Node]] = defaultdict(list)
        read: dict[Source | None, list[Value]] = defaultdict(list)
        for region, loop in _regions(graph, None):
            again = [
                n for n in region.nodes if _is_rematerialized(n) and done[n.op, n.source] - {region}
            ]
            rest = {*region.nodes}.difference(again)
            wanted = {*region.results, *(value for node in rest for value in node.operands)}
            nodes[loop] += again
            read[loop] += [value for node in again for value in node.results if value in wanted]
        for loop, group in nodes.items():
            if group:
                size, text = _size(read[loop])
                trip = "" if loop is None else f" a trip of the loop{at(loop)}"
                line = f"recomputes {_operations(group)} rather than keep {text}{trip}"
                found.append((size, line))
    return largest(found)


def hoisted(graphs: Sequence[Graph]) -> list[str]:
    """A line for each loop out of which something was moved."""
    nodes: dict[Source, list[Node]] = defaultdict(list)
    for node in (node for graph in graphs for node in graph.walk()):
        if node.remark is not None and node.remark.loop is not None and node.op not in _MOVES:
            nodes[node.remark.loop].append(node)
    found = []
    for loop, group in nodes.items():
        size, _ = _size([value for node in group for value in node.results])
        found.append((size, f"hoists {_operations(group)} out of the loop{at(loop)}"))
    return largest(found)


def fused_loops(loops: Iterable[FusedLoop]) -> list[str]:
    """A line for each loop over memory in which several operations are done."""
    found = []
    for loop in loops:
        if loop.saved is not None and loop.saved < _LEAST:
            continue
        count = f"{loop.count} operations{places(loop.sources)}"
        size = f"{loop.saved:,} bytes" if loop.saved is not None else f"{loop.unstored} arrays"
        saved = f", which saves {size}{' a trip' if loop.is_inside else ''}"
        line = f"fuses {count} into one loop over memory{saved if loop.unstored else ''}"
        found.append((loop.saved or 0, line))
    return largest(found)


def _regions(graph: Graph, loop: Source | None) -> Iterator[tuple[Graph, Source | None]]:
    """Every region, each with the line of the innermost loop that it is in."""
    yield graph, loop
    for node in graph.nodes:
        for region in node.regions:
            yield from _regions(region, node.source if node.op is while_ else loop)


def _is_rematerialized(node: Node) -> bool:
    return node.remark is not None and node.remark.is_rematerialized and node.op not in _MOVES


def _operations(nodes: Sequence[Node]) -> str:
    """`mul, add at newton.py:5`: each name once, the first ones."""
    names = [*dict.fromkeys(node.op.name for node in nodes)]
    more = ", …" if len(names) > _MOST_NAMES else ""
    lines = places(node.source for node in nodes if node.source is not None)
    return f"{', '.join(names[:_MOST_NAMES])}{more}{lines}"


def _size(values: Iterable[Value]) -> tuple[int, str]:
    """How many bytes values take, as far as is known, and how to say it."""
    sizes = [v.type.nbytes if isinstance(v.type, TensorType) else None for v in values]
    known = sum(size for size in sizes if size is not None)
    return known or len(sizes), f"{known:,} bytes" + (" and more" if None in sizes else "")


def largest(found: Sequence[tuple[int, str]]) -> list[str]:
    """The lines of the largest, equal ones once, and how many more there are."""
    lines = [*dict.fromkeys(line for _, line in sorted(found, key=lambda item: -item[0]))]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"and {more} more"] if more > 0 else [])]
