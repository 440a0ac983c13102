"""Nodes that run at once: calls of functions on as many threads as there are.

The code here becomes a function of a range of numbers, which `wend.tasks` calls. For each number it
passes arguments to a function, and copies the results to arrays of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from wend.backends.native.codegen.arrays import Array
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
from wend.backends.native.target.concurrent_call import concurrent_call
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    Registers,
    is_object,
    is_scalar,
    registers,
)
from wend.ir.graph import Node, Value
from wend.ir.op import Op


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
    targets = [_target(low, x, [dims[dim] for dim in x.tensor.dims]) for x in node.results]
    limit = open_limit(low, functions[0].limit)
    blocks_at = [
        w.define(f"getelementptr i8, ptr %block, i64 {function.blocks}") for function in functions
    ]

    def run(number: int) -> None:
        function = functions[number]
        block = w.define(f"load ptr, ptr {blocks_at[number]}")
        shared = [passed[k] for k in takes[number]]
        pass_arguments(low, function, block, (), shared, "0", "1")
        leave_failed = run_function(low, function, block, str(number), limit)
        offset, at = function.results, _first_result(functions[:number])
        for x in function.parts.body.results:
            _copy_result(low, x, block, offset, targets[at])
            offset, at = offset + SLOT_BYTES * len(registers(x.type)), at + 1
        leave_failed()

    def emit_calls(start: str, size: str, thread: str) -> None:
        def emit_call(k: str) -> None:
            number = w.define(f"add i64 {start}, {k}")
            w.when(
                ("task", "next"),
                lambda: is_below_limit(low, limit, number),
                lambda: _choose(low, number, [partial(run, k) for k in range(len(takes))]),
            )

        w.loop(size, emit_call)

    part = outlined(low, str(len(takes)), emit_calls)
    if part is not None:
        name, context = call_part(low, part)
        most = min(function.threads for function in functions) * len(takes)
        w.do(
            f"call void @wend.tasks(ptr {name}, ptr {context}, i64 {len(takes)}, i64 1, "
            f"i64 {most}, ptr {limit}, ptr %python)"
        )
    check_limit(low, limit)
    return [_result(low, node, k, target) for k, target in enumerate(targets)]


def _first_result(functions: Sequence[ChunkFunction]) -> int:
    return sum(len(function.parts.body.results) for function in functions)


def _choose(low: Lowering, number: str, runs: Sequence[Callable[[], None]]) -> None:
    """Emit the code for one of several numbers."""
    for k, run in enumerate(runs):
        is_chosen = low.w.define(f"icmp eq i64 {number}, {k}")
        low.w.when(("chosen", "other"), partial(str, is_chosen), run)


def _target(low: Lowering, x: Value, dims: Sequence[str]) -> Array | str:
    """Return where a result goes: an array, or the address of the slots of a scalar."""
    if is_scalar(x.type):
        slots = low.w.allocate(f"[{len(registers(x.type))} x i64]")
        return low.w.define(f"getelementptr i8, ptr {slots}, i64 0")
    return low.arrays.new(x.tensor.dtype, dims)


def _copy_result(low: Lowering, x: Value, block: str, offset: int, target: Array | str) -> None:
    w = low.w
    source = w.define(f"getelementptr i8, ptr {block}, i64 {offset}")
    if isinstance(target, Array):
        size = low.sizes.mul(low.sizes.product(target.dims), str(target.dtype.itemsize))
        low.arrays.memcpy(target.pointer, w.define(f"load ptr, ptr {source}"), size)
    else:
        low.arrays.memcpy(target, source, str(SLOT_BYTES * len(registers(x.type))))


def _result(low: Lowering, node: Node, k: int, target: Array | str) -> Registers:
    if isinstance(target, Array):
        return low.array_result(node, target, k)
    return load_slots(low, target, 0, node.results[k].type)[0]


EMITTERS: Mapping[Op, Emit] = {concurrent_call: emit_concurrent_call}
