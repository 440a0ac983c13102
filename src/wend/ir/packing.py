"""Serialization of graphs for other processes: equal bytes for equal graphs, and fast to read.

Python objects cannot be serialized. They are referred to by their position among the objects of a
graph that both processes have (`Names`).
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
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

# The last marshal format whose bytes do not depend on the identity of equal objects.
_FORMAT = 2
_fields_of_remark = attrgetter(*(field.name for field in fields(Remark)))
_PLAIN = frozenset({type(None), bool, int, float, complex, str})
_ATOMS = {TokenType: "token", HostType: "host"}
_WRAPPERS = {ListType: "list", MaybeType: "maybe", ResourceType: "ref"}
_KINDS: dict[str, Any] = {name: kind for kind, name in _WRAPPERS.items()}
_NO_ATTRS: Mapping[str, Any] = MappingProxyType({})

Packed: TypeAlias = Any  # tuples of types that marshal supports


class Names:
    """The symbols and objects that packed graphs refer to by number.

    Attributes:
        symbols: the dimension symbols, in order of appearance.
        objects: large arrays, and other Python objects.
    """

    def __init__(self, symbols: Sequence[Symbol] = (), objects: Sequence[Any] = ()) -> None:
        self.symbols = {symbol: k for k, symbol in enumerate(symbols)}
        self.objects = list(objects)
        self._numbers = {id(x): k for k, x in enumerate(objects)}

    def copy(self) -> Names:
        """Return a copy that can be extended independently."""
        return Names([*self.symbols], self.objects)

    def symbol(self, symbol: Symbol) -> int:
        """Return the number of a symbol, a new one if it has none."""
        return self.symbols.setdefault(symbol, len(self.symbols))

    def object(self, x: Any) -> int:
        """Return the number of an object, a new one if it has none."""
        if id(x) not in self._numbers:
            self._numbers[id(x)] = len(self.objects)
            self.objects.append(x)
        return self._numbers[id(x)]

    def arrays(self) -> list[np.ndarray] | None:
        """Return the objects if all of them are arrays of numbers, else None."""
        are_arrays = all(type(x) is np.ndarray and not x.dtype.hasobject for x in self.objects)
        return self.objects if are_arrays else None


def pack(graphs: Sequence[Graph], names: Names) -> bytes:
    """Serialize graphs with their source lines; `names` is extended."""
    packer = _Packer(names)
    numbers = [packer.graph(graph) for graph in graphs]
    whole = (
        tuple(packer.ops),
        tuple(packer.types),
        tuple((s.file, s.line, s.function, s.scope) for s in packer.sources),
        tuple(packer.attrs),
        tuple(packer.graphs),
        tuple(numbers),
        len(names.symbols),
    )
    return marshal.dumps(whole, _FORMAT)


def unpack(data: bytes, names: Names) -> list[Graph]:
    """Return new graphs from their serialized form; symbols that `names` lacks are new ones.

    `names` has the objects that it had after packing.
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
        """Return the number of a graph; graphs in it come before it."""
        number = self._graph_numbers.get(graph)
        if number is not None:
            return number
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
            self.names.object(node.op)  # an operation that other processes lack
        named = [v.name for v in node.results if v.name is not None]
        return (
            self.ops.setdefault(node.op.name, len(self.ops)),
            tuple([numbers[v] for v in node.operands]),
            self.attr_number(node.attrs) if node.attrs else -1,
            tuple([self.graph(region) for region in node.regions]),
            tuple([self.type(v.type) for v in node.results]),
            self.source(node.source),
            tuple([v.name for v in node.results]) if named else None,
            None if remark is None else self.remark(remark),
        )

    def remark(self, remark: Remark) -> Packed:
        loop, *others = _fields_of_remark(remark)
        return self.source(loop), *others

    def source(self, source: Source | None) -> int:
        """Return the number of a line; -1 where there is none."""
        return -1 if source is None else self.sources.setdefault(source, len(self.sources))

    def attr_number(self, attrs: Mapping[str, Any]) -> int:
        entry = self._attr_numbers.get(id(attrs))
        if entry is not None:
            return entry[0]
        self.attrs.append(tuple([(key, self.attr(value)) for key, value in sorted(attrs.items())]))
        self._attr_numbers[id(attrs)] = len(self.attrs) - 1, attrs  # kept alive: the id is its key
        return len(self.attrs) - 1

    def attr(self, value: Any) -> Packed:
        """Return plain values unchanged, others as tuples that begin with their kind."""
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
            return "array", *pack_array(value)
        return "object", self.names.object(value)

    def type(self, type: Type) -> int:
        number = self._type_numbers.get(type)
        if number is None:
            number = self._type_numbers[type] = len(self.types)
            self.types.append(self.packed_type(type))
        return number

    def packed_type(self, kind: Type) -> Packed:
        if isinstance(kind, TensorType):
            return kind.dtype.str, kind.shape and tuple([self.dim(dim) for dim in kind.shape])
        if isinstance(kind, (ListType, MaybeType, ResourceType)):
            inner = kind.element if isinstance(kind, ListType) else kind.of
            return _WRAPPERS[type(kind)], self.packed_type(inner)
        return (_ATOMS[type(kind)],)

    def dim(self, dim: Dim) -> int:
        """Return a size; a symbol as a negative number."""
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
        unpacked: list[Graph] = []
        for packed in graphs:
            unpacked.append(self.graph(unpacked, *packed))
        return [unpacked[number] for number in numbers]

    def graph(
        self,
        earlier: Sequence[Graph],
        name: str,
        params: Packed,
        nodes: Packed,
        results: Packed,
        captures: int,
    ) -> Graph:
        types = self.types
        new_params = tuple([Value(types[type], name=value_name) for type, value_name in params])
        values = list(new_params)
        new_nodes = []
        for op, operands, attrs, regions, result_types, source, names, remark in nodes:
            node = Node(
                self.ops[op],
                [values[k] for k in operands],
                self.attrs[attrs],
                [earlier[k] for k in regions],
                [types[k] for k in result_types],
                self.sources[source],
            )
            if remark is not None:
                loop, *others = remark
                node.remark = Remark(self.sources[loop], *others)
            if names is not None:
                for result, value_name in zip(node.results, names, strict=True):
                    result.name = value_name
            values += node.results
            new_nodes.append(node)
        new_results = tuple([values[k] for k in results])
        return Graph(
            name,
            new_params,
            tuple(new_nodes),
            new_results,
            new_params[len(new_params) - captures :],
        )

    def type(self, packed: Packed) -> Type:
        kind, *content = packed
        if kind == "token":
            return TOKEN
        if kind == "host":
            return HOST
        if kind in _KINDS:
            wrapped: Type = _KINDS[kind](self.type(content[0]))
            return wrapped
        (shape,) = content
        return TensorType(np.dtype(kind), shape and tuple([self.dim(dim) for dim in shape]))

    def dim(self, dim: int) -> Dim:
        return dim if dim >= 0 else self.symbols[-1 - dim]

    def mapping(self, packed: Packed) -> Mapping[str, Any]:
        return MappingProxyType({key: self.attr(value) for key, value in packed})

    def attr(self, packed: Packed) -> Any:
        if type(packed) is not tuple:
            return packed
        kind, *content = packed
        match kind:
            case "tuple":
                return tuple(map(self.attr, content))
            case "symbol":
                return self.symbols[content[0]]
            case "dtype":
                return np.dtype(content[0])
            case "type":
                return self.types[content[0]]
            case "array":
                return unpack_array(content)
        return self.objects[content[0]]


def pack_array(array: np.ndarray) -> Packed:
    """Return an array of numbers as a tuple that marshal supports."""
    return array.dtype.str, array.shape, array.tobytes()


def unpack_array(packed: Packed) -> np.ndarray:
    """Return the array, read-only as constants are."""
    dtype, shape, data = packed
    array: np.ndarray = np.frombuffer(data, dtype).reshape(shape).copy()
    array.flags.writeable = False
    return array
