"""Remarks on optimisations of a trace: rematerialized and hoisted operations, copies, fused loops.

They are read off the optimised graph and its executables, so they report what was actually done.
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
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import trip_count
from wend.ops.parallel_map import parallel_map
from wend.passes.carry_buffers import carry_buffers

_MAX_LINES = 3  # of one kind of remark
_MIN_REPORTED_BYTES = 1024  # fusion that saves less makes no difference
_MAX_NAMES = 4  # of operations in one line

# These only move or create elements, which is not worth a remark.
_FREE_OPS = {
    *(creating.constant, creating.iota, elementwise.cast, elementwise.stop_gradient),
    *(shaping.shape_of, shaping.dim_of, shaping.broadcast_shapes, shaping.broadcast_to),
    *(shaping.refine, shaping.keep_shape, shaping.reshape, shaping.transpose, shaping.slice_),
    *(lists.list_new, lists.list_get, maybe.present),
}


def recomputed(graphs: Sequence[Graph]) -> list[str]:
    """Return a line for each loop whose backward pass rematerializes values of its forward pass.

    The saved values are those that the rest of the backward pass reads. A value that the forward
    pass itself no longer computes does not count.
    """
    computed_in: dict[tuple[Op, Source | None], set[Graph]] = defaultdict(set)
    for region in (region for graph in graphs for region, _ in _regions(graph, None)):
        for node in region.nodes:
            if not _is_rematerialized(node):
                computed_in[node.op, node.source].add(region)
    sized_lines = []
    for graph in graphs:
        nodes: dict[Source | None, list[Node]] = defaultdict(list)
        saved: dict[Source | None, list[Value]] = defaultdict(list)
        for region, loop in _regions(graph, None):
            rematerialized = [
                n
                for n in region.nodes
                if _is_rematerialized(n) and computed_in[n.op, n.source] - {region}
            ]
            others = {*region.nodes}.difference(rematerialized)
            read_elsewhere = {
                *region.results,
                *(value for node in others for value in node.operands),
            }
            nodes[loop] += rematerialized
            saved[loop] += [
                value
                for node in rematerialized
                for value in node.results
                if value in read_elsewhere
            ]
        for loop, nodes_of_loop in nodes.items():
            if nodes_of_loop:
                size, text = _size(saved[loop])
                trip = "" if loop is None else f" a trip of the loop{at(loop)}"
                line = f"recomputes {_operations(nodes_of_loop)} rather than keep {text}{trip}"
                sized_lines.append((size, line))
    return largest(sized_lines)


def hoisted(graphs: Sequence[Graph]) -> list[str]:
    """Return a line for each loop out of which operations were hoisted or pushed."""
    nodes: dict[tuple[Source, bool], list[Node]] = defaultdict(list)
    for node in (node for graph in graphs for node in graph.walk()):
        remark = node.remark
        if remark is None or remark.unrolled is not None:
            continue
        if remark.loop is not None and node.op not in _FREE_OPS:
            nodes[remark.loop, remark.is_for_all_trips].append(node)
    sized_lines = []
    for (loop, is_for_all_trips), nodes_of_loop in nodes.items():
        size, text = _size([value for node in nodes_of_loop for value in node.results])
        operations = f"{_operations(nodes_of_loop)} out of the loop{at(loop)}"
        line = f"hoists {operations}: {text}"
        if is_for_all_trips:
            line = f"pushes {operations}: {text} for many trips at once"
        sized_lines.append((size, line))
    return largest(sized_lines)


def counted(graphs: Sequence[Graph]) -> list[str]:
    """Return a line for each loop of the program: how many trips it makes, if that is known."""
    loops: dict[Source, list[Node]] = defaultdict(list)
    unrolled: dict[Source, dict[int, None]] = defaultdict(dict)
    for node in (node for graph in graphs for node in graph.walk()):
        remark = node.remark
        if remark is not None and remark.unrolled is not None and remark.loop is not None:
            unrolled[remark.loop][remark.unrolled] = None
        if (
            node.op is while_
            and node.source is not None
            and (remark is None or remark.lanes is None)
        ):
            loops[node.source].append(node)
    lines = [f"runs the loop{at(source)} {_times(nodes)}" for source, nodes in loops.items()]
    for source, trips in unrolled.items():
        lines.append(f"runs the loop{at(source)} {' and '.join(map(str, trips))} times, unrolled")
    return largest([(0, line) for line in lines])


def carried(graphs: Sequence[Graph]) -> list[str]:
    """Return a line for each loop: in how many buffers the large arrays of its carry live."""
    sized_lines = []
    for loop in (node for graph in graphs for node in graph.walk() if node.op is while_):
        rings = carry_buffers(WhileParts.of(loop))
        size = sum(count * (ring[0].tensor.nbytes or 0) for ring, count in rings)
        if size < _MIN_REPORTED_BYTES:
            continue
        texts = [_buffers(ring, count) for ring, count in rings[:_MAX_NAMES]]
        more = f" and {len(rings) - _MAX_NAMES} more" if len(rings) > _MAX_NAMES else ""
        line = f"carries {', '.join(texts)}{more} in the loop{at(loop.source)}: {size:,} bytes"
        sized_lines.append((size, line))
    return largest(sized_lines)


def _buffers(ring: Sequence[Value], count: int) -> str:
    """Return `h f64[64] in 2 buffers`."""
    names = ", ".join(x.name for x in ring if x.name)
    array = f"{names} {ring[0].type}" if names else str(ring[0].type)
    if len(ring) > 1:
        return f"{array} in a ring of {count}"
    return f"{array} in {count} buffer{'s' if count > 1 else ''}"


def _times(loops: Sequence[Node]) -> str:
    """Return how often the loops of one line run, forwards, backwards and in parts."""
    counts = {loop: trip_count(WhileParts.of(loop)) for loop in loops}
    trimmed = [loop for loop in loops if loop.remark is not None and loop.remark.trips is not None]
    if trimmed and (remark := trimmed[0].remark):
        times = " + ".join(str(counts[loop]) for loop in trimmed)
        size = f": {remark.unread_bytes:,} bytes of rows" if remark.unread_bytes else ": the others"
        return f"{times} times of {remark.trips}{size} are not read"
    if None in counts.values():
        return "until its test fails"
    numbers = [str(count) for count in dict.fromkeys(counts.values()) if isinstance(count, int)]
    text = f"{' and '.join(numbers)} times" if numbers else "once for each row of an array"
    if any(loop.remark is not None and loop.remark.is_distributed for loop in loops):
        return f"{text}, the loops in it for all of these at once"
    return text


def mapped(graphs: Sequence[Graph]) -> list[str]:
    """Return a line for each loop over elements of a `vmap`: how many run at a time."""
    lines = []
    for node in (node for graph in graphs for node in graph.walk()):
        if node.remark is not None and node.remark.chunk is not None:
            size = f"{node.remark.chunk:,} elements"
            threads = {None: "several threads", 1: "one thread"}.get(
                node.remark.threads, f"up to {node.remark.threads} threads"
            )
            lines.append(f"runs vmap{at(node.source)} in chunks of {size}, on {threads}")
        if node.remark is None or node.remark.lanes is None:
            continue
        if node.remark.lanes > 1:
            loops = [x.source for x in node.regions[0].walk() if x.op is while_]
            of = places(x for x in loops if x) if node.op is parallel_map else at(node.source)
            several = "s" if node.op is parallel_map and len({*loops}) > 1 else ""
            lines.append(f"runs the loop{several}{of} in {node.remark.lanes} lanes{_refills(node)}")
        else:
            inner = [x.source for x in node.regions[1].walk() if x.op is while_]
            of = f"each has its own loop{places(s for s in inner if s)}" if inner else ""
            reasons = ", and ".join(x for x in (of, node.remark.obstacle) if x)
            why = f": {reasons}" if reasons else ""
            lines.append(f"runs the elements of vmap{at(node.source)} one by one{why}")
    return list(dict.fromkeys(lines))


def _refills(node: Node) -> str:
    """Return when lanes in registers take the next elements."""
    if node.op is not parallel_map or node.remark is None:
        return ""
    if node.remark.is_refilled:
        return ", refilled as elements end"
    return ", for one group of elements after the other"


def copied(graphs: Sequence[Graph]) -> list[str]:
    """Return a line for each update in a loop that copies its array in each trip.

    It cannot be in place, because the old version is read later, or by another trip.
    """
    sized_lines = []
    for loop in (node for graph in graphs for node in graph.walk() if node.op is while_):
        w = WhileParts.of(loop)
        for region, invariants in (w.before, w.before_invariants), (w.after, w.after_invariants):
            for node, old in _copying_updates(region, invariants):
                size, text = _size([old])
                trip = f"{text} a trip of the loop{at(loop.source)}"
                line = f"copies {trip}: {node.op.name}{at(node.source)} keeps the old version"
                sized_lines.append((size, line))
    return largest(sized_lines)


def _copying_updates(region: Graph, invariants: Iterable[Value]) -> Iterator[tuple[Node, Value]]:
    """Yield the updates of arrays that are needed afterwards, with these arrays."""
    needed = {*region.results, *invariants}
    for node in reversed(region.nodes):
        if node.op.updates is not None:
            old = node.operands[node.op.updates]
            is_array = isinstance(old.type, TensorType) and old.type.shape != ()
            if is_array and (old in needed or node.operands.count(old) > 1):
                yield node, old
        needed.update(node.operands)


def fused_loops(loops: Iterable[FusedLoop]) -> list[str]:
    """Return a line for each loop over memory that fuses several operations."""
    sized_lines = []
    for loop in loops:
        if loop.saved is not None and loop.saved < _MIN_REPORTED_BYTES:
            continue
        count = f"{loop.count} operations{places(loop.sources)}"
        size = f"{loop.saved:,} bytes" if loop.saved is not None else f"{loop.unstored} arrays"
        saved_text = f", which saves {size}{' a trip' if loop.is_inside else ''}"
        line = f"fuses {count} into one loop over memory{saved_text if loop.unstored else ''}"
        sized_lines.append((loop.saved or 0, line))
    return largest(sized_lines)


def _regions(graph: Graph, loop: Source | None) -> Iterator[tuple[Graph, Source | None]]:
    """Return every region, each with the line of its innermost loop."""
    yield graph, loop
    for node in graph.nodes:
        for region in node.regions:
            yield from _regions(region, node.source if node.op is while_ else loop)


def _is_rematerialized(node: Node) -> bool:
    return node.remark is not None and node.remark.is_rematerialized and node.op not in _FREE_OPS


def _operations(nodes: Sequence[Node]) -> str:
    """Return `mul, add at newton.py:5`: the distinct names, at most `_MAX_NAMES`."""
    names = [*dict.fromkeys(node.op.name for node in nodes)]
    more = ", …" if len(names) > _MAX_NAMES else ""
    lines = places(node.source for node in nodes if node.source is not None)
    return f"{', '.join(names[:_MAX_NAMES])}{more}{lines}"


def _size(values: Iterable[Value]) -> tuple[int, str]:
    """Return the bytes of values as far as they are known, and a text for them."""
    sizes = [v.type.nbytes if isinstance(v.type, TensorType) else None for v in values]
    known_bytes = sum(size for size in sizes if size is not None)
    return known_bytes or len(sizes), f"{known_bytes:,} bytes" + (
        " and more" if None in sizes else ""
    )


def largest(sized_lines: Sequence[tuple[int, str]]) -> list[str]:
    """Return the lines of the largest, without duplicates, and the number of the others."""
    lines = [*dict.fromkeys(line for _, line in sorted(sized_lines, key=lambda item: -item[0]))]
    more = len(lines) - _MAX_LINES
    return [*lines[:_MAX_LINES], *([f"and {more} more"] if more > 0 else [])]
