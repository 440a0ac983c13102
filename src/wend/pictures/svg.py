"""Drawings as SVG: one file that needs no other, in the colours of the reader's screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources

from wend.ir.graph import Graph, Node
from wend.ir.printer import node_texts
from wend.pictures.arrange import arrange
from wend.pictures.boxes import DETAIL, HEADER, PAD, PORTS, Box, Drawing, Segment, Wire
from wend.pictures.letters import escaped
from wend.pictures.sketch import sketch


def beside(name: str) -> str:
    """The text of a file of this folder."""
    return (resources.files("wend.pictures") / name).read_text(encoding="utf-8")


def to_svg(graph: Graph) -> str:
    """A picture of a graph: see `Graph.to_svg`."""
    drawing = sketch(graph)
    arrange(drawing)
    return svg_of(drawing, graph, style=f"<style>\n{beside('graph.css')}</style>\n")


def to_html(graph: Graph, most: int = 500) -> str:
    """What a notebook shows of a graph: its picture, or its text where it has more nodes."""
    if graph.count() > most:
        return f"<pre>{escaped(str(graph))}</pre>"
    return f'<div style="overflow:auto;max-height:80vh">{to_svg(graph)}</div>'


def svg_of(drawing: Drawing, graph: Graph, *, style: str = "", folds: bool = False) -> str:
    """A drawing as SVG.

    Args:
        drawing: with everything in its place.
        graph: what it is of.
        style: an element with `graph.css`, or nothing where the page has it.
        folds: write down what a page needs to fold boxes, and to put the others in their places.
    """
    width, height = round(drawing.width), round(drawing.height)
    body = "\n".join(_Writer(node_texts(graph), folds).drawing(drawing))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wend-graph" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escaped(graph.name)}</title>\n{style}{body}\n</svg>"
    )


class _Writer:
    def __init__(self, texts: Mapping[Node, str], folds: bool) -> None:
        self.texts, self.folds = texts, folds

    def drawing(self, drawing: Drawing) -> Iterator[str]:
        for wire in drawing.wires:
            yield self._wire(wire, drawing)
        for box in drawing.boxes:
            yield from self._box(box, drawing.tops[box.row])
        if drawing.notes:
            bottom = drawing.height - PAD - DETAIL * len(drawing.notes)
            yield f'<g class="notes" transform="translate(0,{_n(bottom)})">'
            for number, note in enumerate(drawing.notes):
                yield _text("s", PAD, 13 + DETAIL * number, note)
            yield "</g>"

    def _box(self, box: Box, y: float) -> Iterator[str]:
        place = f"translate({_n(box.x)},{_n(y)})"
        yield f'<g class="{box.kind}" transform="{place}"{self._facts(box)}>'
        if box.node is not None:
            source = f"\n{box.node.source.short}" if box.node.source else ""
            yield f"<title>{escaped(self.texts[box.node] + source)}</title>"
        yield f'<rect width="{_n(box.width)}" height="{_n(box.height)}" rx="5"/>'
        if box.node is None:
            yield _text("s m", box.width / 2, box.height - 5.5, box.title)
        else:
            yield from self._words(box)
        for inner in box.inner:
            yield from self._region(inner)
        if box.outs and box.node is not None:
            yield f'<g class="outs" transform="translate(0,{_n(box.height)})">'
            for port in box.outs:
                yield _text("v", port.x, 11, port.label)
            yield "</g>"
        yield "</g>"

    def _facts(self, box: Box) -> str:
        """What a page reads."""
        if not self.folds:
            return ""
        facts = f' data-x="{_n(box.x)}" data-row="{box.row}" data-height="{_n(box.height)}"'
        if box.inner:
            facts += f' data-head="{_n(box.head)}" data-stacked="{int(box.is_stacked)}"'
        if box.node is not None and box.node.source is not None:
            facts += f' data-line="{escaped(str(box.node.source))}"'
        return facts

    def _words(self, box: Box) -> Iterator[str]:
        y = 0.0
        if box.inner and box.ins:
            y = PORTS
            for port in box.ins:
                yield _text("s m", port.x, 11, port.label)
        yield _text("t", 8, y + 15, box.title)
        if box.line:
            yield _text("s e", box.width - 5, y + 15, box.line)
        y += HEADER
        for kind, texts in (("s", box.details), ("k", box.notes)):
            for text in texts:
                yield _text(kind, 8, y + 8, text)
                y += DETAIL

    def _region(self, inner: Drawing) -> Iterator[str]:
        yield f'<g class="region" transform="translate({_n(inner.x)},{_n(inner.y)})">'
        yield f'<rect width="{_n(inner.width)}" height="{_n(inner.height)}" rx="4"/>'
        yield _text("s", 8, 14, inner.title)
        yield from self.drawing(inner)
        yield "</g>"

    def _wire(self, wire: Wire, drawing: Drawing) -> str:
        kind = ' class="w"' if wire.is_tape else ""
        path = "".join(_segment(segment, drawing) for segment in wire.segments)
        facts = ""
        if self.folds:
            parts = (f"{_n(s.start)},{_n(s.end)},{s.row},{s.box}" for s in wire.segments)
            facts = f' data-parts="{" ".join(parts)}"'
        return f'<path{kind} d="{path}"{facts}/>'


def _segment(segment: Segment, drawing: Drawing) -> str:
    """Down to the end of the row, then over to the next one."""
    row = segment.row
    top = drawing.tops[row]
    if segment.box >= 0:
        box = drawing.boxes[segment.box]
        top += box.height + (PORTS if box.node is not None else 0.0)  # below the label
    middle, end = drawing.tops[row] + drawing.heights[row], drawing.tops[row + 1]
    x, to, bend = _n(segment.start), _n(segment.end), _n((middle + end) / 2)
    return f"M{x},{_n(top)}V{_n(middle)}C{x},{bend} {to},{bend} {to},{_n(end)}"


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}">{escaped(text)}</text>'


def _n(number: float) -> str:
    """A number of pixels, to a tenth."""
    return f"{number:.1f}".removesuffix(".0")
