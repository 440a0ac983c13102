"""The printer of graphs. The parser reads its output back to an equal graph (D20).

Values and symbols are numbered in order of appearance, so the text ignores names. Arrays over 16
elements and Python callables become `@0`, `@1`, … : entries of a side table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.ir.dtypes import is_supported, short
from wend.ir.types import (
    HostType,
    ListType,
    MaybeType,
    ResourceType,
    Symbol,
    TensorType,
    TokenType,
    Type,
    substitute,
    symbols,
)

if TYPE_CHECKING:
    from wend.base.source import Source
    from wend.ir.graph import Graph, Node, Value
    from wend.ir.op import Op

INLINE_ELEMENTS = 16
TYPE_CLASSES = (TensorType, ListType, MaybeType, TokenType, HostType, ResourceType)


def to_text(
    graph: Graph,
    *,
    table: list[Any] | None = None,
    sources: bool | Callable[[Source], str] = False,
    named: Mapping[Graph, str] | None = None,
) -> str:
    """Print a graph.

    Args:
        graph: the graph to print.
        table: receives the objects that the text refers to as `@0`, `@1`, …
        sources: write the user's file and line behind each node, perhaps by a function.
        named: regions of which only a name is written; `parse` takes the regions by name.
    """
    printer = Printer([] if table is None else table, sources, named or {})
    printer.graph(graph, "graph " + _quoted_if_needed(graph.name), "")
    return "\n".join(printer.lines)


def value_numbers(graph: Graph) -> dict[Value, int]:
    """Return the numbers that the values of a graph have in its text."""
    printer = Printer([], False, {})
    printer.graph(graph, "graph", "")
    return printer.numbers


def node_texts(graph: Graph) -> dict[Node, str]:
    """Return the line of each node in a graph's text, those inside regions included."""
    printer = Printer([], False, {})
    printer.graph(graph, "graph", "")
    return printer.texts


class Printer:
    """The text of a graph under construction, with the numbers of its values and symbols."""

    def __init__(
        self,
        table: list[Any],
        sources: bool | Callable[[Source], str],
        named: Mapping[Graph, str],
    ) -> None:
        self.lines: list[str] = []
        self.table = table
        self.sources = sources
        self.named = named
        self.numbers: dict[Value, int] = {}
        self.texts: dict[Node, str] = {}
        self.next_number = itertools.count()
        self.symbols: dict[Symbol, Symbol] = {}

    def graph(self, graph: Graph, head: str, indent: str) -> None:
        params = ", ".join(self.typed(param) for param in graph.params)
        captures = f" captures {len(graph.captures)}" if graph.captures else ""
        self.lines.append(f"{indent}{head}({params}){captures} {{")
        inner = indent + "  "
        for node in graph.nodes:
            self.node(node, inner)
        self.lines.append(f"{inner}return {self.names(graph.results)}".rstrip())
        self.lines.append(f"{indent}}}")

    def node(self, node: Node, indent: str) -> None:
        operands = self.names(node.operands)
        attrs = ", ".join(f"{key}={self.attr(value)}" for key, value in sorted(node.attrs.items()))
        words = [f"{node.op.name}({operands})"]
        if attrs:
            words.append(f"{{{attrs}}}")
        if self.sources and node.source:
            write = self.sources if callable(self.sources) else str
            words.append(f"; {node.source.with_scope(write(node.source))}")
        results = ", ".join(self.typed(result) for result in node.results)
        self.lines.append(f"{indent}{results} = {' '.join(words)}".replace("  = ", " = "))
        self.texts[node] = self.lines[-1].strip()
        for name, region in zip(region_names(node), node.regions, strict=True):
            if region in self.named:
                self.lines.append(f"{indent}  {name} is {self.named[region]}")
            else:
                self.graph(region, name, indent + "  ")

    def typed(self, value: Value) -> str:
        # A counter, not `len(numbers)`: a graph that is called twice is printed twice.
        self.numbers[value] = next(self.next_number)
        return f"%{self.numbers[value]}: {self.type(value.type)}"

    def names(self, values: Iterable[Value]) -> str:
        # A value that is not defined (in an invalid graph) is printed as %?.
        return ", ".join(f"%{self.numbers.get(value, '?')}" for value in values)

    def type(self, type: Type) -> str:
        for symbol in symbols(type):
            self.symbol(symbol)
        return str(substitute(type, self.symbols))

    def symbol(self, symbol: Symbol) -> str:
        return self.symbols.setdefault(symbol, Symbol(f"n{len(self.symbols)}")).name

    def attr(self, value: Any) -> str:
        match value:
            case None | bool() | int() | str():
                return repr(value)
            case float():
                return _number(value)
            case complex():
                return f"complex({_number(value.real)}, {_number(value.imag)})"
            case Symbol():
                return self.symbol(value)
            case tuple():
                inner = ", ".join(map(self.attr, value))
                return f"({inner},)" if len(value) == 1 else f"({inner})"
            case np.dtype() if is_supported(value):
                return f":{short(value)}"
            case np.ndarray() if value.size <= INLINE_ELEMENTS and is_supported(value.dtype):
                numbers = " ".join(self.attr(number) for number in value.ravel().tolist())
                return f"{short(value.dtype)}[{','.join(map(str, value.shape))}]<{numbers}>"
        if isinstance(value, TYPE_CLASSES):
            return f":{self.type(value)}"
        return self.side(value)

    def side(self, value: Any) -> str:
        for index, entry in enumerate(self.table):
            if entry is value:
                return f"@{index}"
        self.table.append(value)
        return f"@{len(self.table) - 1}"


def region_names(node: Node) -> list[str]:
    """Return the labels of a node's regions: `before`, `after`, `branch0`, `branch1`, …"""
    return [region_name(node.op, index) for index in range(len(node.regions))]


def region_name(op: Op, index: int) -> str:
    """Return the label of a region; a last name with a star is numbered."""
    last = len(op.regions) - 1
    if index >= last and op.regions[last].endswith("*"):
        return f"{op.regions[last][:-1]}{index - last}"
    return op.regions[index]


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else str(value)


def _quoted_if_needed(name: str) -> str:
    """Quote a name that the parser would take for something else (`nan`, `<lambda>`)."""
    is_word = name.isidentifier() and name not in ("inf", "nan")
    return name if is_word else repr(name)
