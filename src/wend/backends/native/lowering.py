"""Writes a graph as LLVM IR: the state that emitters share, and the walk over regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wend.backends.native.arenas import Arenas
from wend.backends.native.ownership import Ownership
from wend.backends.native.places import Places
from wend.backends.native.slots import Slots, UnknownTypeError, fit, refuse
from wend.backends.native.uses import is_new_list
from wend.backends.native.writer import Writer
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import MaybeType, Type
from wend.ops import elementwise

# An emitter is given the slots of the operands, and returns those of each result.
Emit: TypeAlias = Callable[["Lowering", Node, Sequence[Slots]], Sequence[Slots]]


@dataclass(slots=True)
class Lowering:
    """A function being written.

    Attributes:
        emitters: what writes each operation.
        w: where instructions go.
        places: which lists share an arena.
        ownership: which lists may be changed in place.
        values: the slots of the values written so far.
        math: names of inlined functions that are called (`sin`).
        helpers: names of the small functions of `arithmetic.py` that are called.
        libm: names of functions of the C library that are called, with their number of arguments.
        waves: values of which both sine and cosine are taken, in one region.
    """

    emitters: Mapping[Op, Emit]
    places: Places
    ownership: Ownership
    w: Writer = field(default_factory=Writer)
    values: dict[Value, Slots] = field(default_factory=dict)
    math: set[str] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)
    libm: dict[str, int] = field(default_factory=dict)
    waves: dict[Value, tuple[str, str] | None] = field(default_factory=dict)
    arenas: Arenas = field(init=False)

    def __post_init__(self) -> None:
        self.arenas = Arenas(self.w, self.places.arenas)

    def graph(self, graph: Graph, given: Sequence[Slots]) -> list[Slots]:
        """Write the nodes of a graph or region; return the slots of its results."""
        self.values.update(zip(graph.params, given, strict=True))
        self._find_waves(graph)
        for node in graph.nodes:
            self.node(node)
        return [self.slots(graph, k, value) for k, value in enumerate(graph.results)]

    def node(self, node: Node) -> None:
        """Write one node."""
        emit = self.emitters.get(node.op)
        if emit is None:
            raise refuse(node, "it has no native code for this operation")
        operands = [self.slots(node, k, value) for k, value in enumerate(node.operands)]
        self.values.update(zip(node.results, emit(self, node, operands), strict=True))

    def slots(self, owner: Node | Graph, index: int, value: Value) -> Slots:
        """The slots of an operand of a node or of a result of a graph."""
        if is_new_list(value):
            return self.arenas.new_list(self.places.used(owner, index))
        return self.values[value]

    def fit(self, node: Node, slots: Slots, found: Type, expected: Type) -> Slots:
        """The slots of a value where a type is declared that may be a maybe of its own."""
        try:
            return fit(slots, found, expected)
        except UnknownTypeError as error:
            raise refuse(node, f"it gives {error}") from None

    def fit_all(
        self, node: Node, found: Sequence[Slots], values: Sequence[Value], params: Sequence[Value]
    ) -> list[Slots]:
        """The slots of values as those of the params that they are given to."""
        return [
            self.fit(node, slots, value.type, param.type)
            for slots, value, param in zip(found, values, params, strict=True)
        ]

    def call(self, name: str, *operands: str) -> str:
        """Call an inlined function of reals."""
        self.math.add(name)
        arguments = ", ".join(f"double {operand}" for operand in operands)
        return self.w.define(f"call double @wend.{name}({arguments})")

    def call_libm(self, name: str, *operands: str) -> str:
        """Call a function of the C library. LLVM is not to turn it into a call of another."""
        self.libm[name] = len(operands)
        arguments = ", ".join(f"double {operand}" for operand in operands)
        return self.w.define(f"call double @{name}({arguments}) nobuiltin")

    def call_helper(self, name: str, type: str, *operands: str) -> str:
        """Call a function of `arithmetic.py`, named without its `wend.`."""
        self.helpers.add(name)
        return self.w.define(f"call {type} @wend.{name}({', '.join(operands)})")

    def _find_waves(self, graph: Graph) -> None:
        found = [
            {node.operands[0] for node in graph.nodes if node.op is op}
            for op in (elementwise.sin, elementwise.cos)
        ]
        self.waves.update(dict.fromkeys(found[0] & found[1]))


def is_maybe(value: Value) -> bool:
    """Whether a value may be absent at run time."""
    return isinstance(value.type, MaybeType)
