"""Nodes that run at once: calls of functions on as many threads as there are.

The code here becomes a function of a range of numbers, which `wend.tasks` calls. For each number it
passes arguments to a function. Once all have ended, the caller receives the arrays that they have
made from their pools, in exchange for blocks of its own, and reads the scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.chunks import (
    ChunkFunction,
    check_limit,
    header_of,
    is_below_limit,
    known_dims,
    open_limit,
    pass_arguments,
    run_function,
)
from wend.backends.native.emit.control.host import load_slots
from wend.backends.native.emit.loops.outline_parallel import call_part, outlined
from wend.backends.native.rt import pool
from wend.backends.native.target.concurrent_call import concurrent_call
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    Registers,
    is_object,
    is_scalar,
    registers,
)
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import Dim


def emit_concurrent_call(
    low: Lowering, node: Node, operands: Sequence[Registers]
) -> Sequence[Registers]:
    """Emit the calls of functions that do not need each other."""
    w, first, takes = low.w, node.attrs["first"], node.attrs["takes"]
    functions: Sequence[ChunkFunction] = low.chunk_functions[first : first + len(takes)]
    dims = known_dims(node, operands)
    passed = [
        slots if not is_object(x.type) else (header_of(low, low.arrays.of(x.tensor, slots)),)
        for x, slots in zip(node.operands, operands, strict=True)
    ]
    limit = open_limit(low, functions[0].limit)
    blocks_at = [
        w.define(f"getelementptr i8, ptr %block, i64 {function.blocks}") for function in functions
    ]

    measures = low.instrumentation

    def run(number: int, thread: str) -> None:
        function = functions[number]
        block = w.define(f"load ptr, ptr {blocks_at[number]}")
        shared = [passed[k] for k in takes[number]]
        pass_arguments(low, function, block, (), shared, "0", "1")
        start = measures.read() if measures else ""
        run_function(low, function, block, str(number), limit)()
        if measures:
            measures.end_task(number, thread, start)

    def emit_calls(start: str, size: str, thread: str) -> None:
        def emit_call(k: str) -> None:
            number = w.define(f"add i64 {start}, {k}")
            w.when(
                ("task", "next"),
                lambda: is_below_limit(low, limit, number),
                lambda: _choose(low, number, [partial(run, k, thread) for k in range(len(takes))]),
            )

        w.loop(size, emit_call)

    for function in functions:
        if measures and function.measures:
            measures.add_task(function.parts.body.name, function.parts.source, function.measures)

    part = outlined(low, str(len(takes)), emit_calls)
    if part is not None:
        name, context = call_part(low, part)
        most = min(function.threads for function in functions) * len(takes)
        w.do(
            f"call void @wend.tasks(ptr {name}, ptr {context}, i64 {len(takes)}, i64 1, "
            f"i64 {most}, ptr {limit}, ptr %python)"
        )
    check_limit(low, limit)
    results: list[Registers] = []
    for function, at in zip(functions, blocks_at, strict=True):
        block = w.define(f"load ptr, ptr {at}")
        offset = function.results
        for x in function.parts.body.results:
            k = len(results)
            results.append(_result(low, node, k, function, block, offset, dims))
            offset += SLOT_BYTES * len(registers(x.type))
    return results


def _choose(low: Lowering, number: str, runs: Sequence[Callable[[], None]]) -> None:
    """Emit the code for one of several numbers."""
    for k, run in enumerate(runs):
        is_chosen = low.w.define(f"icmp eq i64 {number}, {k}")
        low.w.when(("chosen", "other"), partial(str, is_chosen), run)


def _result(
    low: Lowering,
    node: Node,
    number: int,
    function: ChunkFunction,
    block: str,
    offset: int,
    dims: Mapping[Dim, str],
) -> Registers:
    """Return a result that a function has left in its block."""
    w, x = low.w, node.results[number]
    if is_scalar(x.type):
        return load_slots(low, block, offset, x.type)[0]
    new = low.arrays.new(x.tensor.dtype, [dims[dim] for dim in x.tensor.dims])
    low.calls.external[pool.RECEIVE] = f"ptr @{pool.RECEIVE}({pool.RECEIVE_TYPES})"
    at, pool_at = (
        w.define(f"getelementptr i8, ptr {block}, i64 {place}") for place in (offset, function.pool)
    )
    result = w.define(f"load ptr, ptr {at}")
    other = w.define(f"load ptr, ptr {pool_at}")
    size = low.arrays.bytes(new)
    received = w.define(
        f"call ptr @{pool.RECEIVE}(ptr %pool, ptr {new.pointer}, ptr {other}, ptr {result}, "
        f"i64 {size})"
    )
    return low.array_result(node, replace(new, pointer=received), number)


EMITTERS: Mapping[Op, Emit] = {concurrent_call: emit_concurrent_call}
