"""Construction of graphs, node by node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wend.base.errors import WendError
from wend.base.source import Source, at, user_source
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import Symbol, Type, substitute, symbols

_numbers = itertools.count()


def new_symbol() -> Symbol:
    """A dimension symbol that no other graph uses."""
    return Symbol(f"d{next(_numbers)}")


# (op, operands, attrs, result types of the shape rule) -> the types with fresh symbols named
NameSizes: TypeAlias = Callable[
    [Op, Sequence[Value], Mapping[str, Any], tuple[Type, ...]], tuple[Type, ...]
]


class Builder:
    """A graph under construction.

    `source` is the user's line that new nodes belong to; None: the line that is running now.
    `name_sizes` names the fresh symbols of a shape rule; None: each becomes a new symbol.
    """

    def __init__(self, name: str, name_sizes: NameSizes | None = None) -> None:
        self.name = name
        self._name_sizes = name_sizes or _name_fresh_symbols
        self.params: list[Value] = []
        self.nodes: list[Node] = []
        self.source: Source | None = None

    def param(self, type: Type, name: str | None = None) -> Value:
        """Add a param."""
        value = Value(type, name=name)
        self.params.append(value)
        return value

    def emit_node(
        self, op: Op, operands: Sequence[Value], regions: Sequence[Graph] = (), **attrs: Any
    ) -> Node:
        """Append a node; its result types follow from the operation's shape rule."""
        source = self.source or user_source()
        infer_attrs = {"regions": regions, **attrs} if op.regions else attrs
        try:
            types = as_tuple(op.infer(*[operand.type for operand in operands], **infer_attrs))
        except WendError as error:
            error.args = (f"{op.name}{at(source)}: {error}",)
            raise
        types = self._name_sizes(op, operands, attrs, types)
        node = Node(op, operands, attrs, regions, types, source)
        self.nodes.append(node)
        return node

    def emit(self, op: Op, *operands: Value, **attrs: Any) -> Value:
        """Append a node with one result, and return the result."""
        (result,) = self.emit_node(op, operands, **attrs).results
        return result

    def finish(self, results: Sequence[Value], captures: int = 0) -> Graph:
        """Return the graph; the last `captures` params are its captures."""
        params = tuple(self.params)
        first = len(params) - captures
        return Graph(self.name, params, tuple(self.nodes), tuple(results), params[first:])


def as_tuple(types: Any) -> tuple[Type, ...]:
    """Return the result of a shape rule as a tuple."""
    return types if isinstance(types, tuple) else (types,)


def _name_fresh_symbols(
    op: Op, operands: Sequence[Value], attrs: Mapping[str, Any], types: tuple[Type, ...]
) -> tuple[Type, ...]:
    """Replace the fresh symbols of a shape rule's result types by new symbols."""
    fresh_symbols = {symbol for type in types for symbol in symbols(type) if symbol.is_fresh}
    if not fresh_symbols:
        return types
    names = {symbol: new_symbol() for symbol in sorted(fresh_symbols, key=str)}
    return tuple(substitute(type, names) for type in types)
