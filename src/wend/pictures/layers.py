"""Which row each box of a drawing is in, and in which order the boxes of a row are.

Layered drawing after Sugiyama, Tagawa and Toda (1981): every line goes down. A line that passes
rows has a place in each of them, and lines from one port share their places.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

# How often rows are gone through; less often where there are many places, for it takes as long
_SWEEPS, _VISITS = 12, 40_000


@dataclass(slots=True, eq=False)
class Place:
    """Something in a row: a box, or where a line passes (`box` is -1).

    Attributes:
        row: which row, from the top.
        width: what it takes of the row.
        box: the number of the box.
        above, below: the links that end and begin here.
    """

    row: int
    width: float
    box: int = -1
    above: list[Link] = field(default_factory=list)
    below: list[Link] = field(default_factory=list)
    x: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A part of a line, from one row to the next; the ports are counted from the left ends."""

    start: Place
    start_port: float
    end: Place
    end_port: float
    line: int


@dataclass(frozen=True, slots=True)
class Line:
    """From a port below one box to a port above another; `key`: lines of one key share places."""

    start: int
    start_port: float
    end: int
    end_port: float
    key: int


def rows_of(widths: Sequence[float], lines: Sequence[Line], most: float, gap: float) -> list[int]:
    """The row of each box: under all it depends on, where the row is not too wide.

    Args:
        widths: of the boxes, in an order in which every line goes to a later one.
        lines: what depends on what.
        most: how wide a row may be; one box may be wider.
        gap: what is between two boxes.
    """
    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for line in lines:
        above[line.end].append(line.start)
        below[line.start].append(line.end)
    rows: list[int] = []
    filled: dict[int, float] = {}
    for box, width in enumerate(widths):
        row = max((rows[other] + 1 for other in above[box]), default=0)
        while filled.get(row, 0.0) and filled[row] + width > most:
            row += 1
        rows.append(row)
        filled[row] = filled.get(row, 0.0) + width + gap
    for box in reversed(range(len(widths))):
        # What has fewer lines from above than to below is nearer to those.
        if not below[box] or len({*above[box]}) >= len({*below[box]}):
            continue
        row = min(rows[other] for other in below[box]) - 1
        while row > rows[box] and filled.get(row, 0.0) and filled[row] + widths[box] > most:
            row -= 1
        if row > rows[box]:
            filled[rows[box]] -= widths[box] + gap
            filled[row] = filled.get(row, 0.0) + widths[box] + gap
            rows[box] = row
    used = {row: number for number, row in enumerate(sorted({*rows}))}
    return [used[row] for row in rows]


def places_of(
    rows: Sequence[int], widths: Sequence[float], lines: Sequence[Line], thin: float
) -> list[list[Place]]:
    """The rows of places, in an order with few crossings; `thin`: the width of a line's place."""
    layers: list[list[Place]] = [[] for _ in range(max(rows, default=-1) + 1)]
    boxes = [
        Place(row, width, box) for box, (row, width) in enumerate(zip(rows, widths, strict=True))
    ]
    for place in boxes:
        layers[place.row].append(place)
    shared: dict[tuple[int, int], Place] = {}
    for line in lines:
        place, port = boxes[line.start], line.start_port
        for row in range(place.row + 1, rows[line.end]):
            if (line.key, row) not in shared:
                passing = shared[line.key, row] = Place(row, thin)
                layers[row].append(passing)
                _link(place, port, passing, thin / 2, line.key)
            place, port = shared[line.key, row], thin / 2
        _link(place, port, boxes[line.end], line.end_port, line.key)
    return _untangled(layers)


def _link(start: Place, start_port: float, end: Place, end_port: float, line: int) -> None:
    link = Link(start, start_port, end, end_port, line)
    start.below.append(link)
    end.above.append(link)


def sweeps(layers: Sequence[Sequence[Place]], most: int, visits: int) -> int:
    """How often to go through all places, at most, and in all: at least twice."""
    return min(most, max(2, visits // max(1, sum(map(len, layers)))))


def _untangled(layers: list[list[Place]]) -> list[list[Place]]:
    """Order each row by where its lines come from, then by where they go, again and again."""
    best, fewest = [layer.copy() for layer in layers], _crossings(layers)
    for sweep in range(sweeps(layers, _SWEEPS, _VISITS)):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            _sort(layer, layers, downwards)
        found = _crossings(layers)
        if found < fewest:
            best, fewest = [layer.copy() for layer in layers], found
    return best


def _sort(layer: list[Place], layers: list[list[Place]], downwards: bool) -> None:
    row = layer[0].row + (-1 if downwards else 1)
    if not 0 <= row < len(layers):
        return
    position = {place: k for k, place in enumerate(layers[row])}
    own = {place: k for k, place in enumerate(layer)}
    share = len(layers[row]) / len(layer)

    def middle(place: Place) -> float:
        links = place.above if downwards else place.below
        if not links:
            return own[place] * share
        return sum(_spot(link, downwards, position) for link in links) / len(links)

    layer.sort(key=middle)


def _spot(link: Link, of_start: bool, position: dict[Place, int]) -> float:
    """The position of a link's other end, ports of one box from left to right."""
    place = link.start if of_start else link.end
    port = link.start_port if of_start else link.end_port
    return position[place] + port / (place.width + 1.0)


def _crossings(layers: Sequence[Sequence[Place]]) -> int:
    count = 0
    for layer, following in itertools.pairwise(layers):
        position = {place: k for k, place in enumerate(following)}
        seen: list[float] = []
        for place in layer:
            for link in sorted(place.below, key=lambda link: link.start_port):
                end = _spot(link, False, position)
                count += len(seen) - bisect_right(seen, end)
                insort(seen, end)
    return count
