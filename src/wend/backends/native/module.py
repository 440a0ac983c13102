"""Translation of a graph into the text of an LLVM module with one function.

`program.py` describes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_ownership import Ownership
from wend.backends.native.codegen import arithmetic, instrument
from wend.backends.native.codegen.arenas import GROW
from wend.backends.native.codegen.calls import string_definition
from wend.backends.native.codegen.list_arguments import load_list, mark_shared
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.outlined_parts import Parts
from wend.backends.native.codegen.outlining import outline
from wend.backends.native.codegen.traps import FrameState
from wend.backends.native.emit.array.elementwise import computes_elements
from wend.backends.native.emit.control.failures import tell_failure
from wend.backends.native.emit.control.host import (
    call_host,
    frame_size,
    load_slots,
    prepare_host_call,
    store_slots,
)
from wend.backends.native.emit.numpy_loop import emit_fallback
from wend.backends.native.emit.table import EMITTERS
from wend.backends.native.expand.expand import expand_operations
from wend.backends.native.fusion.fuse import fuse_loops
from wend.backends.native.fusion.masked_reductions import fuse_masked_reductions
from wend.backends.native.fusion.report import fused_loops
from wend.backends.native.fusion.sink_broadcasts import sink_broadcasts
from wend.backends.native.fusion.split_reductions import split_reductions
from wend.backends.native.math import library as math
from wend.backends.native.program import (
    ENTRY,
    Field,
    HostCall,
    Layout,
    Program,
    is_object,
    param_size,
)
from wend.backends.native.rt import parallel, pool, python_callbacks, redzones
from wend.backends.native.rt.linalg import blas, small_gemm
from wend.backends.native.scalarize.split import scalarize_small_arrays
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.platform import platform
from wend.backends.native.target.value_layout import (
    ARENA_BYTES,
    SLOT_BYTES,
    Registers,
    UnknownTypeError,
    is_list,
    is_scalar,
    list_location_bytes,
    refuse,
    refuse_at,
    registers,
)
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Symbol, TensorType, Type
from wend.ops.frame_states import frame_state


def write(graph: Graph, *, is_measured: bool = False, threads: int = 1) -> Program:
    """Emit a graph as an LLVM module.

    Args:
        graph: the graph, after the passes of the pipeline.
        is_measured: whether to instrument loops and calls with timers.
        threads: the number of threads that may run one of its loops.

    Raises:
        UnsupportedError: the graph uses an operation or type without native code.
    """
    graph = prepare_for_emission(graph)
    list_classes = ListClasses(graph)
    ownership = Ownership(list_classes)
    ownership.find(graph, set())
    low = Lowering(EMITTERS, emit_fallback, list_classes, ownership, threads=threads)
    if is_measured:
        table = instrument.new_table(graph)
        low.instrumentation = instrument.Instrumentation(low.w, low.constant(table).pointer, table)
        low.arrays.instrumentation = low.instrumentation
    params, results = graph.param_types, graph.result_types
    layout = _layout(graph, len(list_classes.arenas))

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
    for param in graph.params:
        if is_object(param.type):
            low.refcounts.mark_foreign(param)
    result_registers = low.emit_graph(graph, param_registers)
    offset = layout.results
    for k, (type, slots) in enumerate(zip(results, result_registers, strict=True)):
        offset = store_slots(low, "%block", offset, type, slots)
        if is_list(type):
            mark_shared(low, low.list_classes.of_use(graph, k), slots)
    exit_block = low.w.block
    low.w.jump("leave")
    if platform().is_process:
        status = low.traps.write(
            exit_block,
            lambda node, operands: prepare_host_call(low, node, operands),
            lambda: call_host(low),
            lambda state: _save_state(low, layout, state),
        )
    else:
        status = low.traps.write_with_messages(exit_block, partial(tell_failure, low))
    low.arenas.leave("%arenas", reset=True)
    uses_pool = low.arrays.uses_pool or bool(low.host_nodes) or any(map(_needs_pool, params))
    if uses_pool:
        # The results stay readable there until the next call allocates.
        low.w.do("call void @wend.reset(ptr %pool)")
    low.w.do(f"ret i32 {status}")
    attributes = _PREFER_512_BITS if low.calls.vectorizable_count else ""
    parts = Parts(attributes, low.metadata.loop_definitions())
    first_exit = next(iter(low.traps.blocks.values()), "leave")
    lines = outline(*low.w.flat_lines(), first_exit, parts)

    uses_python = bool(low.host_nodes) or low.safepoints.count > 0
    declarations = [
        f"declare double @{name}({', '.join(['double'] * count)}) nounwind willreturn memory(none)"
        for name, count in sorted(low.calls.libm.items())
    ]
    constant_linkage = "global" if is_measured else "constant"  # the table of timers is written to
    text = "\n".join(
        [
            math.definitions(sorted(low.calls.math), with_cold=False),
            arithmetic.definitions(low.calls.helpers),
            GROW,
            pool.INLINE if uses_pool else "",
            python_callbacks.INLINE if uses_python else "",
            parallel.DECLARATION if low.outlined_functions else "",
            *declarations,
            *(
                f"declare {type} @{name}(ptr readonly, i64) {_READ_ONLY}"
                for name, type in low.calls.row_functions.items()
            ),
            *(f"declare {text} nounwind" for text in low.calls.external.values()),
            f"declare ptr @memchr(ptr, i32, i64) {_READ_ONLY}" if low.calls.uses_memchr else "",
            "" if platform().is_process else "declare i32 @snprintf(ptr, i64, ptr, ...)",
            *(string_definition(f"text{k}", text) for k, text in enumerate(low.calls.texts)),
            *(small_gemm.declaration(name) for name in sorted(low.calls.gemm_functions)),
            *(f"@const{k} = external {constant_linkage} i8" for k in range(len(low.constants))),
            *parts.lines,
            f"define i32 @{ENTRY}(ptr %block) nounwind {attributes}{{",
            *lines,
            "}",
            *(
                line
                for params, body in low.outlined_functions
                for line in _outlined_function(params, body, attributes)
            ),
            *low.metadata.lines(),
        ]
    )
    return Program(
        text,
        tuple(Field(v.type, list_classes.of_or_none(v)) for v in graph.params),
        tuple(
            Field(v.type, list_classes.of_use_or_none(graph, k))
            for k, v in enumerate(graph.results)
        ),
        layout,
        tuple(0 if a.is_argument else a.stride * SLOT_BYTES for a in list_classes.arenas),
        tuple(low.constants),
        tuple(_host_call(node, list_classes, has_results) for node, has_results in low.host_nodes),
        tuple(low.slow_nodes),
        tuple(fused_loops(graph)),
        tuple(
            (reason, node, None if state is None else _host_call(state, list_classes, False))
            for reason, node, state in low.traps.reasons
        ),
        uses_pool,
        uses_python,
        low.safepoints.count > 0
        or not low.calls.gemm_functions.isdisjoint(blas.NAMES)
        or bool(low.calls.external),
        low.instrumentation,
        bool(low.outlined_functions),
    )


def _save_state(low: Lowering, layout: Layout, state: FrameState) -> None:
    """Store what the changed arguments hold in the block."""
    offset = layout.contents
    for value, slots in zip(state.node.operands, state.operands, strict=True):
        offset = store_slots(low, "%block", offset, value.type, slots)


def _outlined_function(head: str, lines: Sequence[str], attributes: str) -> Sequence[str]:
    """Return the lines of a function that runs chunks of a parallel loop."""
    return (f"define internal void {head} nounwind {attributes}{{", *lines, "}")


def prepare_for_emission(graph: Graph) -> Graph:
    """Return the graph as it is emitted.

    Operations without an emitter are expanded, small arrays scalarized, other array ops in loop
    nests.

    Raises:
        UnsupportedError: the graph uses an operation or type without native code.
    """
    check(graph)
    return fuse_array_loops(scalarize_small_arrays(expand_operations(graph)))


def fuse_array_loops(graph: Graph) -> Graph:
    """Fuse array operations into loop nests."""
    graph = split_reductions(
        sink_broadcasts(fuse_masked_reductions(graph), computes_elements), computes_elements
    )
    return fuse_loops(graph, computes_elements)


_READ_ONLY = "nounwind willreturn memory(argmem: read)"
# LLVM prefers 256-bit vectors on AVX-512 machines; 512 bits are faster for polynomials.
_PREFER_512_BITS = '"prefer-vector-width"="512" '


def check(graph: Graph) -> None:
    """Reject operations and types without native code before anything is emitted.

    Raises:
        UnsupportedError: an operation or the type of a value is unsupported.
    """
    for node in graph.walk():
        if node.op not in EMITTERS and node.op.kernel is None:
            raise refuse(node, "it has no native code for this operation")
        for value in (*node.operands, *node.results):
            try:
                registers(value.type)
            except UnknownTypeError as error:
                raise refuse(node, f"it has no native code for {error}") from None
    for kind, values in (("argument", graph.params), ("result", graph.results)):
        for index, value in enumerate(values):
            _check_boundary(graph, f"{kind} {index}", value)


def _check_boundary(graph: Graph, what: str, value: Value) -> None:
    try:
        registers(value.type)
    except UnknownTypeError:
        raise refuse_at(f"`{graph.name}`, {what}", f"it is {value.type}") from None


def _layout(graph: Graph, arenas: int) -> Layout:
    results_at = sum(param_size(type) for type in graph.param_types)
    redzone = redzones.BYTES
    results = SLOT_BYTES * sum(len(registers(t)) for t in graph.result_types)
    arenas_at = results_at + results + redzone
    pool_at = arenas_at + ARENA_BYTES * arenas + redzone
    frame_at = pool_at + SLOT_BYTES + python_callbacks.BYTES + redzone
    kernel_nodes = (node for node in graph.walk() if not node.regions or node.op is loop_nest)
    frame = max(map(frame_size, kernel_nodes), default=0)
    contents_at = frame_at + frame
    states = (node for node in graph.walk() if node.op is frame_state)
    end = contents_at + max(map(frame_size, states), default=0)
    return Layout(results_at, arenas_at, pool_at, frame_at, contents_at, end + redzone)


def _needs_pool(type: Type) -> bool:
    """Return whether an argument is copied into the pool."""
    return not is_object(type) and not is_scalar(type)


def _host_call(node: Node, list_classes: ListClasses, has_results: bool) -> HostCall:
    operands = (
        Field(v.type, list_classes.of_use_or_none(node, k)) for k, v in enumerate(node.operands)
    )
    results = (Field(v.type, list_classes.of_or_none(v)) for v in node.results if has_results)
    return HostCall(node, tuple(operands), tuple(results))


# Byte offsets of the fields of an ndarray object
_DATA_OFFSET, _DIMS_OFFSET = object.__basicsize__, object.__basicsize__ + 16


def _load_params(low: Lowering, params: Sequence[Value]) -> list[Registers]:
    loaded: list[Registers] = []
    offset = 0
    for param in params:
        param_type = param.type
        if is_object(param_type):
            assert isinstance(param_type, TensorType)
            loaded.append(_load_array(low, param_type, offset))
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
    data = field(array, _DATA_OFFSET, "ptr")
    unknown = [k for k, dim in enumerate(type.dims) if isinstance(dim, Symbol)]
    if not unknown:
        return (data,)
    dims = field(array, _DIMS_OFFSET, "ptr")
    return (data, *(field(dims, SLOT_BYTES * k, "i64") for k in unknown))
