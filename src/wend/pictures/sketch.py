"""What a drawing of a graph shows: which boxes, with which words, and what is connected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import node_texts, region_names, value_numbers
from wend.ir.types import ListType
from wend.ops import lists
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.ops.creating import constant
from wend.ops.records import records
from wend.pictures import letters
from wend.pictures.boxes import DETAIL, GAP, Box, Drawing, Port
from wend.pictures.layers import Line
from wend.pictures.names import names_of

_LETTERS = 30  # of details
_NAME = 24  # of names
# What these do is told by the types of their results.
_TOLD_BY_TYPES = {"broadcast_to", "cast", "reshape"}
_TAPE_OPS = (lists.list_push, lists.list_get, lists.list_pop, lists.list_new)


def sketch(graph: Graph) -> Drawing:
    """The drawing of a graph, with nothing in its place yet."""
    sketcher = _Sketcher(graph)
    return sketcher.drawing(graph, "", sketcher.results(graph.results))


class _Sketcher:
    def __init__(self, graph: Graph) -> None:
        self.names = names_of(graph)
        self.numbers = value_numbers(graph)
        self.texts = node_texts(graph)
        self.records = {record.push: record for record in records(graph)}
        files = Counter(node.source.file for node in graph.walk() if node.source)
        self.file = max(files, key=files.__getitem__, default="")  # lines of others are not shown

    def drawing(self, graph: Graph, title: str, roles: Sequence[str]) -> Drawing:
        """A graph or region.

        Args:
            graph: what to draw.
            title: which region it is.
            roles: what each of its results is for.
        """
        return _Assembly(self, graph).drawing(title, roles)

    def name(self, value: Value) -> str:
        """What the user calls it, or its number in the text."""
        name = self.names.get(value)
        return letters.cut(name, _NAME) if name else f"%{self.numbers.get(value, '?')}"

    def details(self, node: Node) -> list[str]:
        """Its attributes, as the text has them."""
        if not node.attrs or node.op.name in _TOLD_BY_TYPES or node.op in _TAPE_OPS:
            return []
        _, _, attrs = self.texts[node].partition(") {")
        return [letters.cut(attrs.removesuffix("}"), _LETTERS)]

    def line(self, node: Node) -> str:
        """The number of the user's line, in the file that most nodes are from."""
        return f":{node.source.line}" if node.source and node.source.file == self.file else ""

    def results(self, values: Sequence[Value]) -> list[str]:
        """What results are, told by their names or numbers."""
        if len(values) == 1 and values[0] not in self.names:
            return ["result"]
        return [f"result {self.names.get(v, k)}" for k, v in enumerate(values)]

    def label(self, value: Value) -> str:
        """The name, if it has one, and the type."""
        name = self.names.get(value)
        return f"{letters.cut(name, _NAME)}: {value.type}" if name else str(value.type)


class _Assembly:
    """The drawing of one graph as it is put together."""

    def __init__(self, sketcher: _Sketcher, graph: Graph) -> None:
        self.sketcher, self.graph = sketcher, graph
        self.boxes: list[Box] = []
        self.lines: list[Line] = []
        self.tape: set[int] = set()
        self.origins: dict[Value, tuple[int, int, int]] = {}  # box, port, key
        self.read = {operand for node in graph.nodes for operand in node.operands}
        self.used = {*self.read, *graph.results}

    def drawing(self, title: str, roles: Sequence[str]) -> Drawing:
        for param in self.graph.params:
            if param in self.read:
                self._param(param)
        for node in self.graph.nodes:
            if not is_number(node):
                self._node(node)
        notes = []
        for value, role in zip(self.graph.results, roles, strict=True):
            if value in self.origins:
                self._result(value, role)
            else:
                notes.append(self._plain_result(value, role))
        text = f"hands on {', '.join(dict.fromkeys(notes))}" if notes else ""
        return Drawing(title, self.boxes, self.lines, _wrapped(text), self.tape)

    def _param(self, param: Value) -> None:
        label = self.sketcher.name(param) + ": " + str(param.type)
        width = letters.width(label, letters.SMALL) + GAP
        self._add(Box("param", label, outs=[Port(width / 2)], width=width), [param])

    def _result(self, value: Value, role: str) -> None:
        width = letters.width(role, letters.SMALL) + GAP
        box = Box("result", role, ins=[Port(width / 2)], width=width, height=DETAIL + 5)
        self.boxes.append(box)
        self._connect(value, 0)

    def _plain_result(self, value: Value, role: str) -> str:
        """A result that is a param or a number."""
        if value.node is not None:
            return f"{role} = {number_text(value)}"
        return self.sketcher.name(value)

    def _node(self, node: Node) -> None:
        box = self._region_box(node) if node.regions else self._plain_box(node)
        shown = [result for result in node.results if result in self.used]
        self._add(box, shown)
        if node.regions:
            given = [v for v in dict.fromkeys(node.operands) if v in self.origins]
        else:
            given = [v for v in node.operands if v in self.origins]
        for port, value in enumerate(given):
            self._connect(value, port)

    def _add(self, box: Box, values: Sequence[Value]) -> None:
        if not box.height:
            box.height = box.head if box.kind != "param" else DETAIL + 5
        number = len(self.boxes)
        self.boxes.append(box)
        for port, value in enumerate(values):
            key = len(self.origins)
            self.origins[value] = (number, port, key)
            if isinstance(value.type, ListType):
                self.tape.add(key)

    def _connect(self, value: Value, port: int) -> None:
        """A line to a port of the newest box. Ports are told by number until they have a place."""
        start, start_port, key = self.origins[value]
        self.lines.append(Line(start, start_port, len(self.boxes) - 1, port, key))

    def _plain_box(self, node: Node) -> Box:
        title = node.op.name + _numbers_among(node)
        details = self.sketcher.details(node)
        is_tape = node.op in _TAPE_OPS
        record = self.sketcher.records.get(node)
        notes = [f"keeps {record.size} a trip"] if record else []
        line = self.sketcher.line(node)
        labels = [self.sketcher.label(v) for v in node.results if v in self.used]
        below = sum(letters.width(label, letters.SMALL) + GAP / 2 for label in labels)
        first = letters.width(title) + letters.width(line, letters.SMALL) + 2 * GAP
        rest = [letters.width(text, letters.SMALL) + GAP for text in (*details, *notes)]
        width = max(first, below, *rest, 0.0)
        given = [v for v in node.operands if v in self.origins]
        ins = [Port(width * (k + 1) / (len(given) + 1)) for k in range(len(given))]
        kind = "tape" if is_tape else "node"
        outs = _spread_evenly(labels, width)
        return Box(kind, title, details, notes, node, ins, outs, line=line, width=width)

    def _region_box(self, node: Node) -> Box:
        name, numbers = self.sketcher.name, []
        ports: dict[Value, list[str]] = {}
        for value, label in zip(node.operands, self._port_names(node), strict=True):
            if value in self.origins:
                ports.setdefault(value, []).append(label)
            else:
                numbers.append(f"{label} = {number_text(value)}")
        ins = [Port(0.0, _several(labels)) for labels in ports.values()]
        outs = [Port(0.0, self.sketcher.label(v)) for v in node.results if v in self.used]
        kept = [r for r in self.sketcher.records.values() if r.loop is node]
        notes = [
            f"keeps {name(r.value) if r.value in self.sketcher.names else r.name} "
            f"{r.push.operands[1].type}, {r.size} a trip"
            for r in kept
        ]
        details = _wrapped(f"from {', '.join(dict.fromkeys(numbers))}" if numbers else "")
        title = node.op.name if node.op is not while_ else "while"
        place = f" {node.source.short}" if node.source else ""
        text = [letters.width(t, letters.SMALL) + 2 * GAP for t in (*details, *notes)]
        rows = [
            sum(letters.width(p.label, letters.SMALL) + GAP for p in row) for row in (ins, outs)
        ]
        width = max(letters.width(title + place) + 3 * GAP, *rows, *text, 0.0)
        inner = [
            self.sketcher.drawing(region, title, roles)
            for region, title, roles in zip(
                node.regions, _region_titles(node), self._roles(node), strict=True
            )
        ]
        kind = {"while": "while", "if": "if"}.get(node.op.name, "call")
        return Box(kind, title + place, details, notes, node, ins, outs, inner, width=width)

    def _port_names(self, node: Node) -> list[str]:
        """What each operand is for."""
        name = self.sketcher.name
        if node.op is while_:
            w = WhileParts.of(node)
            return [name(value) for value in w.before.params]
        if node.op is if_:
            parts = IfParts.of(node)
            return ["which", *(name(value) for value in parts.operands)]
        return [name(value) for value in node.operands]

    def _roles(self, node: Node) -> Iterator[list[str]]:
        """What the results of each region are for."""
        if node.op is not while_:
            for region in node.regions:
                outer = node.results if len(region.results) == len(node.results) else ()
                yield self.sketcher.results(outer or region.results)
            return
        w, name = WhileParts.of(node), self.sketcher.name
        yield ["goes on if", *(f"hands on {name(v)}" for v in w.forwarded)]
        yield [f"next {name(v)}" for v in w.before_carry]


def is_number(node: Node) -> bool:
    """Whether a node is a number, which is shown where it is used."""
    return node.op is constant and node.attrs["value"].ndim == 0


def number_text(value: Value) -> str:
    """A number as Python writes it."""
    assert value.node is not None
    return letters.cut(repr(value.node.attrs["value"].item()), _NAME)


def _numbers_among(node: Node) -> str:
    """The operands, if some are numbers: `(·, 0.5)`."""
    texts = [
        number_text(v) if v.node is not None and is_number(v.node) else "·" for v in node.operands
    ]
    return f"({', '.join(texts)})" if any(text != "·" for text in texts) else ""


def _several(labels: Sequence[str]) -> str:
    """The names of one value, which may be many operands."""
    names = list(dict.fromkeys(labels))
    text = letters.cut(", ".join(names[:2]), _NAME)
    return text if len(labels) == 1 or len(labels) == len(names) <= 2 else f"{text} ×{len(labels)}"


def _region_titles(node: Node) -> list[str]:
    titles = region_names(node)
    if node.op is if_ and len(titles) == 2:
        return [f"{titles[0]}: false", f"{titles[1]}: true"]
    if node.op is while_:
        return ["before: whether to go on", "after: a trip"]
    return titles


def _spread_evenly(labels: Sequence[str], width: float) -> list[Port]:
    taken = [letters.width(label, letters.SMALL) + GAP / 2 for label in labels]
    spare = (width - sum(taken)) / max(1, len(labels))
    ports, left = [], 0.0
    for label, mine in zip(labels, taken, strict=True):
        ports.append(Port(left + (mine + spare) / 2, label))
        left += mine + spare
    return ports


def _wrapped(text: str, most: int = 70) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + len(word) < most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
