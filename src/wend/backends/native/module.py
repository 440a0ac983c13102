"""Writes a graph as the text of an LLVM module with one function; see `program.py`."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_ownership import Ownership
from wend.backends.native.codegen import arithmetic, instrument
from wend.backends.native.codegen.arenas import GROW
from wend.backends.native.codegen.list_arguments import load_list, share
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.array.elementwise import computes_elements
from wend.backends.native.emit.control.host import (
    emit_host,
    frame_size,
    give_kernel,
    load,
    run_kernel,
    store,
)
from wend.backends.native.emit.table import EMITTERS
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
from wend.backends.native.rt import (
    blas,
    parallel,
    pool,
    python_callbacks,
    redzones,
    small_gemm,
)
from wend.backends.native.scalarize.split import scalarize_small_arrays
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import (
    ARENA_BYTES,
    SLOT_BYTES,
    Registers,
    UnknownTypeError,
    is_list,
    is_scalar,
    refuse,
    refuse_at,
    registers,
    where_size,
)
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Symbol, TensorType, Type


def write(graph: Graph, *, is_measured: bool = False, threads: int = 1) -> Program:
    """Write a graph as a module.

    Args:
        graph: what is written.
        is_measured: whether it is to measure its parts.
        threads: how many threads may run one of its loops.

    Raises:
        UnsupportedError: it needs something that native code does not know.
    """
    graph = prepared(graph)
    places = ListClasses(graph)
    ownership = Ownership(places)
    ownership.find(graph, set())
    low = Lowering(EMITTERS, emit_host, places, ownership, threads=threads)
    if is_measured:
        table = instrument.new_table(graph)
        low.measures = instrument.Instrumentation(low.w, low.constant(table).pointer, table)
    params, results = graph.param_types, graph.result_types
    layout = _layout(graph, len(places.arenas))

    low.w.start("entry")
    for name, offset in (
        ("arenas", layout.arenas),
        ("python", layout.python),
        ("host.number", layout.number),
        ("frame", layout.frame),
    ):
        low.w.do(f"%{name} = getelementptr i8, ptr %block, i64 {offset}")
    low.w.do(f"%pool.at = getelementptr i8, ptr %block, i64 {layout.pool}")
    low.w.do("%pool = load ptr, ptr %pool.at")
    low.arenas.enter("%arenas")
    low.w.open_entry()
    given = _load(low, graph.params)
    for param in graph.params:
        if is_object(param.type):
            low.memory.mark_foreign(param)
    found = low.graph(graph, given)
    offset = layout.results
    for k, (type, slots) in enumerate(zip(results, found, strict=True)):
        offset = store(low, "%block", offset, type, slots)
        if is_list(type):
            share(low, low.places.used(graph, k), slots)
    done = low.w.block
    low.w.jump("leave")
    status = low.traps.write(
        done,
        lambda node, operands: give_kernel(low, node, operands),
        lambda: run_kernel(low),
    )
    low.arenas.leave("%arenas", for_good=True)
    uses_pool = low.arrays.used or bool(low.host_nodes) or any(map(_needs_pool, params))
    if uses_pool:
        # What lies in it stays there until the next call takes memory.
        low.w.do("call void @wend.reset(ptr %pool)")
    low.w.do(f"ret i32 {status}")

    uses_python = bool(low.host_nodes) or low.safepoints.count > 0
    declarations = [
        f"declare double @{name}({', '.join(['double'] * count)}) nounwind willreturn memory(none)"
        for name, count in sorted(low.calls.libm.items())
    ]
    kept = "global" if is_measured else "constant"  # a table of measures is written to
    text = "\n".join(
        [
            math.definitions(sorted(low.calls.math), with_cold=False),
            arithmetic.definitions(low.calls.helpers),
            GROW,
            pool.INLINE if uses_pool else "",
            python_callbacks.INLINE if uses_python else "",
            parallel.DECLARATION if low.parts else "",
            *declarations,
            *(
                f"declare {type} @{name}(ptr readonly, i64) {_READS}"
                for name, type in low.calls.rows.items()
            ),
            *(f"declare {text} nounwind" for text in low.calls.declared.values()),
            f"declare ptr @memchr(ptr, i32, i64) {_READS}" if low.calls.finds_bytes else "",
            *(small_gemm.declaration(name) for name in sorted(low.calls.products)),
            *(f"@const{k} = external {kept} i8" for k in range(len(low.constants))),
            f"define i32 @{ENTRY}(ptr %block) nounwind {WIDE if low.calls.in_loops else ''}{{",
            *low.w.lines,
            "}",
            *(line for params, lines in low.parts for line in _part(low, params, lines)),
            *low.metadata.lines(),
        ]
    )
    return Program(
        text,
        tuple(Field(v.type, places.maybe_of(v)) for v in graph.params),
        tuple(Field(v.type, places.maybe_used(graph, k)) for k, v in enumerate(graph.results)),
        layout,
        tuple(0 if a.is_given else a.stride * SLOT_BYTES for a in places.arenas),
        tuple(low.constants),
        tuple(_host_call(node, places, gives) for node, gives in low.host_nodes),
        tuple(low.slow_nodes),
        tuple(fused_loops(graph)),
        low.traps.reasons,
        uses_pool,
        uses_python,
        low.safepoints.count > 0
        or not low.calls.products.isdisjoint(blas.NAMES)
        or bool(low.calls.declared),
        low.measures,
        bool(low.parts),
    )


def _part(low: Lowering, head: str, lines: Sequence[str]) -> Sequence[str]:
    """A function that runs parts of a loop."""
    return (
        f"define internal void {head} nounwind {WIDE if low.calls.in_loops else ''}{{",
        *lines,
        "}",
    )


def prepared(graph: Graph) -> Graph:
    """A graph as it is written: small arrays apart, and what is done on others in loop nests.

    Raises:
        UnsupportedError: it needs something that native code does not know.
    """
    check(graph)
    return nested(scalarize_small_arrays(graph))


def nested(graph: Graph) -> Graph:
    """Do what is done on arrays in loop nests."""
    graph = split_reductions(
        sink_broadcasts(fuse_masked_reductions(graph), computes_elements), computes_elements
    )
    return fuse_loops(graph, computes_elements)


_READS = "nounwind willreturn memory(argmem: read)"
# LLVM by itself takes half of what AVX-512 has: the other half is worth it for polynomials.
WIDE = '"prefer-vector-width"="512" '


def check(graph: Graph) -> None:
    """Find what native code cannot do before anything is written, and say where it is.

    Raises:
        UnsupportedError: an operation, or a type of value.
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
            _check_outer(graph, f"{kind} {index}", value)


def _check_outer(graph: Graph, what: str, value: Value) -> None:
    try:
        registers(value.type)
    except UnknownTypeError:
        raise refuse_at(f"`{graph.name}`, {what}", f"it is {value.type}") from None


def _layout(graph: Graph, arenas: int) -> Layout:
    results_at = sum(param_size(type) for type in graph.param_types)
    guard = redzones.BYTES
    results = SLOT_BYTES * sum(len(registers(t)) for t in graph.result_types)
    arenas_at = results_at + results + guard
    pool_at = arenas_at + ARENA_BYTES * arenas + guard
    frame_at = pool_at + SLOT_BYTES + python_callbacks.BYTES + guard
    run = (node for node in graph.walk() if not node.regions or node.op is loop_nest)
    frame = max(map(frame_size, run), default=0)
    return Layout(results_at, arenas_at, pool_at, frame_at, frame_at + frame + guard)


def _needs_pool(type: Type) -> bool:
    """Whether an argument is written into the pool."""
    return not is_object(type) and not is_scalar(type)


def _host_call(node: Node, places: ListClasses, gives: bool) -> HostCall:
    operands = (Field(v.type, places.maybe_used(node, k)) for k, v in enumerate(node.operands))
    results = (Field(v.type, places.maybe_of(v)) for v in node.results if gives)
    return HostCall(node, tuple(operands), tuple(results))


# Offsets in the object that is an ndarray
_DATA, _DIMS = object.__basicsize__, object.__basicsize__ + 16


def _load(low: Lowering, params: Sequence[Value]) -> list[Registers]:
    given: list[Registers] = []
    offset = 0
    for param in params:
        type = param.type
        if is_object(type):
            assert isinstance(type, TensorType)
            given.append(_load_array(low, type, offset))
            offset += SLOT_BYTES
        else:
            slots, offset = load(low, "%block", offset, type)
            given.append(load_list(low, param, slots, offset) if is_list(type) else slots)
            offset += where_size(type)
    return given


def _load_array(low: Lowering, type: TensorType, offset: int) -> Registers:
    """Elements and sizes of an ndarray."""

    def field(base: str, offset: int, register: str) -> str:
        place = low.w.define(f"getelementptr i8, ptr {base}, i64 {offset}")
        return low.w.define(f"load {register}, ptr {place}")

    object = field("%block", offset, "ptr")
    data = field(object, _DATA, "ptr")
    unknown = [k for k, dim in enumerate(type.dims) if isinstance(dim, Symbol)]
    if not unknown:
        return (data,)
    dims = field(object, _DIMS, "ptr")
    return (data, *(field(dims, SLOT_BYTES * k, "i64") for k in unknown))
