"""The texts of a drawing: in boxes, at ports and below regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import node_texts, region_names, value_numbers
from wend.ops import lists
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.ops.creating import constant
from wend.ops.records import records
from wend.pictures import letters
from wend.pictures.names import names_of

_MAX_DETAIL_CHARS, _MAX_NAME_CHARS, _MAX_LINE_CHARS = 30, 24, 70
# Ops whose result types already show what they do.
_OPS_SHOWN_BY_TYPE = {"broadcast_to", "cast", "reshape"}
_TAPE_OPS = (lists.list_push, lists.list_get, lists.list_pop, lists.list_new)


class Words:
    """The texts for the nodes and values of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.names = names_of(graph)
        self.numbers = value_numbers(graph)
        self.texts = node_texts(graph)
        self.outermost = frozenset(graph.nodes)
        self.records = {record.push: record for record in records(graph)}
        files = Counter(node.source.file for node in graph.walk() if node.source)
        # Line numbers are shown only for the file of most nodes.
        self.file = max(files, key=files.__getitem__, default="")

    def name(self, value: Value) -> str:
        """Return the user's name of a value, or its number in the graph's text."""
        name = self.names.get(value)
        return letters.cut(name, _MAX_NAME_CHARS) if name else f"%{self.numbers.get(value, '?')}"

    def label(self, value: Value) -> str:
        """Return the name of a value, if it has one, and its type."""
        return f"{self.name(value)}: {value.type}" if value in self.names else str(value.type)

    def operand_text(self, value: Value) -> str:
        """Return a number, or the name of an operand without a box in this region."""
        is_shown = value.node is not None and is_number(value.node)
        return number_text(value) if is_shown else self.name(value)

    def title(self, node: Node) -> str:
        """Return the operation with its constant operands, as in `mul(0.5, ·)`.

        Of a node with regions, return the operation and its source location.
        """
        if node.regions:
            return f"{node.op.name} {node.source.short}" if node.source else node.op.name
        operand_texts = [
            number_text(v) if v.node is not None and is_number(v.node) else "·"
            for v in node.operands
        ]
        has_numbers = any(text != "·" for text in operand_texts)
        return f"{node.op.name}({', '.join(operand_texts)})" if has_numbers else node.op.name

    def line(self, node: Node) -> str:
        """Return the number of the user's line, if it is in the file of most nodes."""
        is_in_main_file = node.source is not None and node.source.file == self.file
        return f":{node.source.line}" if node.source is not None and is_in_main_file else ""

    def details(self, node: Node) -> list[str]:
        """Return the attributes as in the graph's text, and the remarks."""
        remarks = self.remarks(node)
        if not node.attrs or node.op.name in _OPS_SHOWN_BY_TYPE or is_tape(node):
            return remarks
        _, _, attrs = self.texts[node].partition(") {")
        return [letters.cut(attrs.removesuffix("}"), _MAX_DETAIL_CHARS), *remarks]

    def remarks(self, node: Node) -> list[str]:
        """Return the effect of a transform on a node.

        Rematerialization is mentioned inside loops and calls only; elsewhere nothing is computed
        twice.
        """
        remark = node.remark
        if remark is None or is_tape(node) or node.op.name in _OPS_SHOWN_BY_TYPE:
            return []
        if remark.loop is not None:
            return ["moved out of the loop"]
        return ["computed again"] if remark.is_rematerialized and node not in self.outermost else []

    def tape_notes(self, node: Node) -> list[str]:
        """Return what a loop, or a push in it, records per trip."""
        if node in self.records:
            return [f"keeps {self.records[node].size} a trip"]
        return [
            f"keeps {self.name(record.value) if record.value in self.names else record.name} "
            f"{record.push.operands[1].type}, {record.size} a trip"
            for record in self.records.values()
            if record.loop is node
        ]

    def operands(self, node: Node) -> list[str]:
        """Return the role of each operand of a node with regions."""
        if node.op is while_:
            return [self.name(value) for value in WhileParts.of(node).before.params]
        if node.op is if_:
            return ["which", *(self.name(value) for value in IfParts.of(node).operands)]
        return [self.name(value) for value in node.operands]

    def results(self, values: Sequence[Value]) -> list[str]:
        """Return the roles of results, by name or number."""
        if len(values) == 1 and values[0] not in self.names:
            return ["result"]
        return [f"result {self.names.get(v, k)}" for k, v in enumerate(values)]

    def region_results(self, node: Node) -> Iterator[list[str]]:
        """Yield the roles of the results of each region."""
        if node.op is while_:
            w = WhileParts.of(node)
            yield ["continue if", *(f"forwards {self.name(v)}" for v in w.forwarded)]
            yield [f"next {self.name(v)}" for v in w.before_carry]
            return
        for region in node.regions:
            outer = node.results if len(region.results) == len(node.results) else ()
            yield self.results(outer or region.results)


def region_titles(node: Node) -> list[str]:
    """Return the title of each region."""
    titles = region_names(node)
    if node.op is if_ and len(titles) == 2:
        return [f"{titles[0]}: false", f"{titles[1]}: true"]
    if node.op is while_:
        return [f"{titles[0]}: whether to go on", f"{titles[1]}: a trip"]
    return titles


def is_tape(node: Node) -> bool:
    """Return whether a node makes, fills or reads a list."""
    return node.op in _TAPE_OPS


def is_number(node: Node) -> bool:
    """Return whether a node is a scalar constant, which is shown where it is used."""
    return node.op is constant and node.attrs["value"].ndim == 0


def number_text(value: Value) -> str:
    """Return a number as Python writes it."""
    assert value.node is not None
    return letters.cut(repr(value.node.attrs["value"].item()), _MAX_NAME_CHARS)


def merged_labels(labels: Sequence[str]) -> str:
    """Return the label of a value that is passed more than once."""
    names = list(dict.fromkeys(labels))
    text = letters.cut(", ".join(names[:2]), _MAX_NAME_CHARS)
    return text if len(labels) == len(names) <= 2 else f"{text} ×{len(labels)}"


def wrapped(head: str, texts: Sequence[str]) -> list[str]:
    """Return distinct texts after a heading, wrapped into lines; empty if there are no texts."""
    lines: list[str] = []
    for word in f"{head} {', '.join(dict.fromkeys(texts))}".split() if texts else ():
        if lines and len(lines[-1]) + len(word) < _MAX_LINE_CHARS:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
