"""The boxes and edges of a drawing of a graph, before layout."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType
from wend.pictures import letters
from wend.pictures.boxes import DETAIL, GAP, Box, Drawing, Port, spread_ports
from wend.pictures.layers import Edge
from wend.pictures.words import Words, is_number, is_tape, merged_labels, region_titles, wrapped

_PARAM_HEIGHT = DETAIL + 5  # of params and results


def sketch(graph: Graph) -> Drawing:
    """Return the drawing of a graph, not laid out yet."""
    words = Words(graph)
    return _Sketch(words, graph).drawing("", words.results(graph.results))


class _Sketch:
    """A drawing of a graph or region under construction."""

    def __init__(self, words: Words, graph: Graph) -> None:
        self.words, self.graph = words, graph
        self.boxes: list[Box] = []
        self.edges: list[Edge] = []
        self.tape: set[int] = set()
        self.origins: dict[Value, tuple[int, int, int]] = {}  # box, port, key
        self.read = {operand for node in graph.nodes for operand in node.operands}
        self.used = {*self.read, *graph.results}

    def drawing(self, title: str, roles: Sequence[str]) -> Drawing:
        """Return the finished drawing; `roles` are those of the results."""
        for param in self.graph.params:
            if param in self.read:
                self._param(param)
        for node in self.graph.nodes:
            if not is_number(node):
                self._node(node)
        forwarded = []
        for value, role in zip(self.graph.results, roles, strict=True):
            if value in self.origins:
                self._result(value, role)
            elif value.node is None:
                forwarded.append(self.words.name(value))
            else:
                forwarded.append(f"{role} = {self.words.operand_text(value)}")
        notes = wrapped("forwards", forwarded)
        return Drawing(title, self.boxes, self.edges, notes, self.tape)

    def _param(self, param: Value) -> None:
        label = f"{self.words.name(param)}: {param.type}"
        width = _text_width(label)
        box = Box("param", label, outs=[Port(width / 2)], width=width, height=_PARAM_HEIGHT)
        self._add(box, [], [param])

    def _result(self, value: Value, role: str) -> None:
        width = _text_width(role)
        box = Box("result", role, ins=[Port(width / 2)], width=width, height=_PARAM_HEIGHT)
        self._add(box, [value], [])

    def _node(self, node: Node) -> None:
        operands = [v for v in node.operands if v in self.origins]
        if node.regions:
            operands = [*dict.fromkeys(operands)]
        results = [v for v in node.results if v in self.used]
        box = (
            self._region_box(node, results)
            if node.regions
            else self._plain_box(node, operands, results)
        )
        self._add(box, operands, results)

    def _add(self, box: Box, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Add a box and the edges to its ports, which are numbers until they are laid out."""
        number = len(self.boxes)
        self.boxes.append(box)
        for port, value in enumerate(operands):
            start, start_port, key = self.origins[value]
            self.edges.append(Edge(start, start_port, number, port, key))
        for port, value in enumerate(results):
            key = len(self.origins)
            self.origins[value] = (number, port, key)
            if isinstance(value.type, ListType):
                self.tape.add(key)

    def _plain_box(self, node: Node, operands: Sequence[Value], results: Sequence[Value]) -> Box:
        words = self.words
        title, line = words.title(node), words.line(node)
        details, notes = words.details(node), words.tape_notes(node)
        outs = [Port(0.0, words.label(value)) for value in results]
        title_width = letters.width(title) + letters.width(line, letters.SMALL) + 2 * GAP
        label_width = sum(_text_width(port.label) - GAP / 2 for port in outs)
        width = max(title_width, label_width, *map(_text_width, (*details, *notes)), 0.0)
        ins = [Port(width * (k + 1) / (len(operands) + 1)) for k in range(len(operands))]
        kind = "tape" if is_tape(node) else "node"
        box = Box(kind, title, details, notes, node, ins, spread_ports(outs, width), line=line)
        box.width, box.height = width, box.head
        return box

    def _region_box(self, node: Node, results: Sequence[Value]) -> Box:
        words, title = self.words, self.words.title(node)
        constants: list[str] = []
        ports: dict[Value, list[str]] = {}
        for value, role in zip(node.operands, words.operands(node), strict=True):
            if value in self.origins:
                ports.setdefault(value, []).append(role)
            else:
                constants.append(f"{role} = {words.operand_text(value)}")
        ins = [Port(0.0, merged_labels(roles)) for roles in ports.values()]
        outs = [Port(0.0, words.label(value)) for value in results]
        details, notes = wrapped("from", constants), words.tape_notes(node)
        port_widths = [sum(_text_width(port.label) for port in row) for row in (ins, outs)]
        text_widths = [_text_width(text) + GAP for text in (*details, *notes)]
        inner = [
            _Sketch(words, region).drawing(name, roles)
            for region, name, roles in zip(
                node.regions, region_titles(node), words.region_results(node), strict=True
            )
        ]
        kind = node.op.name if node.op.name in ("while", "if") else "call"
        box = Box(kind, title, details, notes, node, ins, outs, inner)
        box.width = max(letters.width(title) + 3 * GAP, *port_widths, *text_widths)
        return box


def _text_width(text: str) -> float:
    """Return the width of a box around small text."""
    return letters.width(text, letters.SMALL) + GAP
