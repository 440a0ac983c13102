"""Graph, Node and Value: an acyclic program in which every value is defined once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from wend.base.errors import TypeMismatchError
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source
from wend.ir.op import Effect, Op
from wend.ir.printer import to_text
from wend.ir.types import TensorType, Type


class Value:
    """A param of a graph, whose `node` is None, or a result of a node."""

    __slots__ = ("index", "name", "node", "type")

    def __init__(
        self, type: Type, node: Node | None = None, index: int = 0, name: str | None = None
    ) -> None:
        self.type = type
        self.node = node
        self.index = index
        self.name = name

    @property
    def tensor(self) -> TensorType:
        """The type, of a value that is a tensor."""
        if not isinstance(self.type, TensorType):
            raise TypeMismatchError(f"{self!r} is no tensor")
        return self.type

    def __repr__(self) -> str:
        origin = f"{self.node.op.name}.{self.index}" if self.node else "param"
        return f"<value {self.name or origin}: {self.type}>"


@dataclass(frozen=True, slots=True)
class Remark:
    """A note that a transform leaves on a node, for `explain`.

    Attributes:
        loop: the loop that it was moved out of.
        is_rematerialized: a backward pass recomputes it instead of reading a residual.
        is_for_all_trips: it computes for all trips of the loop that it left, or for a block.
        lanes: a loop that runs for so many elements of a `vmap` at a time; 1: for one.
        obstacle: why such a loop runs for one, where that is known.
        is_refilled: such lanes take the next elements while others go on.
        trips: how many trips the program has of a loop; nothing reads what the others compute.
        unread_bytes: the size of the rows that such a loop does not keep.
        chunk: so many elements of a `vmap` are computed by one thread at a time.
        threads: how many threads compute chunks at most, where the caller says.
        is_distributed: what its trips do by loops of their own is computed before, for all trips.
        unrolled: it stands for trips of `loop`, which is unrolled; how many those are.
    """

    loop: Source | None = None
    is_rematerialized: bool = False
    is_for_all_trips: bool = False
    lanes: int | None = None
    is_refilled: bool = False
    trips: int | None = None
    unread_bytes: int = 0
    chunk: int | None = None
    threads: int | None = None
    is_distributed: bool = False
    obstacle: str = ""
    unrolled: int | None = None


class Node:
    """One application of an operation to operands.

    Copies keep its remark and the names of its results; equality ignores both.
    """

    __slots__ = ("__weakref__", "attrs", "op", "operands", "regions", "remark", "results", "source")

    def __init__(
        self,
        op: Op,
        operands: Sequence[Value],
        attrs: Mapping[str, Any],
        regions: Sequence[Graph],
        result_types: Sequence[Type],
        source: Source | None,
    ) -> None:
        self.op = op
        self.operands = tuple(operands)
        is_frozen = type(attrs) is MappingProxyType  # of another node, and immutable
        self.attrs = attrs if is_frozen else MappingProxyType(dict(attrs))
        self.regions = tuple(regions)
        self.source = source
        self.remark: Remark | None = None
        self.results = tuple([Value(type, self, i) for i, type in enumerate(result_types)])

    @property
    def linear_operands(self) -> tuple[int, ...]:
        """The positions of the operands it is linear in; see `Op.linear_operands`."""
        linear = self.op.linear_operands
        return tuple(range(len(self.operands))) if linear is None else linear

    def __repr__(self) -> str:
        return f"<node {self.op.name}>"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Graph:
    """A program: params, nodes in program order, results. Also the region of a node.

    `captures` are the last of the params: those that stand for outer values which the function uses
    (arrays, values of an enclosing trace). Regions have none: theirs are operands (D8).
    """

    name: str
    params: tuple[Value, ...]
    nodes: tuple[Node, ...]
    results: tuple[Value, ...]
    captures: tuple[Value, ...] = ()

    @property
    def param_types(self) -> tuple[Type, ...]:
        return tuple(param.type for param in self.params)

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(result.type for result in self.results)

    def walk(self) -> Iterator[Node]:
        """Every node, those inside regions included, in program order."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()

    @property
    def ops(self) -> frozenset[Op]:
        """The operations of all nodes, at any depth; a pass asks whether it has anything to do."""
        ops = _ops.get(self)
        if ops is None:
            inner = (region.ops for node in self.nodes for region in node.regions)
            ops = _ops[self] = frozenset([node.op for node in self.nodes]).union(*inner)
        return ops

    @property
    def types(self) -> frozenset[Type]:
        """The types of all values, at any depth."""
        types = _types.get(self)
        if types is None:
            own = {value.type for value in self.params}
            own.update([value.type for node in self.nodes for value in node.results])
            inner = (region.types for node in self.nodes for region in node.regions)
            types = _types[self] = frozenset(own.union(*inner))
        return types

    def has_effects(self) -> bool:
        """Whether a run has effects that must not happen twice; a check may (D36)."""
        return bool(self.effects() - {Effect.CHECK})

    def effects(self) -> set[Effect]:
        """The kinds of effects of its nodes."""
        return {op.effect for op in self.ops} - {Effect.NONE}

    def count(self, op_name: str | None = None) -> int:
        """The number of nodes of an operation, or of all nodes, at any depth."""
        return sum(op_name in (None, node.op.name) for node in self.walk())

    def to_svg(self) -> str:
        """A picture of the graph, as the text of a self-contained SVG file.

        Loops, branches and calls are boxes around their regions. Lines are values, dashed ones
        lists; constants are drawn where they are used, and the residuals of a loop have a color of
        their own. A viewer shows the text of the node under the pointer.

        Example:
            >>> import wend
            >>> graph = wend.function(lambda x: x * x).get_concrete_function(1.0).graph
            >>> graph.to_svg()[:4]
            '<svg'
        """
        from wend.pictures.svg import to_svg  # imported only when a picture is drawn

        return to_svg(self)

    def _repr_html_(self) -> str:
        """The representation in notebooks: the picture, or the text of a very large graph."""
        from wend.pictures.svg import to_html

        return to_html(self)

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.nodes)} nodes>"


# What a graph is asked for again and again: graphs are immutable. Not in the graphs, for what a
# trace reaches must not change in it.
_ops: WeakKeyDictionary[Graph, frozenset[Op]] = WeakKeyDictionary()
_types: WeakKeyDictionary[Graph, frozenset[Type]] = WeakKeyDictionary()
