"""Translation of a graph into the text of an LLVM module with one function.

`program.py` describes the result.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import accumulate

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_ownership import Ownership
from wend.backends.native.analysis.positions_in_range import positions_in_range
from wend.backends.native.codegen import arithmetic, instrument
from wend.backends.native.codegen.calls import string_definition
from wend.backends.native.codegen.list_arguments import load_list, mark_shared
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.outlined_parts import Parts
from wend.backends.native.codegen.outlining import outline
from wend.backends.native.codegen.traps import FrameState
from wend.backends.native.emit.array.elementwise import computes_elements, computes_numbers
from wend.backends.native.emit.chunks import ChunkFunction, header_words
from wend.backends.native.emit.control.failures import tell_failure
from wend.backends.native.emit.control.host import (
    call_host,
    frame_size,
    load_slots,
    prepare_host_call,
    store_slots,
)
from wend.backends.native.emit.numpy_loop import emit_fallback
from wend.backends.native.emit.scalar.elements import can_widen
from wend.backends.native.emit.table import EMITTERS
from wend.backends.native.expand.expand import expand_operations
from wend.backends.native.expand.version_loops import version_loops
from wend.backends.native.fusion.concurrent_nodes import concurrent_remarks, group_concurrent_nodes
from wend.backends.native.fusion.fuse import fuse_loops
from wend.backends.native.fusion.masked_elements import compute_masked_elements
from wend.backends.native.fusion.outer_products import spread_outer_products
from wend.backends.native.fusion.pipeline_loops import (
    PipelinedLoop,
    pipeline_loops,
    pipeline_remarks,
)
from wend.backends.native.fusion.report import fused_loops
from wend.backends.native.fusion.sink_broadcasts import sink_broadcasts
from wend.backends.native.fusion.split_reductions import split_reductions
from wend.backends.native.math import library as math
from wend.backends.native.program import (
    ENTRY,
    ChunkProgram,
    Field,
    HostCall,
    Layout,
    Program,
    SavedState,
)
from wend.backends.native.rt import growth, parallel, pool, python_callbacks, redzones, twister
from wend.backends.native.rt.linalg import blas, small_gemm
from wend.backends.native.scalarize.split import scalarize_small_arrays
from wend.backends.native.target.chunk_call import detach_maps
from wend.backends.native.target.lane_map import detach_lanes
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.platform import platform
from wend.backends.native.target.value_layout import (
    ARENA_BYTES,
    DATA_OFFSET,
    DIMS_OFFSET,
    SLOT_BYTES,
    Registers,
    UnknownTypeError,
    is_array,
    is_list,
    is_object,
    is_scalar,
    is_unranked,
    list_location_bytes,
    param_size,
    refuse,
    refuse_at,
    registers,
)
from wend.base.lazy.dataclass import dataclass
from wend.base.reporting.profile import MAX_SPANS
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import Symbol, TensorType, Type
from wend.ops.chunked_map import ChunkedMapParts
from wend.ops.frame_states import base_of, frame_state


def write(graph: Graph, *, is_measured: bool = False, threads: int = 1) -> Program:
    """Emit a graph as an LLVM module.

    Args:
        graph: the graph, after the passes of the pipeline.
        is_measured: whether to instrument loops and calls with timers.
        threads: the number of threads that may run one of its loops.

    Raises:
        UnsupportedError: the graph uses an operation or type without native code.
    """
    detached = detach_maps(graph)
    whole, tasks = detached.graph, list[ChunkedMapParts]()
    pipelined: list[PipelinedLoop] = []
    if threads > 1:
        whole, tasks = group_concurrent_nodes(pipeline_loops(whole, pipelined), len(detached.maps))
    parts_of_chunks = [*detached.maps, *tasks]
    # A function that runs beside others has one thread
    chunk_threads = [threads] * len(detached.maps) + [1] * len(tasks)
    chunks = [
        _ModuleFunction.of(
            prepare_for_emission(p.body, is_measured=is_measured), count, header_words(p)
        )
        for p, count in zip(parts_of_chunks, chunk_threads, strict=True)
    ]
    own_words = sum(1 + chunk.threads for chunk in chunks)
    prepared = prepare_for_emission(whole, is_measured=is_measured)
    main = _ModuleFunction.of(prepared, threads, 0, own_words)
    low = main.low
    if is_measured:
        _instrument(main, chunks[len(detached.maps) :])
    programs: list[ChunkProgram] = []
    words = limit_at = main.layout.chunks
    for k, (chunk, p) in enumerate(zip(chunks, parts_of_chunks, strict=True)):
        chunk.low.join_module(low)
        chunk.emit()
        most = 1 if chunk.low.slow_nodes else p.threads or chunk.threads
        # Functions that run at once have one limit
        limit_at = words if k <= len(detached.maps) else limit_at
        low.chunk_functions.append(
            ChunkFunction(
                f"@wend_chunk{k}",
                p,
                chunk.layout.results,
                chunk.layout.pool,
                chunk.layout.headers,
                chunk.layout.python,
                limit_at,
                words + SLOT_BYTES,
                min(most, chunk.threads),
                chunk.low.instrumentation,
            )
        )
        programs.append(
            ChunkProgram(chunk.program(()), limit_at, words + SLOT_BYTES, chunk.threads)
        )
        words += SLOT_BYTES * (1 + chunk.threads)
    main.emit()
    functions = [main, *chunks]
    is_vectorized = any(function.low.calls.vectorizable_count for function in functions)
    attributes = _PREFER_512_BITS if is_vectorized else ""
    parts = Parts(attributes, low.metadata.loop_definitions())
    definitions = [
        line
        for name, function in [
            *((f"internal i32 @wend_chunk{k}", chunk) for k, chunk in enumerate(chunks)),
            (f"i32 @{ENTRY}", main),
        ]
        for line in (
            f"define {name}(ptr %block) nounwind {attributes}{{",
            *function.lines(parts),
            "}",
        )
    ]
    uses_pool = any(function.uses_pool for function in functions)
    uses_python = bool(chunks) or any(function.uses_python for function in functions)
    may_grow = any(function.low.arenas.may_grow for function in functions)
    uses_memchr = any(function.low.calls.uses_memchr for function in functions)
    declarations = [
        f"declare double @{name}({', '.join(['double'] * count)}) nounwind willreturn memory(none)"
        for name, count in sorted(low.calls.libm.items())
    ]
    constant_linkage = "global" if is_measured else "constant"  # the table of timers is written to
    text = "\n".join(
        [
            math.definitions(sorted(low.calls.math), with_cold=False),
            arithmetic.definitions(low.calls.helpers),
            growth.DECLARATION if may_grow else "",
            pool.INLINE if uses_pool else "",
            python_callbacks.INLINE if uses_python else "",
            parallel.DECLARATION if low.outlined_functions else "",
            *declarations,
            *(
                f"declare {type} @{name}(ptr readonly, i64) {_READ_ONLY}"
                for name, type in low.calls.row_functions.items()
            ),
            *(f"declare {text} nounwind" for text in low.calls.external.values()),
            f"declare ptr @memchr(ptr, i32, i64) {_READ_ONLY}" if uses_memchr else "",
            "" if platform().is_process else "declare i32 @snprintf(ptr, i64, ptr, ...)",
            *(string_definition(f"text{k}", text) for k, text in enumerate(low.calls.texts)),
            *(small_gemm.declaration(name) for name in sorted(low.calls.gemm_functions)),
            *(f"@const{k} = external {constant_linkage} i8" for k in range(len(low.constants))),
            *parts.lines,
            *definitions,
            *(
                line
                for params, body in low.outlined_functions
                for line in _outlined_function(params, body, attributes)
            ),
            *low.metadata.lines(),
        ]
    )
    own = main.program(programs)
    return replace(
        own,
        text=text,
        constants=tuple(low.constants),
        slow_nodes=tuple(node for function in functions for node in function.low.slow_nodes),
        fused_loops=tuple(loop for x in functions for loop in fused_loops(x.graph)),
        uses_pool=uses_pool,
        uses_python=uses_python,
        may_take_long=bool(chunks) or own.may_take_long,
        is_split=bool(low.outlined_functions),
        remarks=(
            *pipeline_remarks(pipelined),
            *concurrent_remarks(whole, len(detached.maps), tasks),
        ),
    )


def _instrument(main: _ModuleFunction, tasks: Sequence[_ModuleFunction]) -> None:
    """Instrument a function, and those that run at once, with one table and one ring."""
    low = main.low
    table = instrument.new_table(x.graph for x in (main, *tasks))
    name = low.constant(table).pointer
    ring = instrument.new_ring(MAX_SPANS if tasks else 0)
    ring_name = low.constant(ring).pointer if tasks else ""
    own = instrument.Instrumentation(low.w, name, table, ring_name, ring)
    for function in (main, *tasks):
        w, measures = function.low.w, own if function is main else None
        measures = measures or replace(own, w=w, own_rows=[], _loops=[], _active=[])
        function.low.instrumentation = function.low.arrays.instrumentation = measures


@dataclass(eq=False, repr=False, slots=True)
class _ModuleFunction:
    """A graph that becomes a function of the module.

    Attributes:
        graph: the graph.
        threads: how many threads may run one of its loops.
        list_classes: the alias classes of its lists.
        layout: the layout of its block.
        low: what emits it.
    """

    graph: Graph
    threads: int
    list_classes: ListClasses
    layout: Layout
    low: Lowering

    @classmethod
    def of(
        cls, graph: Graph, threads: int, header_words: int = 0, chunk_words: int = 0
    ) -> _ModuleFunction:
        """Return the function of a graph that is prepared for emission."""
        list_classes = ListClasses(graph)
        ownership = Ownership(list_classes)
        if list_classes.arenas:
            ownership.find(graph, set())
        low = Lowering(EMITTERS, emit_fallback, list_classes, ownership, threads=threads)
        low.offsets = positions_in_range(graph)
        low.has_unranked = any(map(is_unranked, graph.types))
        arenas = len(list_classes.arenas)
        layout = _layout(graph, arenas, SLOT_BYTES * header_words, SLOT_BYTES * chunk_words)
        return cls(graph, threads, list_classes, layout, low)

    def emit(self) -> None:
        """Emit the function."""
        low, graph, layout = self.low, self.graph, self.layout
        low.w.start("entry")
        for name, offset in (
            ("arenas", layout.arenas),
            ("python", layout.python),
            ("host.number", layout.host_call_number),
            ("frame", layout.frame),
        ):
            low.w.do(f"%{name} = getelementptr i8, ptr %block, i64 {offset}")
        low.w.do(f"%pool.at = getelementptr i8, ptr %block, i64 {layout.pool}")
        low.w.do("%pool = load ptr, ptr %pool.at")
        if not platform().is_process:
            low.w.do("%workspace = load ptr, ptr %python")
        low.arenas.enter("%arenas")
        low.w.open_entry()
        param_registers = _load_params(low, graph.params)
        offsets = [*accumulate(map(_result_size, graph.result_types), initial=layout.results)]
        stored = _store_early(low, graph, offsets)
        result_registers = low.emit_graph(graph, param_registers)
        types = graph.result_types
        for k, (type, slots) in enumerate(zip(types, result_registers, strict=True)):
            if stored.get(k) != slots:
                store_slots(low, "%block", offsets[k], type, slots)
            if is_list(type):
                mark_shared(low, low.list_classes.of_use(graph, k), slots)
        exit_block = low.w.block
        low.w.jump("leave")
        if platform().is_process:
            status = low.traps.write(
                exit_block,
                lambda node, operands: prepare_host_call(low, node, operands),
                lambda: call_host(low),
                lambda state: _save_state(low, layout.contents + state.offset, state),
            )
        else:
            status = low.traps.write_with_messages(exit_block, partial(tell_failure, low))
        low.arenas.leave("%arenas", reset=True)
        if self.uses_pool:
            # The results stay readable there until the next call allocates.
            low.w.do("call void @wend.reset(ptr %pool)")
        low.w.do(f"ret i32 {status}")

    @property
    def uses_pool(self) -> bool:
        """Whether it allocates arrays from a pool, once it is emitted."""
        low = self.low
        return (
            low.arrays.uses_pool
            or any(map(_needs_pool, self.graph.param_types))
            or any(
                not is_scalar(value.type)
                for node, has_results in low.host_nodes
                if has_results
                for value in node.results
            )
        )

    @property
    def uses_python(self) -> bool:
        """Whether it calls the interpreter, once it is emitted."""
        low = self.low
        takes_lock = not low.calls.external.keys().isdisjoint(twister.NAMES)
        return bool(low.host_nodes) or low.safepoints.count > 0 or takes_lock

    def lines(self, parts: Parts) -> list[str]:
        """Return the lines of its body, of which some may become functions of their own."""
        first_exit = next(iter(self.low.traps.blocks.values()), "leave")
        return outline(*self.low.w.flat_lines(), first_exit, parts)

    def program(self, chunks: Sequence[ChunkProgram]) -> Program:
        """Return its interface, without what concerns the module."""
        low, classes = self.low, self.list_classes
        results = enumerate(self.graph.results)
        return Program(
            "",
            tuple(Field(v.type, classes.of_or_none(v)) for v in self.graph.params),
            tuple(Field(v.type, classes.of_use_or_none(self.graph, k)) for k, v in results),
            self.layout,
            tuple(0 if a.is_argument else a.stride * SLOT_BYTES for a in classes.arenas),
            (),
            tuple(_host_call(node, classes, has_results) for node, has_results in low.host_nodes),
            tuple(low.slow_nodes),
            (),
            *self._exits(),
            self.uses_pool,
            self.uses_python,
            low.safepoints.count > 0
            or not low.calls.gemm_functions.isdisjoint(blas.NAMES)
            or bool(low.calls.external),
            low.instrumentation,
            False,
            tuple(chunks),
        )

    def _exits(
        self,
    ) -> tuple[tuple[tuple[int, Node | None, int | None], ...], tuple[SavedState, ...]]:
        """Return `Program.traps` and `Program.states`."""
        states: list[SavedState] = []
        numbers: dict[Node, int] = {}
        for state in self.low.traps.states.values():  # one after those that it continues
            base = None if state.base is None else numbers[state.base.node]
            numbers[state.node] = len(states)
            call = _host_call(state.node, self.list_classes, False)
            states.append(SavedState(call, self.layout.contents + state.offset, base))
        traps = tuple(
            (reason, node, None if state is None else numbers[state.node])
            for reason, node, state in self.low.traps.reasons
        )
        return traps, tuple(states)


def _save_state(low: Lowering, offset: int, state: FrameState) -> None:
    """Store what the changed arguments hold in the block."""
    for value, slots in zip(state.node.operands, state.operands, strict=True):
        offset = store_slots(low, "%block", offset, value.type, slots)


def _outlined_function(head: str, lines: Sequence[str], attributes: str) -> Sequence[str]:
    """Return the lines of a function that runs chunks of a parallel loop."""
    return (f"define internal void {head} nounwind {attributes}{{", *lines, "}")


def prepare_for_emission(graph: Graph, *, is_measured: bool = False) -> Graph:
    """Return the graph as it is emitted.

    Operations without an emitter are expanded, small arrays scalarized, other array ops in loop
    nests. Loops that are measured have one version, whose trips are counted once.

    Raises:
        UnsupportedError: the graph uses an operation or type without native code.
    """
    graph = detach_lanes(expand_operations(graph), computes_numbers)
    check(graph)
    graph = scalarize_small_arrays(graph)
    return fuse_array_loops(graph if is_measured else version_loops(graph, can_widen))


def fuse_array_loops(graph: Graph) -> Graph:
    """Fuse array operations into loop nests."""
    if not any(map(is_array, graph.types)):
        return graph
    graph = spread_outer_products(graph, computes_elements)
    graph = compute_masked_elements(graph, computes_elements)
    graph = split_reductions(sink_broadcasts(graph, computes_elements), computes_elements)
    return fuse_loops(graph, computes_elements)


_READ_ONLY = "nounwind willreturn memory(argmem: read)"
# LLVM prefers 256-bit vectors on AVX-512 machines; 512 bits are faster for polynomials.
_PREFER_512_BITS = '"prefer-vector-width"="512" '


def check(graph: Graph) -> None:
    """Reject operations and types without native code before anything is emitted.

    Raises:
        UnsupportedError: an operation or the type of a value is unsupported.
    """
    unknown = {op for op in graph.ops if op not in EMITTERS and op.kernel is None}
    if unknown or not all(map(_has_layout, graph.types)):
        _refuse_first(graph, unknown)
    for kind, values in (("argument", graph.params), ("result", graph.results)):
        for index, value in enumerate(values):
            _check_boundary(graph, f"{kind} {index}", value)


def _has_layout(type: Type) -> bool:
    try:
        registers(type)
    except UnknownTypeError:
        return False
    return True


def _refuse_first(graph: Graph, unknown: Set[Op]) -> None:
    """Raise the error for the first node with one of these operations, or a type without layout."""
    for node in graph.walk():
        if node.op in unknown:
            raise refuse(node, "it has no native code for this operation")
        for value in (*node.operands, *node.results):
            try:
                registers(value.type)
            except UnknownTypeError as error:
                raise refuse(node, f"it has no native code for {error}") from None


def _check_boundary(graph: Graph, what: str, value: Value) -> None:
    try:
        registers(value.type)
    except UnknownTypeError:
        raise refuse_at(f"`{graph.name}`, {what}", f"it is {value.type}") from None


def _layout(graph: Graph, arenas: int, header_bytes: int, chunk_bytes: int) -> Layout:
    results_at = sum(param_size(type) for type in graph.param_types)
    redzone = redzones.BYTES
    results = sum(map(_result_size, graph.result_types))
    arenas_at = results_at + results + redzone
    pool_at = arenas_at + ARENA_BYTES * arenas + redzone
    frame_at = pool_at + SLOT_BYTES + python_callbacks.BYTES + redzone
    kernel_nodes = (node for node in graph.walk() if not node.regions or node.op is loop_nest)
    frame = max(map(frame_size, kernel_nodes), default=0)
    contents_at = frame_at + frame
    headers_at = contents_at + _contents_size(graph)
    chunks_at = headers_at + header_bytes
    end = chunks_at + chunk_bytes + redzone
    return Layout(results_at, arenas_at, pool_at, frame_at, contents_at, headers_at, chunks_at, end)


def _contents_size(graph: Graph) -> int:
    """Return the size in bytes of the largest frame state, with those that it continues."""
    sizes: dict[Node, int] = {}
    for node in graph.walk():
        if node.op is frame_state:
            base = base_of(node)
            before = 0 if base is None or base.node is None else sizes.get(base.node, 0)
            sizes[node] = before + frame_size(node)
    return max(sizes.values(), default=0)


def _needs_pool(type: Type) -> bool:
    """Return whether an argument is copied into the pool."""
    return not is_object(type) and not is_scalar(type)


def _host_call(node: Node, list_classes: ListClasses, has_results: bool) -> HostCall:
    operands = (
        Field(v.type, list_classes.of_use_or_none(node, k)) for k, v in enumerate(node.operands)
    )
    results = (Field(v.type, list_classes.of_or_none(v)) for v in node.results if has_results)
    return HostCall(node, tuple(operands), tuple(results))


def _result_size(type: Type) -> int:
    return SLOT_BYTES * len(registers(type))


def _store_early(low: Lowering, graph: Graph, offsets: Sequence[int]) -> dict[int, Registers]:
    """Have results that are arrays stored where they are computed; return what is stored then.

    So a function of many arrays keeps few registers, and equal parts of it stay equal.
    """
    stored: dict[int, Registers] = {}

    def store(k: int, slots: Registers) -> None:
        stored[k] = slots
        store_slots(low, "%block", offsets[k], graph.results[k].type, slots)

    numbers = {value: k for k, value in enumerate(graph.results) if is_object(value.type)}
    low.early_results = {value: partial(store, k) for value, k in numbers.items()}
    return stored


def _load_params(low: Lowering, params: Sequence[Value]) -> list[Registers]:
    """Load params but for arrays, which are loaded late: where a node reads them."""
    loaded: list[Registers] = []
    offset = 0
    for param in params:
        param_type = param.type
        if is_object(param_type):
            assert isinstance(param_type, TensorType)
            low.late_params[param] = partial(_load_array, low, param_type, offset)
            low.refcounts.mark_foreign(param)
            offset += SLOT_BYTES
        else:
            param_slots, offset = load_slots(low, "%block", offset, param_type)
            loaded.append(
                load_list(low, param, param_slots, offset) if is_list(param_type) else param_slots
            )
            offset += list_location_bytes(param_type)
    return loaded


def _load_array(low: Lowering, type: TensorType, offset: int) -> Registers:
    """Load the data pointer and the symbolic sizes of an ndarray argument."""

    def field(base: str, offset: int, register: str) -> str:
        address = low.w.define(f"getelementptr i8, ptr {base}, i64 {offset}")
        return low.w.define(f"load {register}, ptr {address}")

    array = field("%block", offset, "ptr")
    data = field(array, DATA_OFFSET, "ptr")
    unknown = [k for k, dim in enumerate(type.dims) if isinstance(dim, Symbol)]
    if not unknown:
        return (data,)
    dims = field(array, DIMS_OFFSET, "ptr")
    return (data, *(field(dims, SLOT_BYTES * k, "i64") for k in unknown))
