"""Trips and records that nothing reads leave counted loops (Theano: scan's memory saving).

A loop stacks a row a trip, or writes one into an array. If only some rows are read, and nothing
else that the loop computes, the trips after the last of them do not run. Rows before the first of
them are not kept: the loop is split where the first row of a list or an array is read, and the
parts before that do not add to it. Gradients are trimmed once they are complete (D55).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, keep_names, rewrite_nodes, with_operands
from wend.ir.types import ListType, TensorType
from wend.ops import elementwise, indexing, lists, shaping
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import as_integer, known_values
from wend.ops.updating import ELEMENT_POSITIONS, scatter_set
from wend.passes.loop_sequences import Sequences

_MAX_NODES = 500  # of all parts of a loop together


@dataclass(frozen=True, slots=True)
class _Trimmed:
    """The trips of a loop whose rows are read, and its trip count before it was trimmed."""

    rows: range
    trips: int


def trim_loops(graph: Graph) -> Graph:
    """Trim the loops of a graph, inner ones first."""
    if while_ not in graph.ops:
        return graph
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
        trimmed.update((x, of) for x, of in read.items() if isinstance(x.type, ListType))
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
    """Return the trips whose rows are read, of each list and array; None if nothing is to gain."""
    w = WhileParts.of(loop)
    values = known_values(w)
    trips = len(next(iter(values.values()))) if values else 0
    sequences = Sequences.of(w) if trips > 1 else None
    if sequences is None or _may_fail(w, sequences):
        return None
    outer = {*results}
    read: dict[Value, range] = {}
    written: dict[Value, range] = {}
    has_others = False
    for k, result in enumerate(loop.results):
        if result not in readers and result not in outer:
            continue
        positions = _rows_written(w, k, sequences)
        rows = None
        if positions is not None and isinstance(size := result.tensor.dims[0], int):
            rows = _read(result, readers, outer, size)
        elif _is_record(w, k):
            rows = _read(result, readers, outer, trips)
        if rows is None and isinstance(result.type, ListType):
            return None
        if rows is None:
            has_others = True
        elif positions is None:
            read[result] = rows
        else:
            written[result] = _trips_of(positions, rows)
    if not has_others:  # arrays stay as large as they are, so only trips are to gain
        read.update((x, rows) for x, rows in written.items() if rows)
    if not read:
        return None
    first = min(rows.start for rows in read.values())
    last = trips if has_others else max(rows.stop for rows in read.values())
    if not has_others:
        read.update((x, range(last, last)) for x, rows in written.items() if not rows)
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
        or (node.op.may_fail(node) and not _is_in_bounds(node, sequences))
        for node in (*w.before.nodes, *w.after.nodes)
    )


def _is_in_bounds(node: Node, sequences: Sequences) -> bool:
    """Return whether what may fail is an access to a row that is within the array in each trip."""
    if node.results[0] in sequences.rows:
        return True
    if node.op not in ELEMENT_POSITIONS:
        return False
    positions = node.operands[ELEMENT_POSITIONS[node.op] :]
    return len(positions) == 1 and _are_rows(positions[0], node.operands[0], sequences)


def _are_rows(position: Value, array: Value, sequences: Sequences) -> bool:
    """Return whether a counter is the number of a row of an array in each trip."""
    rows, type = sequences.numbers.get(position), array.type
    if not rows or not isinstance(type, TensorType) or not type.is_static:
        return False
    size, ends = type.dims[0], (rows[0], rows[-1])
    return isinstance(size, int) and min(ends) >= 0 and max(ends) < size


def _is_record(w: WhileParts, k: int) -> bool:
    """Return whether result k is a list to which each trip adds an item, and nothing else."""
    push = _only_update(w, k)
    if push is None or push.op is not lists.list_push:
        return False
    start = w.carry[w.before_carry.index(w.forwarded[k])].node
    return start is not None and start.op is lists.list_new


def _rows_written(w: WhileParts, k: int, sequences: Sequences) -> range | None:
    """Return the row of result k, an array, that each trip writes; None if it does more with it."""
    write = _only_update(w, k)
    if write is None or write.op is not scatter_set or len(write.operands) != 3:
        return None
    position = write.operands[2]
    return sequences.numbers[position] if _are_rows(position, write.results[0], sequences) else None


def _trips_of(positions: range, rows: range) -> range:
    """Return the trips in which a position is among the rows."""
    is_up = positions.step > 0
    ascending = positions if is_up else positions[::-1]
    first, last = bisect_left(ascending, rows.start), bisect_left(ascending, rows.stop)
    return range(first, last) if is_up else range(len(positions) - last, len(positions) - first)


def _only_update(w: WhileParts, k: int) -> Node | None:
    """Return the only node of a loop that reads result k, and makes its next value."""
    forwarded = w.forwarded[k]
    if forwarded not in w.before_carry or w.forwarded.count(forwarded) > 1:
        return None
    update = w.next_carry[w.before_carry.index(forwarded)].node
    received = w.after_forwarded[k]
    if update is None or not update.operands or update.operands[0] is not received:
        return None
    others = [node for node in (*w.before.nodes, *w.after.nodes) if node is not update]
    read = {x for node in others for x in node.operands} | {*update.operands[1:]}
    is_result_once = w.next_carry.count(update.results[0]) == 1 and received not in w.next_carry
    is_only = read.isdisjoint((forwarded, received, update.results[0])) and is_result_once
    return update if is_only else None


def _read(
    value: Value, readers: Mapping[Value, Sequence[Node]], results: Iterable[Value], trips: int
) -> range | None:
    """Return the least range of the rows of a list or an array that are read."""
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
        case lists.list_get | indexing.gather:
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
            if (k in starts or _is_record(w, k)) and starts.get(k, stop) > begin:
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
