"""The layout of a drawing: positions of all boxes and wires, computed from the inside out."""

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
    spread_ports,
)
from wend.pictures.columns import assign_columns
from wend.pictures.layers import Edge, Slot, assign_rows, order_layers

_MAX_ROW_WIDTH = 1400.0
_MAX_SIDE_BY_SIDE_WIDTH = 1200.0  # wider regions are stacked
_EDGE_SLOT_WIDTH = 6.0


def arrange(drawing: Drawing) -> None:
    """Set all positions of a drawing; its upper left corner is (0, 0)."""
    for box in drawing.boxes:
        if box.inner:
            _fill_box(box)
    edges = [_with_port_positions(drawing.boxes, edge) for edge in drawing.edges]
    widths = [box.width for box in drawing.boxes]
    layers = order_layers(
        assign_rows(widths, edges, _MAX_ROW_WIDTH, GAP), widths, edges, _EDGE_SLOT_WIDTH
    )
    width = assign_columns(layers, GAP)
    top = drawing.top + PAD
    for layer in layers:
        boxes = [drawing.boxes[slot.box] for slot in layer if slot.box >= 0]
        height = max((box.height + (PORTS if box.outs else 0.0) for box in boxes), default=0.0)
        drawing.tops.append(top)
        drawing.heights.append(height)
        top += height + ROW_GAP
    text_widths = [letters.width(text, letters.SMALL) for text in (*drawing.notes, drawing.title)]
    drawing.width = max(width, *text_widths, 30.0) + 2 * PAD
    drawing.height = top - (ROW_GAP if layers else 0.0) + DETAIL * len(drawing.notes) + PAD
    left = (drawing.width - width) / 2
    for layer in layers:
        for slot in layer:
            slot.x += left
            if slot.box >= 0:
                box = drawing.boxes[slot.box]
                box.x, box.row = slot.x, slot.row
    drawing.wires = _wires(drawing, layers)


def _with_port_positions(boxes: Sequence[Box], edge: Edge) -> Edge:
    """Return the edge with port numbers replaced by their positions."""
    start, end = boxes[edge.start].outs, boxes[edge.end].ins
    return replace(
        edge, start_port=start[int(edge.start_port)].x, end_port=end[int(edge.end_port)].x
    )


def _fill_box(box: Box) -> None:
    """Lay out the drawings in a box, side by side if there is room, else stacked.

    Spreads the ports over its width.
    """
    for inner in box.inner:
        arrange(inner)
    side_by_side_width = sum(inner.width + PAD for inner in box.inner) + PAD
    box.is_stacked = side_by_side_width > max(_MAX_SIDE_BY_SIDE_WIDTH, box.width)
    inner_width = side_by_side_width
    if box.is_stacked:
        inner_width = max(inner.width for inner in box.inner) + 2 * PAD
    box.width = max(box.width, inner_width)
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
    box.ins, box.outs = spread_ports(box.ins, box.width), spread_ports(box.outs, box.width)


def _wires(drawing: Drawing, layers: Sequence[Sequence[Slot]]) -> list[Wire]:
    segments_of_edge: dict[int, list[Segment]] = {}
    for layer in layers:
        for slot in layer:
            for segment in slot.below:
                start, end = slot.x + segment.start_port, segment.end.x + segment.end_port
                segments_of_edge.setdefault(segment.key, []).append(
                    Segment(start, end, slot.row, slot.box)
                )
    return [Wire(key in drawing.tape, segments) for key, segments in segments_of_edge.items()]
