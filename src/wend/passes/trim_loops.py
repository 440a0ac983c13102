"""Trips and records that nothing reads leave counted loops (Theano: scan's memory saving).

A loop stacks a row a trip. If only some rows are read, and nothing else that the loop computes, the
trips after the last of them do not run. Rows before the first of them are not kept: the loop is
split where the first row of a list is read, and the parts before that do not add to the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, keep_names, rewrite_nodes, with_operands
from wend.ir.types import ListType, TensorType
from wend.ops import elementwise, indexing, lists, shaping
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import as_integer, known_values
from wend.passes.loop_sequences import Sequences

_MAX_NODES = 500  # of all parts of a loop together


@dataclass(frozen=True, slots=True)
class _Trimmed:
    """The rows of a list that remain, and the trip count of the loop before it was trimmed."""

    rows: range
    trips: int


def trim_loops(graph: Graph) -> Graph:
    """Trim the loops of a graph, inner ones first."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for x in dict.fromkeys(node.operands):
            readers.setdefault(x, []).append(node)
    trimmed: dict[Value, _Trimmed] = {}

    def trim(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [trim_loops(region) for region in node.regions]
        if any(x in trimmed for x in node.operands):
            return [_of_remaining_rows(nodes, node, operands, trimmed)]
        copy = with_operands(node, operands, regions)
        read = _rows_read(node, readers, graph.results) if node.op is while_ else None
        if read is None:
            nodes.append(copy)
            return copy.results
        trimmed.update(read)
        starts = {node.results.index(x): of.rows.start for x, of in read.items()}
        remark = Remark(
            trips=next(iter(read.values())).trips,
            unread_bytes=sum(_unread_bytes(x, of) for x, of in read.items()),
        )
        stop = next(iter(read.values())).rows.stop
        return _parts_of_loop(nodes, copy, starts, stop, remark)

    return rewrite_nodes(graph, trim)


def _rows_read(
    loop: Node, readers: Mapping[Value, Sequence[Node]], results: Iterable[Value]
) -> dict[Value, _Trimmed] | None:
    """Return the rows of each list of a loop that are read; None where nothing is to gain."""
    w = WhileParts.of(loop)
    values = known_values(w)
    trips = len(next(iter(values.values()))) if values else 0
    sequences = Sequences.of(w) if trips > 1 else None
    if sequences is None or _may_fail(w, sequences):
        return None
    outer = {*results}
    read: dict[Value, range] = {}
    has_others = False
    for k, result in enumerate(loop.results):
        if result not in readers and result not in outer:
            continue
        rows = _read(result, readers, outer, trips) if _is_record(w, k) else None
        if rows is not None:
            read[result] = rows
        elif isinstance(result.type, ListType):
            return None
        else:
            has_others = True
    if not read:
        return None
    first = min(rows.start for rows in read.values())
    last = trips if has_others else max(rows.stop for rows in read.values())
    count = len(w.before.nodes) + len(w.after.nodes)
    if count > _MAX_NODES or not {*w.before_carry} <= {*w.forwarded}:
        first = 0
    if (first, last) == (0, trips):
        return None
    starts = {x: rows.start for x, rows in read.items()}
    if count * len({*starts.values()}) > _MAX_NODES or not first:
        starts = dict.fromkeys(read, first)
    return {x: _Trimmed(range(start, last), trips) for x, start in starts.items()}


def _unread_bytes(value: Value, of: _Trimmed) -> int:
    """Return the bytes of the rows of a list that are not kept, as far as they are known."""
    row = value.type.element if isinstance(value.type, ListType) else None
    return (of.trips - len(of.rows)) * (row.nbytes or 0) if isinstance(row, TensorType) else 0


def _may_fail(w: WhileParts, sequences: Sequences) -> bool:
    """Return whether a trip may end with an error, or has an effect."""
    return any(
        node.op.effect is not Effect.NONE
        or node.regions
        or (node.op.may_fail(node) and node.results[0] not in sequences.rows)
        for node in (*w.before.nodes, *w.after.nodes)
    )


def _is_record(w: WhileParts, k: int) -> bool:
    """Return whether result k is a list to which each trip adds an item, and nothing else."""
    forwarded = w.forwarded[k]
    if forwarded not in w.before_carry or w.forwarded.count(forwarded) > 1:
        return False
    position = w.before_carry.index(forwarded)
    start, push = w.carry[position].node, w.next_carry[position].node
    received = w.after_forwarded[k]
    if start is None or start.op is not lists.list_new or push is None:
        return False
    if push.op is not lists.list_push or push.operands[0] is not received:
        return False
    others = [node for node in (*w.before.nodes, *w.after.nodes) if node is not push]
    read = {x for node in others for x in node.operands}
    is_result_once = w.next_carry.count(push.results[0]) == 1 and received not in w.next_carry
    return read.isdisjoint((forwarded, received, push.results[0])) and is_result_once


def _read(
    value: Value, readers: Mapping[Value, Sequence[Node]], results: Iterable[Value], trips: int
) -> range | None:
    """Return the least range of the rows of a list or a stack that are read."""
    if value in results:
        return None
    read: list[range] = []
    for node in readers.get(value, ()):
        if node.operands[0] is not value or value in node.operands[1:]:
            return None
        rows = _read_by(node, readers, results, trips)
        if rows is None:
            return None
        read.append(rows)
    nonempty = [rows for rows in read if rows]
    if not nonempty:
        return None
    return range(min(x.start for x in nonempty), max(x.stop for x in nonempty))


def _read_by(
    node: Node, readers: Mapping[Value, Sequence[Node]], results: Iterable[Value], trips: int
) -> range | None:
    match node.op:
        case lists.list_stack | shaping.refine:
            return _read(node.results[0], readers, results, trips)
        case lists.list_get | indexing.gather if len(node.operands) == 2:
            position = as_integer(node.operands[1])
            if position is None or not -trips <= position < trips:
                return None
            return range(position % trips, position % trips + 1)
        case shaping.slice_:
            rows = range(trips)[slice(*node.attrs["slices"][0])]
            return rows if rows.step > 0 else None
    return None


def _of_remaining_rows(
    nodes: list[Node], node: Node, operands: Sequence[Value], trimmed: dict[Value, _Trimmed]
) -> Value:
    """Append a node that reads the rows that a list or a stack still has; return its result."""
    (result,), of = node.results, trimmed[node.operands[0]]
    attrs, type = dict(node.attrs), result.type
    inputs = list(operands)
    match node.op:
        case lists.list_stack:
            trimmed[result] = of
        case shaping.refine:
            trimmed[result] = of
            attrs["type"] = type = result.tensor.with_shape((len(of.rows), *result.tensor.dims[1:]))
        case shaping.slice_:
            rows = range(of.trips)[slice(*node.attrs["slices"][0])]
            first = rows.start - of.rows.start, rows.stop - of.rows.start, rows.step
            attrs["slices"] = first, *node.attrs["slices"][1:]
        case _:
            b = Build("")
            b.nodes, b.source = nodes, node.source
            position = as_integer(node.operands[1])
            assert position is not None
            inputs[1] = b.integer(position % of.trips - of.rows.start)
    copy = Node(node.op, inputs, attrs, (), [type], node.source)
    copy.remark = node.remark
    keep_names(node.results, copy.results)
    nodes.append(copy)
    return copy.results[0]


def _parts_of_loop(
    nodes: list[Node], loop: Node, starts: Mapping[int, int], stop: int, remark: Remark
) -> Sequence[Value]:
    """Append the parts of a loop up to a trip; result k, a list, begins with row `starts[k]`."""
    w, operands = WhileParts.of(loop), loop.operands
    results: Sequence[Value] = loop.results
    begin = 0
    for end in sorted({*starts.values(), stop} - {0}):
        last, empty = [*w.next_carry], list[int]()
        for k, forwarded in enumerate(w.forwarded):
            if _is_record(w, k) and starts.get(k, stop) > begin:
                empty.append(w.before_carry.index(forwarded))
                last[empty[-1]] = w.after_forwarded[k]
        after = Graph(w.after.name, w.after.params, w.after.nodes, tuple(last))
        part = copy_node(loop, operands, (_ending_after(w, end), after))
        part.remark = remark
        nodes.append(part)
        results = part.results
        if end < stop:
            carry = [results[w.forwarded.index(param)] for param in w.before_carry]
            for position in empty:
                carry[position] = w.carry[position]
            operands = (*carry, *w.invariants)
        begin = end
    return results


def _ending_after(w: WhileParts, trips: int) -> Graph:
    """Return `before` with a bound that ends the loop after so many trips from its start."""
    test = w.predicate.node
    assert test is not None
    values = known_values(w)[test.operands[0]]
    is_inclusive = test.op in (elementwise.le, elementwise.ge)
    b = Build("")
    b.source = test.source
    for node in w.before.nodes:
        if node is test:
            bound = b.integer(values.start + values.step * (trips - is_inclusive))
            tested = b.emit(test.op, test.operands[0], bound)
        else:
            b.nodes.append(node)
    mapping = {w.predicate: tested}
    results = tuple(mapping.get(x, x) for x in w.before.results)
    return Graph(w.before.name, w.before.params, tuple(b.nodes), results)
