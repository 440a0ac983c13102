"""Drawings as self-contained SVG, which follows the color scheme of the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources

from wend.ir.graph import Graph, Node
from wend.ir.printer import node_texts
from wend.pictures.arrange import arrange
from wend.pictures.boxes import DETAIL, HEADER, PAD, PORTS, Box, Drawing, Segment, Wire
from wend.pictures.letters import escaped
from wend.pictures.sketch import sketch


def resource_text(name: str) -> str:
    """Return the text of a file in this package."""
    return (resources.files("wend.pictures") / name).read_text(encoding="utf-8")


def to_svg(graph: Graph) -> str:
    """Return a picture of a graph; see `Graph.to_svg`."""
    drawing = sketch(graph)
    arrange(drawing)
    return svg_of(drawing, graph, style=f"<style>\n{resource_text('graph.css')}</style>\n")


def to_html(graph: Graph, max_nodes: int = 500) -> str:
    """Return the notebook view of a graph: a picture, or text above `max_nodes` nodes."""
    if graph.count() > max_nodes:
        return f"<pre>{escaped(str(graph))}</pre>"
    return f'<div style="overflow:auto;max-height:80vh">{to_svg(graph)}</div>'


def svg_of(drawing: Drawing, graph: Graph, *, style: str = "", folds: bool = False) -> str:
    """Return a drawing as SVG.

    Args:
        drawing: the drawing, laid out.
        graph: its graph.
        style: an element with `graph.css`, or nothing if the page has it.
        folds: add the data that a page needs to fold boxes and lay out the others again.
    """
    return _document(drawing, graph.name, _SvgWriter(node_texts(graph), folds), style)


def unlabelled_svg(drawing: Drawing, title: str) -> str:
    """Return a drawing as SVG whose boxes stand for no nodes of a graph, but for their titles."""
    style = f"<style>\n{resource_text('graph.css')}</style>\n"
    return _document(drawing, title, _SvgWriter({}, False), style)


def _document(drawing: Drawing, title: str, writer: _SvgWriter, style: str) -> str:
    width, height = round(drawing.width), round(drawing.height)
    body = "\n".join(writer.drawing(drawing))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wend-graph" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escaped(title)}</title>\n{style}{body}\n</svg>"
    )


class _SvgWriter:
    def __init__(self, texts: Mapping[Node, str], folds: bool) -> None:
        self.texts, self.folds = texts, folds

    def drawing(self, drawing: Drawing) -> Iterator[str]:
        for wire in drawing.wires:
            yield self._wire(wire, drawing)
        for box in drawing.boxes:
            yield from self._box(box, drawing.tops[box.row])
        if drawing.notes:
            bottom = drawing.height - PAD - DETAIL * len(drawing.notes)
            yield f'<g class="notes" transform="translate(0,{_px(bottom)})">'
            for number, note in enumerate(drawing.notes):
                yield _text("s", PAD, 13 + DETAIL * number, note)
            yield "</g>"

    def _box(self, box: Box, y: float) -> Iterator[str]:
        place = f"translate({_px(box.x)},{_px(y)})"
        yield f'<g class="{box.kind}" transform="{place}"{self._facts(box)}>'
        if box.node is not None:
            source = f"\n{box.node.source.with_scope()}" if box.node.source else ""
            yield f"<title>{escaped(self.texts[box.node] + source)}</title>"
        yield f'<rect width="{_px(box.width)}" height="{_px(box.height)}" rx="5"/>'
        if box.node is None:
            yield _text("s m", box.width / 2, box.height - 5.5, box.title)
        else:
            yield from self._words(box)
        for inner in box.inner:
            yield from self._region(inner)
        if box.outs and box.node is not None:
            yield f'<g class="outs" transform="translate(0,{_px(box.height)})">'
            for port in box.outs:
                yield _text("v", port.x, 11, port.label)
            yield "</g>"
        yield "</g>"

    def _facts(self, box: Box) -> str:
        """Return the data attributes that the page reads."""
        if not self.folds:
            return ""
        facts = f' data-x="{_px(box.x)}" data-row="{box.row}" data-height="{_px(box.height)}"'
        if box.inner:
            facts += f' data-head="{_px(box.head)}" data-stacked="{int(box.is_stacked)}"'
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
        yield f'<g class="region" transform="translate({_px(inner.x)},{_px(inner.y)})">'
        yield f'<rect width="{_px(inner.width)}" height="{_px(inner.height)}" rx="4"/>'
        yield _text("s", 8, 14, inner.title)
        yield from self.drawing(inner)
        yield "</g>"

    def _wire(self, wire: Wire, drawing: Drawing) -> str:
        kind = ' class="w"' if wire.is_tape else ""
        path = "".join(_segment(segment, drawing) for segment in wire.segments)
        facts = ""
        if self.folds:
            parts = (f"{_px(s.start)},{_px(s.end)},{s.row},{s.box}" for s in wire.segments)
            facts = f' data-parts="{" ".join(parts)}"'
        return f'<path{kind} d="{path}"{facts}/>'


def _segment(segment: Segment, drawing: Drawing) -> str:
    """Return a path down to the end of the row, then across to the next one."""
    row = segment.row
    top = drawing.tops[row]
    if segment.box >= 0:
        box = drawing.boxes[segment.box]
        top += box.height + (PORTS if box.node is not None else 0.0)  # below the label
    middle, next_top = drawing.tops[row] + drawing.heights[row], drawing.tops[row + 1]
    x, end_x, bend = _px(segment.start), _px(segment.end), _px((middle + next_top) / 2)
    return f"M{x},{_px(top)}V{_px(middle)}C{x},{bend} {end_x},{bend} {end_x},{_px(next_top)}"


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{_px(x)}" y="{_px(y)}">{escaped(text)}</text>'


def _px(number: float) -> str:
    """Return a number of pixels, rounded to a tenth."""
    return f"{number:.1f}".removesuffix(".0")
