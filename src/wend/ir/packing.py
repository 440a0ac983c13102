"""Graphs as bytes, for the next process: they are equal for equal graphs, and fast to read.

What text cannot hold a process cannot leave to another one: Python's objects. They are told by
where they stand among the objects of a graph that both processes have (`Names`).
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from wend.base.source import Source
from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.op import TABLE
from wend.ir.printer import INLINE_ELEMENTS
from wend.ir.types import (
    HOST,
    TOKEN,
    Dim,
    HostType,
    ListType,
    MaybeType,
    ResourceType,
    Symbol,
    TensorType,
    TokenType,
    Type,
)

# The last format of marshal in which bytes do not depend on which equal objects are one.
_FORMAT = 2
_PLAIN = frozenset({type(None), bool, int, float, complex, str})
_ATOMS = {TokenType: "token", HostType: "host"}
_WRAPPERS = {ListType: "list", MaybeType: "maybe", ResourceType: "ref"}
_KINDS: dict[str, Any] = {name: kind for kind, name in _WRAPPERS.items()}
_NO_ATTRS: Mapping[str, Any] = MappingProxyType({})

Packed: TypeAlias = Any  # tuples of what marshal knows


class Names:
    """What bytes name by number: sizes that are not known, and objects.

    Attributes:
        symbols: the sizes, in the order in which they were met.
        objects: large arrays, and whatever else only Python knows.
    """

    def __init__(self, symbols: Sequence[Symbol] = (), objects: Sequence[Any] = ()) -> None:
        self.symbols = {symbol: k for k, symbol in enumerate(symbols)}
        self.objects = list(objects)
        self._numbers = {id(x): k for k, x in enumerate(objects)}

    def copy(self) -> Names:
        """Names to go on from these."""
        return Names([*self.symbols], self.objects)

    def symbol(self, symbol: Symbol) -> int:
        """The number of a size; a new one if it has none."""
        return self.symbols.setdefault(symbol, len(self.symbols))

    def object(self, x: Any) -> int:
        """The number of an object; a new one if it has none."""
        if id(x) not in self._numbers:
            self._numbers[id(x)] = len(self.objects)
            self.objects.append(x)
        return self._numbers[id(x)]

    def arrays(self) -> list[np.ndarray] | None:
        """The objects, if all of them are arrays of numbers; else None."""
        are_arrays = all(type(x) is np.ndarray and not x.dtype.hasobject for x in self.objects)
        return self.objects if are_arrays else None


def pack(graphs: Sequence[Graph], names: Names) -> bytes:
    """Graphs as bytes, with the user's lines; `names` learns what they name by number."""
    packer = _Packer(names)
    numbers = [packer.graph(graph) for graph in graphs]
    whole = (
        tuple(packer.ops),
        tuple(packer.types),
        tuple((source.file, source.line, source.function) for source in packer.sources),
        tuple(packer.attrs),
        tuple(packer.graphs),
        tuple(numbers),
        len(names.symbols),
    )
    return marshal.dumps(whole, _FORMAT)


def unpack(data: bytes, names: Names) -> list[Graph]:
    """The graphs that were packed, anew; sizes that `names` does not know get names of their own.

    Args:
        data: what `pack` gave.
        names: with the objects that it knew in the end.
    """
    ops, types, sources, attrs, graphs, numbers, count = marshal.loads(data)
    symbols = [*names.symbols]
    symbols += [new_symbol() for _ in range(count - len(symbols))]
    return _Unpacker(symbols, names.objects, ops, types, sources, attrs).graphs(graphs, numbers)


class _Packer:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.ops: dict[str, int] = {}
        self.types: list[Packed] = []
        self.sources: dict[Source, int] = {}
        self.attrs: list[Packed] = []
        self.graphs: list[Packed] = []
        self._type_numbers: dict[Type, int] = {}
        self._attr_numbers: dict[int, tuple[int, Any]] = {}
        self._graph_numbers: dict[Graph, int] = {}

    def graph(self, graph: Graph) -> int:
        """The number of a graph; graphs in it come before it."""
        known = self._graph_numbers.get(graph)
        if known is not None:
            return known
        numbers: dict[Value, int] = {}
        params = tuple([(self.type(v.type), v.name) for v in graph.params])
        for param in graph.params:
            numbers[param] = len(numbers)
        nodes = []
        for node in graph.nodes:
            nodes.append(self.node(node, numbers))
            for result in node.results:
                numbers[result] = len(numbers)
        results = tuple([numbers[v] for v in graph.results])
        self.graphs.append((graph.name, params, tuple(nodes), results, len(graph.captures)))
        self._graph_numbers[graph] = len(self.graphs) - 1
        return len(self.graphs) - 1

    def node(self, node: Node, numbers: Mapping[Value, int]) -> Packed:
        remark = node.remark
        if TABLE.get(node.op.name) is not node.op:
            self.names.object(node.op)  # one that no other process has
        named = [v.name for v in node.results if v.name is not None]
        return (
            self.ops.setdefault(node.op.name, len(self.ops)),
            tuple([numbers[v] for v in node.operands]),
            self.attr_number(node.attrs) if node.attrs else -1,
            tuple([self.graph(region) for region in node.regions]),
            tuple([self.type(v.type) for v in node.results]),
            self.source(node.source),
            tuple([v.name for v in node.results]) if named else None,
            None if remark is None else (remark.is_rematerialized, self.source(remark.loop)),
        )

    def source(self, source: Source | None) -> int:
        """The number of a line; -1 where there is none."""
        return -1 if source is None else self.sources.setdefault(source, len(self.sources))

    def attr_number(self, attrs: Mapping[str, Any]) -> int:
        known = self._attr_numbers.get(id(attrs))
        if known is not None:
            return known[0]
        self.attrs.append(tuple([(key, self.attr(value)) for key, value in sorted(attrs.items())]))
        self._attr_numbers[id(attrs)] = len(self.attrs) - 1, attrs  # held: the id stays its own
        return len(self.attrs) - 1

    def attr(self, value: Any) -> Packed:
        """Plain values as they are, others as tuples that begin with what they are."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple:
            return ("tuple", *map(self.attr, value))
        if kind is Symbol:
            return "symbol", self.names.symbol(value)
        if isinstance(value, np.dtype) and not value.hasobject:
            return "dtype", value.str
        if kind in _ATOMS or kind in _WRAPPERS or kind is TensorType:
            return "type", self.type(value)
        if kind is np.ndarray and value.size <= INLINE_ELEMENTS and not value.dtype.hasobject:
            return "array", *written_array(value)
        return "object", self.names.object(value)

    def type(self, type: Type) -> int:
        known = self._type_numbers.get(type)
        if known is None:
            known = self._type_numbers[type] = len(self.types)
            self.types.append(self.packed_type(type))
        return known

    def packed_type(self, kind: Type) -> Packed:
        if isinstance(kind, TensorType):
            shape = kind.shape and tuple([self.dim(dim) for dim in kind.shape])
            return kind.dtype.str, shape
        if isinstance(kind, (ListType, MaybeType, ResourceType)):
            inner = kind.element if isinstance(kind, ListType) else kind.of
            return _WRAPPERS[type(kind)], self.packed_type(inner)
        return (_ATOMS[type(kind)],)

    def dim(self, dim: Dim) -> int:
        """A size; one that is not known as a negative number."""
        return -1 - self.names.symbol(dim) if isinstance(dim, Symbol) else dim


class _Unpacker:
    def __init__(
        self,
        symbols: Sequence[Symbol],
        objects: Sequence[Any],
        ops: Sequence[str],
        types: Sequence[Packed],
        sources: Sequence[Packed],
        attrs: Sequence[Packed],
    ) -> None:
        self.symbols, self.objects = symbols, objects
        self.ops = [TABLE[name] for name in ops]
        self.types = [self.type(packed) for packed in types]
        self.sources = [*(Source(*packed) for packed in sources), None]  # the last one is -1
        self.attrs = [*map(self.mapping, attrs), _NO_ATTRS]

    def graphs(self, graphs: Sequence[Packed], numbers: Sequence[int]) -> list[Graph]:
        made: list[Graph] = []
        for packed in graphs:
            made.append(self.graph(made, *packed))
        return [made[number] for number in numbers]

    def graph(
        self,
        made: Sequence[Graph],
        name: str,
        params: Packed,
        nodes: Packed,
        results: Packed,
        captures: int,
    ) -> Graph:
        types = self.types
        given = tuple([Value(types[type], name=called) for type, called in params])
        values = list(given)
        found = []
        for op, operands, attrs, regions, kinds, source, names, remark in nodes:
            node = Node(
                self.ops[op],
                [values[k] for k in operands],
                self.attrs[attrs],
                [made[k] for k in regions],
                [types[k] for k in kinds],
                self.sources[source],
            )
            if remark is not None:
                is_rematerialized, loop = remark
                node.remark = Remark(is_rematerialized, self.sources[loop])
            if names is not None:
                for result, called in zip(node.results, names, strict=True):
                    result.name = called
            values += node.results
            found.append(node)
        last = tuple([values[k] for k in results])
        return Graph(name, given, tuple(found), last, given[len(given) - captures :])

    def type(self, packed: Packed) -> Type:
        kind, *rest = packed
        if kind == "token":
            return TOKEN
        if kind == "host":
            return HOST
        if kind in _KINDS:
            wrapped: Type = _KINDS[kind](self.type(rest[0]))
            return wrapped
        (shape,) = rest
        return TensorType(np.dtype(kind), shape and tuple([self.dim(dim) for dim in shape]))

    def dim(self, dim: int) -> Dim:
        return dim if dim >= 0 else self.symbols[-1 - dim]

    def mapping(self, packed: Packed) -> Mapping[str, Any]:
        return MappingProxyType({key: self.attr(value) for key, value in packed})

    def attr(self, packed: Packed) -> Any:
        if type(packed) is not tuple:
            return packed
        kind, *rest = packed
        match kind:
            case "tuple":
                return tuple(map(self.attr, rest))
            case "symbol":
                return self.symbols[rest[0]]
            case "dtype":
                return np.dtype(rest[0])
            case "type":
                return self.types[rest[0]]
            case "array":
                return read_array(rest)
        return self.objects[rest[0]]


def written_array(array: np.ndarray) -> Packed:
    """An array of numbers as what marshal writes."""
    return array.dtype.str, array.shape, array.tobytes()


def read_array(written: Packed) -> np.ndarray:
    """The array, read-only as constants are."""
    dtype, shape, data = written
    array: np.ndarray = np.frombuffer(data, dtype).reshape(shape).copy()
    array.flags.writeable = False
    return array
