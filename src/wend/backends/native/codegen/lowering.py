"""Lowering of a graph to LLVM IR: the state that emitters share, and the walk over regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_ownership import Ownership
from wend.backends.native.analysis.list_uses import is_new_list
from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.analysis.unique_references import UniqueReferences
from wend.backends.native.codegen.arenas import Arenas
from wend.backends.native.codegen.arrays import Array, Arrays
from wend.backends.native.codegen.calls import Calls
from wend.backends.native.codegen.conversions import Conversions
from wend.backends.native.codegen.instrument import Instrumentation
from wend.backends.native.codegen.refcounts import References
from wend.backends.native.codegen.safepoints import Safepoints
from wend.backends.native.codegen.traps import BAD_SHAPE, FrameState, Traps
from wend.backends.native.target.metadata import LoopMetadata
from wend.backends.native.target.sizes import SizeArithmetic
from wend.backends.native.target.small_arrays import is_complex_number
from wend.backends.native.target.value_layout import (
    Registers,
    UnknownTypeError,
    is_unranked,
    refuse,
)
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import MaybeType, Type
from wend.ops import elementwise, indexing, lists, maybe, updating
from wend.ops.frame_states import last_needs

# An emitter maps the registers of the operands to those of each result. If it returns
# NotImplemented, having emitted nothing, the node runs its NumPy kernel instead.
Emit: TypeAlias = Callable[["Lowering", Node, Sequence[Registers]], Any]

# Operations that pass arrays through unchanged, whatever their rank
_ANY_ARRAY = {lists.list_push, lists.list_pop, lists.list_get, lists.list_set, maybe.present}

# Operations that read complex numbers, and whose results are not views of them
_READERS = {
    *(elementwise.real, elementwise.imag, elementwise.complex_abs),
    *(updating.scatter_set, indexing.scatter_add),
}


@dataclass(eq=False, repr=False, slots=True)
class Lowering:
    """A function under construction, and the state that its emitters share.

    Attributes:
        emitters: the emitter of each operation.
        emit_host: emits the call of a NumPy kernel.
        list_classes: the alias classes of lists, which share arenas.
        ownership: the lists that may be updated in place.
        w: the builder that instructions are appended to.
        calls: the functions that the module must define or declare.
        traps: the exits on errors.
        safepoints: the iteration counters of loops.
        sizes: arithmetic on sizes.
        arrays: operations on arrays in memory.
        arenas: operations on lists in arenas.
        refcounts: the ownership of references to arrays.
        conversions: conversions between types that differ in known sizes.
        values: the registers of the values lowered so far.
        hoisted_nodes: nodes that were emitted before their region.
        sincos_pairs: values of which one region takes both sine and cosine.
        deferred_products: products that are only accumulated into an array and never stored; each
            with the function that emits the accumulation.
        product_operands: the references that a deferred product releases after its accumulation.
        unique_references: the arrays that nobody else refers to.
        last_uses: the liveness of the region that is being lowered.
        metadata: the LLVM metadata.
        constants: the arrays that the code refers to.
        host_nodes: the nodes that Python may have to run, by number, and whether for their results.
        slow_nodes: the nodes among them that have no native code.
        instrumentation: emits the measurements of nodes, if profiling is on.
        threads: how many threads may run one loop.
        has_unranked: whether an array may have an unknown rank.
        outlined_functions: the functions outlined from parallel loops: their heads and lines.
        chunk_functions: the functions of chunks that the code calls, by number.
        loop_depth: how many loops of the program enclose the current position.
        vectorizes: whether LLVM vectorizes the loop that is being lowered, if what it calls can be.
        offsets: the positions that are in range, by node and operand, each with what is added to
            it to count it from the front; they are those of the copy of a loop.
        guarded_loops: how many loops have such a copy.
        late_params: params that are loaded before the first node that reads them.
        early_results: results that are stored once they are computed.
    """

    emitters: Mapping[Op, Emit]
    emit_host: Emit
    list_classes: ListClasses
    ownership: Ownership
    w: Writer = field(default_factory=Writer)
    calls: Calls = field(init=False)
    traps: Traps = field(init=False)
    safepoints: Safepoints = field(init=False)
    sizes: SizeArithmetic = field(init=False)
    arrays: Arrays = field(init=False)
    arenas: Arenas = field(init=False)
    refcounts: References = field(init=False)
    conversions: Conversions = field(init=False)
    values: dict[Value, Registers] = field(default_factory=dict)
    hoisted_nodes: set[Node] = field(default_factory=set)
    sincos_pairs: dict[Value, tuple[str, str] | None] = field(default_factory=dict)
    deferred_products: dict[Value, Callable[[Array], None]] = field(default_factory=dict)
    product_operands: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    unique_references: UniqueReferences = field(default_factory=UniqueReferences)
    last_uses: LastUses | None = None
    metadata: LoopMetadata = field(default_factory=LoopMetadata)
    constants: list[Any] = field(default_factory=list)
    host_nodes: list[tuple[Node, bool]] = field(default_factory=list)
    slow_nodes: list[Node] = field(default_factory=list)
    instrumentation: Instrumentation | None = None
    threads: int = 1
    has_unranked: bool = True
    outlined_functions: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    chunk_functions: list[Any] = field(default_factory=list)
    loop_depth: int = 0
    vectorizes: bool = False
    offsets: Mapping[tuple[Node, int], str] = field(default_factory=dict)
    guarded_loops: int = 0
    late_params: dict[Value, Callable[[], Registers]] = field(default_factory=dict)
    early_results: Mapping[Value, Callable[[Registers], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calls = Calls(self.w)
        self.traps = Traps(self.w)
        self.safepoints = Safepoints(self.w, self.traps)
        self.sizes = SizeArithmetic(self.w)
        self.arrays = Arrays(self.w, self.traps, self.sizes)
        self.arenas = Arenas(self.w, self.traps, self.arrays, self.list_classes.arenas)
        self.refcounts = References(self.arrays)
        self.conversions = Conversions(self.w, self.traps, self.arrays)

    def join_module(self, other: Lowering) -> None:
        """Add to the constants, calls and definitions of another function of the module."""
        self.constants, self.metadata = other.constants, other.metadata
        self.outlined_functions = other.outlined_functions
        self.calls = replace(other.calls, w=self.w)

    def emit_graph(
        self, graph: Graph, params: Sequence[Registers], held: Sequence[bool] | None = None
    ) -> list[Registers]:
        """Emit the nodes of a graph or region.

        Args:
            graph: the graph to emit.
            params: the registers of its params, but for late ones.
            held: for each param, whether a reference to its array is handed over with it.

        Returns:
            The registers of its results, each with a reference of its own.
        """
        early = [x for x in graph.params if x not in self.late_params]
        self.values.update(zip(early, params, strict=True))
        self.find_sincos_pairs(graph)
        outer, self.last_uses = self.last_uses, LastUses(graph, last_needs(graph))
        uses, outer_state = self.last_uses, self.traps.state
        for k, param in enumerate(graph.params):
            if held is not None and held[k]:
                self.refcounts.hold(param)
                if uses.is_last(param, -1):
                    self.refcounts.drop(param, self.values[param])
        for position, node in enumerate(graph.nodes):
            self._emit_node(node, position, uses)
        self._load_params(graph.results)
        self.traps.node, self.last_uses = None, outer
        self._restore_state(outer_state)
        return [
            self.refcounts.to_owned(
                value, self.slots(graph, k, value), moves=value not in graph.results[k + 1 :]
            )
            for k, value in enumerate(graph.results)
        ]

    def _load_params(self, values: Iterable[Value]) -> None:
        for value in values:
            if load := self.late_params.pop(value, None):
                self.values[value] = load()

    def emit_hoisted(self, node: Node) -> None:
        """Emit a node on scalars ahead of its region, which then skips it."""
        self.hoisted_nodes.add(node)
        self.traps.state = None
        operands = [self.slots(node, k, value) for k, value in enumerate(node.operands)]
        self.traps.node, self.traps.operands = node, operands
        results = self._emitter(node)(self, node, operands)
        self.values.update(zip(node.results, results, strict=True))

    def _emit_node(self, node: Node, position: int, uses: LastUses) -> None:
        if node in self.hoisted_nodes:
            return
        self.traps.node, refcounts = node, self.refcounts
        self._restore_state(self.traps.state)
        self._load_params(node.operands)
        refcounts.begin_node(
            node, {v for v in node.operands if uses.is_sole_last_use(v, node, position)}
        )
        operands = [self.slots(node, k, value) for k, value in enumerate(node.operands)]
        is_deferred = any(value in self.product_operands for value in node.operands)
        self.traps.operands = None if is_deferred else operands
        measurement = self.instrumentation.start(node) if self.instrumentation else None
        results = self._emitter(node)(self, node, operands)
        if results is NotImplemented:
            results = self.emit_host(self, node, operands)
        if self.instrumentation:
            self.instrumentation.stop(measurement)
        refcounts.end_node()
        for result, slots in zip(node.results, results, strict=True):
            self.values[result] = slots
            refcounts.add(result)
            if store := self.early_results.get(result):
                store(slots)
        for value in dict.fromkeys((*node.operands, *node.results, *uses.needs(position))):
            if uses.is_last(value, position):
                refcounts.drop(value, self.values[value])
                for pointer in self.product_operands.pop(value, ()):
                    self.arrays.release(pointer)

    def _restore_state(self, state: FrameState | None) -> None:
        """Set the frame state of the nodes that follow; None if its registers are not valid."""
        is_valid = state is not None and state.held <= self.refcounts.held
        self.traps.state = state if is_valid else None

    def _emitter(self, node: Node) -> Emit:
        """Return a node's emitter; Python runs operations on arrays of unknown rank."""
        is_any_kind = node.op.kernel is None or node.op in _ANY_ARRAY
        values = (*node.operands, *node.results) if self.has_unranked and not is_any_kind else ()
        if any(is_unranked(value.type) for value in values):
            return self.emit_host
        return self.emitters.get(node.op, self.emit_host)

    def slots(self, owner: Node | Graph, index: int, value: Value) -> Registers:
        """Return the registers of an operand of a node or of a result of a graph."""
        if is_new_list(value):
            return self.arenas.new_list(self.list_classes.of_use(owner, index))
        return self.values[value]

    def owned(self, node: Node, index: int, slots: Registers | None = None) -> Registers:
        """Return an operand as an owned reference: moved at its last use, else shared or copied."""
        value = node.operands[index]
        slots = slots or self.slots(node, index, value)
        return self.refcounts.to_owned(value, slots, moves=self.may_move(value))

    def refcounted(self, node: Node, index: int) -> Registers:
        """Return an operand in reference-counted memory, valid while its node is emitted."""
        value = node.operands[index]
        return self.refcounts.refcounted(value, self.slots(node, index, value))

    def may_move(self, value: Value) -> bool:
        """Return whether the current node may take over the reference to an operand."""
        return self.refcounts.may_move(value)

    def add_unique_result(self, value: Value) -> None:
        """Record that the array of a new value has no other reference yet."""
        assert self.last_uses is not None
        self.unique_references.add_result(value, self.last_uses)

    def array(self, node: Node, index: int) -> Array:
        """Return an operand as an array."""
        value = node.operands[index]
        return self.arrays.of(value.tensor, self.values[value])

    def constant(self, array: np.ndarray) -> Array:
        """Return an array that the code refers to in place."""
        self.constants.append(array)
        dims = tuple(map(str, array.shape))
        return Array(f"@const{len(self.constants) - 1}", array.dtype, dims)

    def new_result(self, node: Node, dims: Sequence[str], index: int = 0) -> Array:
        """Allocate an array for a result of a node; a complex number may lie on the stack."""
        result, dtype = node.results[index], node.results[index].tensor.dtype
        if not self._is_read_in_place(result):
            return self.arrays.new(dtype, dims)
        self.refcounts.mark_foreign(result)
        return Array(self.w.allocate(f"[{dtype.itemsize} x i8], align 16"), dtype, ())

    def _is_read_in_place(self, value: Value) -> bool:
        """Return whether a value is a complex number, of which nothing keeps the address."""
        if not is_complex_number(value.type) or self.last_uses is None:
            return False
        users = self.last_uses.users(value)
        return not self.last_uses.is_result(value) and all(x.op in _READERS for x in users)

    def array_result(self, node: Node, array: Array, index: int = 0) -> Registers:
        """Return the registers of a result that is an array."""
        return self.conversions.from_array(array, node.results[index].tensor)

    def computed_result(
        self, node: Node, dims: Sequence[str], element: Callable[[str], str]
    ) -> Registers:
        """Emit a loop over the elements of a result; return its registers."""
        out = self.new_result(node, dims)
        self.w.loop(self.arrays.count(out), lambda k: self.arrays.store(out, k, element(k)))
        return self.array_result(node, out)

    def check_equal_dims(
        self, lhs: Sequence[str], rhs: Sequence[str], except_axis: int | None = None
    ) -> None:
        """Trap unless two arrays have the same sizes, but for one axis."""
        for axis, (lhs_dim, rhs_dim) in enumerate(zip(lhs, rhs, strict=True)):
            if axis != except_axis:
                self.traps.check(self.sizes.equal(lhs_dim, rhs_dim), BAD_SHAPE)

    def coerce(self, node: Node, slots: Registers, actual: Type, expected: Type) -> Registers:
        """Return the registers of a value as a type that knows more or fewer sizes."""
        try:
            return self.conversions.coerce(slots, actual, expected)
        except UnknownTypeError as error:
            raise refuse(node, f"it gives {error}") from None

    def coerce_all(
        self,
        node: Node,
        registers: Sequence[Registers],
        values: Sequence[Value],
        params: Sequence[Value],
    ) -> list[Registers]:
        """Return the registers of values as the types of the params that receive them."""
        return [
            self.coerce(node, slots, value.type, param.type)
            for slots, value, param in zip(registers, values, params, strict=True)
        ]

    def find_sincos_pairs(self, graph: Graph) -> None:
        """Find the values of which both sine and cosine are taken."""
        arguments = [
            {node.operands[0] for node in graph.nodes if node.op is op}
            for op in (elementwise.sin, elementwise.cos)
        ]
        self.sincos_pairs.update(dict.fromkeys(arguments[0] & arguments[1]))


def is_maybe(value: Value) -> bool:
    """Return whether a value may be absent at run time."""
    return isinstance(value.type, MaybeType)
