"""The words of a drawing: what is written in boxes, at ports and below regions."""

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

_DETAIL, _NAME, _LINE = 30, 24, 70  # letters, at most
# What these do is told by the types of their results.
_TOLD_BY_TYPES = {"broadcast_to", "cast", "reshape"}
_TAPE_OPS = (lists.list_push, lists.list_get, lists.list_pop, lists.list_new)


class Words:
    """What is written about the nodes and values of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.names = names_of(graph)
        self.numbers = value_numbers(graph)
        self.texts = node_texts(graph)
        self.outermost = frozenset(graph.nodes)
        self.records = {record.push: record for record in records(graph)}
        files = Counter(node.source.file for node in graph.walk() if node.source)
        self.file = max(files, key=files.__getitem__, default="")  # lines of others are not shown

    def name(self, value: Value) -> str:
        """What the user calls it, or its number in the text."""
        name = self.names.get(value)
        return letters.cut(name, _NAME) if name else f"%{self.numbers.get(value, '?')}"

    def label(self, value: Value) -> str:
        """The name, if it has one, and the type."""
        return f"{self.name(value)}: {value.type}" if value in self.names else str(value.type)

    def given(self, value: Value) -> str:
        """A number, or the name of what has no box in this region."""
        is_shown = value.node is not None and is_number(value.node)
        return number_text(value) if is_shown else self.name(value)

    def title(self, node: Node) -> str:
        """The operation, with the operands that are numbers: `mul(0.5, ·)`; a loop's place."""
        if node.regions:
            return f"{node.op.name} {node.source.short}" if node.source else node.op.name
        texts = [
            number_text(v) if v.node is not None and is_number(v.node) else "·"
            for v in node.operands
        ]
        has_numbers = any(text != "·" for text in texts)
        return f"{node.op.name}({', '.join(texts)})" if has_numbers else node.op.name

    def line(self, node: Node) -> str:
        """The number of the user's line, in the file that most nodes are from."""
        is_here = node.source is not None and node.source.file == self.file
        return f":{node.source.line}" if node.source is not None and is_here else ""

    def details(self, node: Node) -> list[str]:
        """The attributes, as the text has them; and what was done with the node."""
        done = self.done(node)
        if not node.attrs or node.op.name in _TOLD_BY_TYPES or is_tape(node):
            return done
        _, _, attrs = self.texts[node].partition(") {")
        return [letters.cut(attrs.removesuffix("}"), _DETAIL), *done]

    def done(self, node: Node) -> list[str]:
        """What a transform did with it: nothing is computed twice outside of loops and calls."""
        remark = node.remark
        if remark is None or is_tape(node) or node.op.name in _TOLD_BY_TYPES:
            return []
        if remark.loop is not None:
            return ["moved out of the loop"]
        return ["computed again"] if remark.is_rematerialized and node not in self.outermost else []

    def kept(self, node: Node) -> list[str]:
        """What a loop keeps of each trip, or a node that does it."""
        if node in self.records:
            return [f"keeps {self.records[node].size} a trip"]
        return [
            f"keeps {self.name(record.value) if record.value in self.names else record.name} "
            f"{record.push.operands[1].type}, {record.size} a trip"
            for record in self.records.values()
            if record.loop is node
        ]

    def operands(self, node: Node) -> list[str]:
        """What each operand of a node with regions is for."""
        if node.op is while_:
            return [self.name(value) for value in WhileParts.of(node).before.params]
        if node.op is if_:
            return ["which", *(self.name(value) for value in IfParts.of(node).operands)]
        return [self.name(value) for value in node.operands]

    def results(self, values: Sequence[Value]) -> list[str]:
        """What results are, told by their names or numbers."""
        if len(values) == 1 and values[0] not in self.names:
            return ["result"]
        return [f"result {self.names.get(v, k)}" for k, v in enumerate(values)]

    def region_results(self, node: Node) -> Iterator[list[str]]:
        """What the results of each region are for."""
        if node.op is while_:
            w = WhileParts.of(node)
            yield ["goes on if", *(f"hands on {self.name(v)}" for v in w.forwarded)]
            yield [f"next {self.name(v)}" for v in w.before_carry]
            return
        for region in node.regions:
            outer = node.results if len(region.results) == len(node.results) else ()
            yield self.results(outer or region.results)


def region_titles(node: Node) -> list[str]:
    """What each region is called."""
    titles = region_names(node)
    if node.op is if_ and len(titles) == 2:
        return [f"{titles[0]}: false", f"{titles[1]}: true"]
    if node.op is while_:
        return [f"{titles[0]}: whether to go on", f"{titles[1]}: a trip"]
    return titles


def is_tape(node: Node) -> bool:
    """Whether a node makes, fills or reads a list."""
    return node.op in _TAPE_OPS


def is_number(node: Node) -> bool:
    """Whether a node is a number, which is shown where it is used."""
    return node.op is constant and node.attrs["value"].ndim == 0


def number_text(value: Value) -> str:
    """A number as Python writes it."""
    assert value.node is not None
    return letters.cut(repr(value.node.attrs["value"].item()), _NAME)


def several(labels: Sequence[str]) -> str:
    """The names of one value that is given more than once."""
    names = list(dict.fromkeys(labels))
    text = letters.cut(", ".join(names[:2]), _NAME)
    return text if len(labels) == len(names) <= 2 else f"{text} ×{len(labels)}"


def in_lines(head: str, texts: Sequence[str]) -> list[str]:
    """A list of texts, each once, in lines that are not too long; none where there are none."""
    lines: list[str] = []
    for word in f"{head} {', '.join(dict.fromkeys(texts))}".split() if texts else ():
        if lines and len(lines[-1]) + len(word) < _LINE:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
