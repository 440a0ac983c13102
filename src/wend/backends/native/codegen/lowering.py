"""Writes a graph as LLVM IR: the state that emitters share, and the walk over regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_ownership import Ownership
from wend.backends.native.analysis.list_uses import is_new_list
from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.codegen.arenas import Arenas
from wend.backends.native.codegen.arrays import Array, Arrays
from wend.backends.native.codegen.calls import Calls
from wend.backends.native.codegen.conversions import Conversions
from wend.backends.native.codegen.instrument import Instrumentation
from wend.backends.native.codegen.refcounts import References
from wend.backends.native.codegen.safepoints import Safepoints
from wend.backends.native.codegen.traps import Traps
from wend.backends.native.target.metadata import LoopMetadata
from wend.backends.native.target.sizes import SizeArithmetic
from wend.backends.native.target.value_layout import (
    Registers,
    UnknownTypeError,
    is_unranked,
    refuse,
)
from wend.backends.native.target.writer import Writer
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import MaybeType, Type
from wend.ops import elementwise, lists, maybe

# An emitter is given the slots of the operands, and returns those of each result; or, having
# written nothing, NotImplemented: then the node runs its NumPy kernel.
Emit: TypeAlias = Callable[["Lowering", Node, Sequence[Registers]], Any]

# Operations that move arrays as they are
_ANY_ARRAY = {lists.list_push, lists.list_pop, lists.list_get, lists.list_set, maybe.present}


@dataclass(eq=False, repr=False, slots=True)
class Lowering:
    """A function being written.

    Attributes:
        emitters: what writes each operation.
        host: what writes the call of a NumPy kernel.
        places: which lists share an arena.
        ownership: which lists may be changed in place.
        w: where instructions go.
        calls: which functions are called.
        traps: the ways out.
        safepoints: what counts the trips of loops.
        values: the slots of the values written so far.
        memory: who holds references to arrays.
        products: arrays that are not in memory, since they are but added to one: what writes that.
        kept: the memory that such an array is made of, to be released with it.
        metadata: what LLVM is told.
        uses: where the values of the region that is being written are used.
        early: nodes that were written before their region.
        sincos_pairs: values of which both sine and cosine are taken, in one region.
        constants: arrays that the code refers to.
        host_nodes: the nodes that Python may have to run, by number, and whether for results.
        slow_nodes: those of them that have no code.
        measures: what measures nodes, if that is wanted.
        threads: how many may run parts of one loop.
        parts: functions that are such parts: what they take, and their lines.
        trips: how many loops of the program there are around what is being written.
    """

    emitters: Mapping[Op, Emit]
    host: Emit
    places: ListClasses
    ownership: Ownership
    w: Writer = field(default_factory=Writer)
    calls: Calls = field(init=False)
    traps: Traps = field(init=False)
    safepoints: Safepoints = field(init=False)
    sizes: SizeArithmetic = field(init=False)
    arrays: Arrays = field(init=False)
    arenas: Arenas = field(init=False)
    memory: References = field(init=False)
    conversions: Conversions = field(init=False)
    values: dict[Value, Registers] = field(default_factory=dict)
    early: set[Node] = field(default_factory=set)
    sincos_pairs: dict[Value, tuple[str, str] | None] = field(default_factory=dict)
    products: dict[Value, Callable[[Array], None]] = field(default_factory=dict)
    kept: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    uses: LastUses | None = None
    metadata: LoopMetadata = field(default_factory=LoopMetadata)
    constants: list[Any] = field(default_factory=list)
    host_nodes: list[tuple[Node, bool]] = field(default_factory=list)
    slow_nodes: list[Node] = field(default_factory=list)
    measures: Instrumentation | None = None
    threads: int = 1
    parts: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    trips: int = 0

    def __post_init__(self) -> None:
        self.calls = Calls(self.w)
        self.traps = Traps(self.w)
        self.safepoints = Safepoints(self.w, self.traps)
        self.sizes = SizeArithmetic(self.w)
        self.arrays = Arrays(self.w, self.traps, self.sizes)
        self.arenas = Arenas(self.w, self.traps, self.arrays, self.places.arenas)
        self.memory = References(self.arrays)
        self.conversions = Conversions(self.w, self.traps, self.arrays)

    def graph(
        self, graph: Graph, given: Sequence[Registers], held: Sequence[bool] | None = None
    ) -> list[Registers]:
        """Write the nodes of a graph or region; return the slots of its results.

        Args:
            graph: what is written.
            given: the slots of its params.
            held: for each param whether a reference to its array is handed over with it.

        Returns:
            Slots, each with a reference of its own.
        """
        self.values.update(zip(graph.params, given, strict=True))
        self.find_sincos_pairs(graph)
        outer, self.uses = self.uses, LastUses(graph)
        uses = self.uses
        for k, param in enumerate(graph.params):
            if held is not None and held[k]:
                self.memory.hold(param)
                if uses.is_last(param, -1):
                    self.memory.drop(param, self.values[param])
        for position, node in enumerate(graph.nodes):
            self._node(node, position, uses)
        self.traps.node, self.uses = None, outer
        results = []
        for k, value in enumerate(graph.results):
            is_last = value not in graph.results[k + 1 :]
            results.append(self.memory.own(value, self.slots(graph, k, value), moves=is_last))
        return results

    def write_early(self, node: Node) -> None:
        """Write a node of scalars before its region, which leaves it out then."""
        self.early.add(node)
        operands = [self.slots(node, k, value) for k, value in enumerate(node.operands)]
        self.traps.node, self.traps.operands = node, operands
        found = self._emitter(node)(self, node, operands)
        self.values.update(zip(node.results, found, strict=True))

    def _node(self, node: Node, position: int, uses: LastUses) -> None:
        if node in self.early:
            return
        self.traps.node = node
        memory = self.memory
        memory.start(node, {v for v in node.operands if uses.is_taken_once(v, node, position)})
        operands = [self.slots(node, k, value) for k, value in enumerate(node.operands)]
        waits = any(value in self.kept for value in node.operands)
        self.traps.operands = None if waits else operands
        started = self.measures.start(node) if self.measures else None
        found = self._emitter(node)(self, node, operands)
        if found is NotImplemented:
            found = self.host(self, node, operands)
        if self.measures:
            self.measures.stop(started)
        memory.finish()
        for result, slots in zip(node.results, found, strict=True):
            self.values[result] = slots
            memory.add(result)
        for value in dict.fromkeys((*node.operands, *node.results)):
            if uses.is_last(value, position):
                memory.drop(value, self.values[value])
                for pointer in self.kept.pop(value, ()):
                    self.arrays.release(pointer)

    def _emitter(self, node: Node) -> Emit:
        """What writes a node: Python does what needs the rank of an array that is not known."""
        unranked = any(is_unranked(value.type) for value in (*node.operands, *node.results))
        if unranked and node.op.kernel is not None and node.op not in _ANY_ARRAY:
            return self.host
        return self.emitters.get(node.op, self.host)

    def slots(self, owner: Node | Graph, index: int, value: Value) -> Registers:
        """The slots of an operand of a node or of a result of a graph."""
        if is_new_list(value):
            return self.arenas.new_list(self.places.used(owner, index))
        return self.values[value]

    def owned(self, node: Node, index: int, slots: Registers | None = None) -> Registers:
        """An operand with a reference of its own: moved at its last use, else shared or copied."""
        value = node.operands[index]
        slots = slots or self.slots(node, index, value)
        return self.memory.own(value, slots, moves=self.may_move(value))

    def pooled(self, node: Node, index: int) -> Registers:
        """An operand in memory that has counts, while the node is written."""
        value = node.operands[index]
        return self.memory.pooled(value, self.slots(node, index, value))

    def may_move(self, value: Value) -> bool:
        """Whether the node that is being written may take over the reference to an operand."""
        return self.memory.may_move(value)

    def array(self, node: Node, index: int) -> Array:
        """An operand as an array."""
        value = node.operands[index]
        return self.arrays.of(value.tensor, self.values[value])

    def constant(self, array: np.ndarray) -> Array:
        """An array that the code refers to where it lies."""
        self.constants.append(array)
        dims = tuple(map(str, array.shape))
        return Array(f"@const{len(self.constants) - 1}", array.dtype, dims)

    def new_result(self, node: Node, dims: Sequence[str], index: int = 0) -> Array:
        """An array for a result of a node."""
        return self.arrays.new(node.results[index].tensor.dtype, dims)

    def give(self, node: Node, array: Array, index: int = 0) -> Registers:
        """The slots of a result that is an array."""
        type = node.results[index].tensor
        return self.conversions.tensor(array, type)

    def coerce(self, node: Node, slots: Registers, found: Type, expected: Type) -> Registers:
        """The slots of a value where a type is declared that knows more or less of it."""
        try:
            return self.conversions.coerce(slots, found, expected)
        except UnknownTypeError as error:
            raise refuse(node, f"it gives {error}") from None

    def coerce_all(
        self,
        node: Node,
        found: Sequence[Registers],
        values: Sequence[Value],
        params: Sequence[Value],
    ) -> list[Registers]:
        """The slots of values as those of the params that they are given to."""
        return [
            self.coerce(node, slots, value.type, param.type)
            for slots, value, param in zip(found, values, params, strict=True)
        ]

    def find_sincos_pairs(self, graph: Graph) -> None:
        """Look for values of which both sine and cosine are taken."""
        found = [
            {node.operands[0] for node in graph.nodes if node.op is op}
            for op in (elementwise.sin, elementwise.cos)
        ]
        self.sincos_pairs.update(dict.fromkeys(found[0] & found[1]))


def is_maybe(value: Value) -> bool:
    """Whether a value may be absent at run time."""
    return isinstance(value.type, MaybeType)
