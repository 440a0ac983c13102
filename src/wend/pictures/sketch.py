"""What a drawing of a graph shows: which boxes there are, and what is connected."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType
from wend.pictures import letters
from wend.pictures.boxes import DETAIL, GAP, Box, Drawing, Port, spread
from wend.pictures.layers import Line
from wend.pictures.words import Words, in_lines, is_number, is_tape, region_titles, several

_PILL = DETAIL + 5  # how high params and results are


def sketch(graph: Graph) -> Drawing:
    """The drawing of a graph, with nothing in its place yet."""
    words = Words(graph)
    return _Sketch(words, graph).drawing("", words.results(graph.results))


class _Sketch:
    """The drawing of one graph or region as it is put together."""

    def __init__(self, words: Words, graph: Graph) -> None:
        self.words, self.graph = words, graph
        self.boxes: list[Box] = []
        self.lines: list[Line] = []
        self.tape: set[int] = set()
        self.origins: dict[Value, tuple[int, int, int]] = {}  # box, port, key
        self.read = {operand for node in graph.nodes for operand in node.operands}
        self.used = {*self.read, *graph.results}

    def drawing(self, title: str, roles: Sequence[str]) -> Drawing:
        """All of it; `roles`: what each result is for."""
        for param in self.graph.params:
            if param in self.read:
                self._param(param)
        for node in self.graph.nodes:
            if not is_number(node):
                self._node(node)
        handed_on = []
        for value, role in zip(self.graph.results, roles, strict=True):
            if value in self.origins:
                self._result(value, role)
            elif value.node is None:
                handed_on.append(self.words.name(value))
            else:
                handed_on.append(f"{role} = {self.words.given(value)}")
        notes = in_lines("hands on", handed_on)
        return Drawing(title, self.boxes, self.lines, notes, self.tape)

    def _param(self, param: Value) -> None:
        label = f"{self.words.name(param)}: {param.type}"
        width = _wide(label)
        box = Box("param", label, outs=[Port(width / 2)], width=width, height=_PILL)
        self._add(box, [], [param])

    def _result(self, value: Value, role: str) -> None:
        width = _wide(role)
        box = Box("result", role, ins=[Port(width / 2)], width=width, height=_PILL)
        self._add(box, [value], [])

    def _node(self, node: Node) -> None:
        given = [v for v in node.operands if v in self.origins]
        if node.regions:
            given = [*dict.fromkeys(given)]
        made = [v for v in node.results if v in self.used]
        box = self._region_box(node, made) if node.regions else self._plain_box(node, given, made)
        self._add(box, given, made)

    def _add(self, box: Box, given: Sequence[Value], made: Sequence[Value]) -> None:
        """A box, with lines to its ports. Ports are told by number until they have a place."""
        number = len(self.boxes)
        self.boxes.append(box)
        for port, value in enumerate(given):
            start, start_port, key = self.origins[value]
            self.lines.append(Line(start, start_port, number, port, key))
        for port, value in enumerate(made):
            key = len(self.origins)
            self.origins[value] = (number, port, key)
            if isinstance(value.type, ListType):
                self.tape.add(key)

    def _plain_box(self, node: Node, given: Sequence[Value], made: Sequence[Value]) -> Box:
        words = self.words
        title, line = words.title(node), words.line(node)
        details, notes = words.details(node), words.kept(node)
        outs = [Port(0.0, words.label(value)) for value in made]
        first = letters.width(title) + letters.width(line, letters.SMALL) + 2 * GAP
        below = sum(_wide(port.label) - GAP / 2 for port in outs)
        width = max(first, below, *map(_wide, (*details, *notes)), 0.0)
        ins = [Port(width * (k + 1) / (len(given) + 1)) for k in range(len(given))]
        kind = "tape" if is_tape(node) else "node"
        box = Box(kind, title, details, notes, node, ins, spread(outs, width), line=line)
        box.width, box.height = width, box.head
        return box

    def _region_box(self, node: Node, made: Sequence[Value]) -> Box:
        words, title = self.words, self.words.title(node)
        numbers: list[str] = []
        ports: dict[Value, list[str]] = {}
        for value, role in zip(node.operands, words.operands(node), strict=True):
            if value in self.origins:
                ports.setdefault(value, []).append(role)
            else:
                numbers.append(f"{role} = {words.given(value)}")
        ins = [Port(0.0, several(roles)) for roles in ports.values()]
        outs = [Port(0.0, words.label(value)) for value in made]
        details, notes = in_lines("from", numbers), words.kept(node)
        rows = [sum(_wide(port.label) for port in row) for row in (ins, outs)]
        texts = [_wide(text) + GAP for text in (*details, *notes)]
        inner = [
            _Sketch(words, region).drawing(name, roles)
            for region, name, roles in zip(
                node.regions, region_titles(node), words.region_results(node), strict=True
            )
        ]
        kind = node.op.name if node.op.name in ("while", "if") else "call"
        box = Box(kind, title, details, notes, node, ins, outs, inner)
        box.width = max(letters.width(title) + 3 * GAP, *rows, *texts)
        return box


def _wide(text: str) -> float:
    """How wide a box around small letters is."""
    return letters.width(text, letters.SMALL) + GAP
