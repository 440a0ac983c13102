"""Gives each box and line of a drawing its place, from the inside out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.pictures import letters
from wend.pictures.boxes import (
    DETAIL,
    GAP,
    PAD,
    PORTS,
    ROW_GAP,
    Box,
    Drawing,
    Segment,
    Wire,
    spread,
)
from wend.pictures.columns import set_columns
from wend.pictures.layers import Line, Place, places_of, rows_of

_ROW = 1400.0  # how wide a row of boxes may be
_BESIDE = 1200.0  # up to which width regions are side by side
_THIN = 6.0  # the place of a line that passes a row


def arrange(drawing: Drawing) -> None:
    """Set where everything is; the drawing's left upper corner is 0, 0."""
    for box in drawing.boxes:
        if box.inner:
            _fill(box)
    lines = [_line(drawing.boxes, line) for line in drawing.lines]
    widths = [box.width for box in drawing.boxes]
    layers = places_of(rows_of(widths, lines, _ROW, GAP), widths, lines, _THIN)
    width = set_columns(layers, GAP)
    top = drawing.top + PAD
    for layer in layers:
        boxes = [drawing.boxes[place.box] for place in layer if place.box >= 0]
        height = max((box.height + (PORTS if box.outs else 0.0) for box in boxes), default=0.0)
        drawing.tops.append(top)
        drawing.heights.append(height)
        top += height + ROW_GAP
    texts = [letters.width(text, letters.SMALL) for text in (*drawing.notes, drawing.title)]
    drawing.width = max(width, *texts, 30.0) + 2 * PAD
    drawing.height = top - (ROW_GAP if layers else 0.0) + DETAIL * len(drawing.notes) + PAD
    left = (drawing.width - width) / 2
    for layer in layers:
        for place in layer:
            place.x += left
            if place.box >= 0:
                box = drawing.boxes[place.box]
                box.x, box.row = place.x, place.row
    drawing.wires = _wires(drawing, layers)


def _line(boxes: Sequence[Box], line: Line) -> Line:
    """With the ports where they are now."""
    start, end = boxes[line.start].outs, boxes[line.end].ins
    return replace(
        line, start_port=start[int(line.start_port)].x, end_port=end[int(line.end_port)].x
    )


def _fill(box: Box) -> None:
    """Put drawings into a box, side by side if there is room; ports are spread over its width."""
    for inner in box.inner:
        arrange(inner)
    beside = sum(inner.width + PAD for inner in box.inner) + PAD
    box.is_stacked = beside > max(_BESIDE, box.width)
    inside = beside
    if box.is_stacked:
        inside = max(inner.width for inner in box.inner) + 2 * PAD
    box.width = max(box.width, inside)
    x, y = PAD, box.head
    for inner in box.inner:
        inner.x, inner.y = x, y
        if box.is_stacked:
            inner.width = box.width - 2 * PAD
            y += inner.height + PAD
        else:
            x += inner.width + PAD
    tallest = max(inner.height for inner in box.inner)
    box.height = y if box.is_stacked else box.head + tallest + PAD
    box.ins, box.outs = spread(box.ins, box.width), spread(box.outs, box.width)


def _wires(drawing: Drawing, layers: Sequence[Sequence[Place]]) -> list[Wire]:
    found: dict[int, list[Segment]] = {}
    for layer in layers:
        for place in layer:
            for link in place.below:
                start, end = place.x + link.start_port, link.end.x + link.end_port
                found.setdefault(link.line, []).append(Segment(start, end, place.row, place.box))
    return [Wire(key in drawing.tape, segments) for key, segments in found.items()]
