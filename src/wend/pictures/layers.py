"""The row of each box in a drawing, and the order of the boxes in each row.

Layered graph drawing after Sugiyama, Tagawa and Toda (1981): every edge points down. An edge that
passes through rows occupies a slot in each of them; edges from one port share their slots.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import field

from wend.base.lazy.dataclass import dataclass

# Sweeps over the rows, and slots visited in all: a sweep takes time in proportion to the slots,
# so large drawings get fewer.
_MAX_SWEEPS, _MAX_SLOT_VISITS = 12, 40_000


@dataclass(slots=True, eq=False)
class Slot:
    """A place in a row: of a box, or where an edge passes through (`box` is -1).

    Attributes:
        row: the row, counted from the top.
        width: the width that it occupies.
        box: the number of the box.
        above: the segments that end here.
        below: the segments that begin here.
        x: the left end.
    """

    row: int
    width: float
    box: int = -1
    above: list[EdgeSegment] = field(default_factory=list)
    below: list[EdgeSegment] = field(default_factory=list)
    x: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class EdgeSegment:
    """The part of an edge between two adjacent rows.

    Ports are offsets from the left ends of the slots; `key` is that of the edge.
    """

    start: Slot
    start_port: float
    end: Slot
    end_port: float
    key: int


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from a port below one box to a port above another; edges of one key share slots."""

    start: int
    start_port: float
    end: int
    end_port: float
    key: int


def assign_rows(
    widths: Sequence[float], edges: Sequence[Edge], max_width: float, gap: float
) -> list[int]:
    """Return the row of each box: below all boxes it depends on, in a row that has room.

    Args:
        widths: the widths of the boxes, in topological order of the edges.
        edges: the dependences.
        max_width: the maximum width of a row; a single box may be wider.
        gap: the distance between two boxes.
    """
    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for edge in edges:
        above[edge.end].append(edge.start)
        below[edge.start].append(edge.end)
    rows: list[int] = []
    filled_widths: dict[int, float] = {}
    for box, width in enumerate(widths):
        row = max((rows[other] + 1 for other in above[box]), default=0)
        while filled_widths.get(row, 0.0) and filled_widths[row] + width > max_width:
            row += 1
        rows.append(row)
        filled_widths[row] = filled_widths.get(row, 0.0) + width + gap
    for box in reversed(range(len(widths))):
        # Move a box that has fewer edges from above than to below down to its users.
        if not below[box] or len({*above[box]}) >= len({*below[box]}):
            continue
        row = min(rows[other] for other in below[box]) - 1
        while (
            row > rows[box]
            and filled_widths.get(row, 0.0)
            and filled_widths[row] + widths[box] > max_width
        ):
            row -= 1
        if row > rows[box]:
            filled_widths[rows[box]] -= widths[box] + gap
            filled_widths[row] = filled_widths.get(row, 0.0) + widths[box] + gap
            rows[box] = row
    row_numbers = {row: number for number, row in enumerate(sorted({*rows}))}
    return [row_numbers[row] for row in rows]


def order_layers(
    rows: Sequence[int], widths: Sequence[float], edges: Sequence[Edge], edge_width: float
) -> list[list[Slot]]:
    """Return the slots of each row, ordered to have few crossings.

    `edge_width` is the width of a slot through which an edge passes.
    """
    layers: list[list[Slot]] = [[] for _ in range(max(rows, default=-1) + 1)]
    boxes = [
        Slot(row, width, box) for box, (row, width) in enumerate(zip(rows, widths, strict=True))
    ]
    for slot in boxes:
        layers[slot.row].append(slot)
    shared: dict[tuple[int, int], Slot] = {}
    for edge in edges:
        slot, port = boxes[edge.start], edge.start_port
        for row in range(slot.row + 1, rows[edge.end]):
            if (edge.key, row) not in shared:
                passing = shared[edge.key, row] = Slot(row, edge_width)
                layers[row].append(passing)
                _connect(slot, port, passing, edge_width / 2, edge.key)
            slot, port = shared[edge.key, row], edge_width / 2
        _connect(slot, port, boxes[edge.end], edge.end_port, edge.key)
    return _reduce_crossings(layers)


def _connect(start: Slot, start_port: float, end: Slot, end_port: float, key: int) -> None:
    segment = EdgeSegment(start, start_port, end, end_port, key)
    start.below.append(segment)
    end.above.append(segment)


def sweep_count(layers: Sequence[Sequence[Slot]], max_sweeps: int, max_visits: int) -> int:
    """Return the number of sweeps: at least two, within the limits on sweeps and slot visits."""
    return min(max_sweeps, max(2, max_visits // max(1, sum(map(len, layers)))))


def _reduce_crossings(layers: list[list[Slot]]) -> list[list[Slot]]:
    """Sort each row by the barycenters of its neighbors above, then below, repeatedly."""
    best, fewest = [layer.copy() for layer in layers], _count_crossings(layers)
    for sweep in range(sweep_count(layers, _MAX_SWEEPS, _MAX_SLOT_VISITS)):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            _sort_layer(layer, layers, downwards)
        crossings = _count_crossings(layers)
        if crossings < fewest:
            best, fewest = [layer.copy() for layer in layers], crossings
    return best


def _sort_layer(layer: list[Slot], layers: list[list[Slot]], downwards: bool) -> None:
    row = layer[0].row + (-1 if downwards else 1)
    if not 0 <= row < len(layers):
        return
    position = {slot: k for k, slot in enumerate(layers[row])}
    current_position = {slot: k for k, slot in enumerate(layer)}
    scale = len(layers[row]) / len(layer)

    def barycenter(slot: Slot) -> float:
        segments = slot.above if downwards else slot.below
        if not segments:
            return current_position[slot] * scale
        return sum(_endpoint_position(segment, downwards, position) for segment in segments) / len(
            segments
        )

    layer.sort(key=barycenter)


def _endpoint_position(segment: EdgeSegment, of_start: bool, position: dict[Slot, int]) -> float:
    """Return the position of a segment's other end; the ports of a box add a fraction."""
    slot = segment.start if of_start else segment.end
    port = segment.start_port if of_start else segment.end_port
    return position[slot] + port / (slot.width + 1.0)


def _count_crossings(layers: Sequence[Sequence[Slot]]) -> int:
    count = 0
    for layer, following in itertools.pairwise(layers):
        position = {slot: k for k, slot in enumerate(following)}
        ends: list[float] = []
        for slot in layer:
            for segment in sorted(slot.below, key=lambda segment: segment.start_port):
                end = _endpoint_position(segment, False, position)
                count += len(ends) - bisect_right(ends, end)
                insort(ends, end)
    return count
