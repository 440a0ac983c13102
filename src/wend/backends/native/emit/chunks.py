"""Chunks of the elements of a map: calls of a function, on as many threads as there are.

The code here becomes a function of a range of chunks, which `wend.chunks` calls. For each chunk it
fills in the workspace of its thread: the arguments are parts of the arrays of the caller, passed as
Python would pass them, and the results are copied to their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.instrument import Instrumentation
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import CHUNK
from wend.backends.native.emit.control.host import store_slots
from wend.backends.native.emit.loops.outline_parallel import call_part, outlined
from wend.backends.native.rt import python_callbacks
from wend.backends.native.target.chunk_call import chunk_call
from wend.backends.native.target.value_layout import (
    DATA_OFFSET,
    DIMS_OFFSET,
    SLOT_BYTES,
    Registers,
    is_object,
    param_size,
    registers,
)
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import Dim
from wend.ops.chunked_map import ChunkedMapParts

_HEADER_WORDS = DIMS_OFFSET // SLOT_BYTES + 1


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class ChunkFunction:
    """The function of a chunk.

    Attributes:
        name: its name in the module.
        parts: the map.
        results: where its block has the results.
        pool: where its block has the address of its pool.
        headers: where its block has the headers of arrays.
        python: where its block has the words that Python shares.
        limit: where the block of its caller has the limit.
        blocks: where that has the addresses of its workspaces.
        threads: how many threads may run it at once.
        measures: its instrumentation, if the program is profiled.
    """

    name: str
    parts: ChunkedMapParts
    results: int
    pool: int
    headers: int
    python: int
    limit: int
    blocks: int
    threads: int
    measures: Instrumentation | None = None


def header_words(p: ChunkedMapParts) -> int:
    """Return the words of a block that hold the headers of the arrays of a chunk."""
    return sum(_HEADER_WORDS + len(x.tensor.dims) for x in p.mapped)


def emit_chunk_call(
    low: Lowering, node: Node, operands: Sequence[Registers]
) -> Sequence[Registers]:
    """Emit the call of a function for every chunk."""
    function: ChunkFunction = low.chunk_functions[node.attrs["number"]]
    w, sizes, p = low.w, low.sizes, function.parts
    arrays = [low.arrays.of(x.tensor, slots) for x, slots in zip(p.mapped, operands, strict=False)]
    count = arrays[0].dims[0]
    chunks = sizes.div(sizes.add(count, str(p.chunk - 1)), str(p.chunk))
    dims = known_dims(node, operands)
    outs = [
        low.arrays.new(
            result.tensor.dtype,
            (count if has_rows else chunks, *(dims[dim] for dim in result.tensor.dims[1:])),
        )
        for result, has_rows in zip(node.results, p.rows, strict=True)
    ]
    shared = [
        slots if not is_object(x.type) else (header_of(low, low.arrays.of(x.tensor, slots)),)
        for x, slots in zip(p.invariants, operands[len(arrays) :], strict=True)
    ]
    limit, first_block = open_limit(low, function.limit), _at(low, "%block", function.blocks)
    row_bytes = [_row_bytes(low, out) for out in outs]

    def emit_chunks(start: str, size: str, thread: str) -> None:
        block_at = w.define(f"getelementptr i64, ptr {first_block}, i64 {thread}")
        block = w.define(f"load ptr, ptr {block_at}")

        def emit_chunk(k: str) -> None:
            number = w.define(f"add i64 {start}, {k}")
            w.when(
                ("chunk", "next"), lambda: is_below_limit(low, limit, number), lambda: run(number)
            )

        def run(number: str) -> None:
            first = w.define(f"mul i64 {number}, {p.chunk}")
            left = w.define(f"sub i64 {count}, {first}")
            rows = w.define(f"call i64 @llvm.smin.i64(i64 {left}, i64 {p.chunk})")
            pass_arguments(low, function, block, arrays, shared, first, rows)
            leave_failed = run_function(low, function, block, number, limit)
            offset = function.results
            for out, bytes, has_rows, x in zip(
                outs, row_bytes, p.rows, p.body.results, strict=True
            ):
                source = w.define(f"load ptr, ptr {_at(low, block, offset)}")
                place = low.sizes.mul(first if has_rows else number, bytes)
                target = w.define(f"getelementptr i8, ptr {out.pointer}, i64 {place}")
                low.arrays.memcpy(target, source, low.sizes.mul(rows, bytes) if has_rows else bytes)
                offset += SLOT_BYTES * len(registers(x.type))
            leave_failed()

        w.loop(size, emit_chunk)

    part = outlined(low, chunks, emit_chunks)
    if part is not None:
        name, context = call_part(low, part)
        most = function.threads
        w.do(
            f"call void @wend.chunks(ptr {name}, ptr {context}, i64 {chunks}, i64 {most}, "
            f"ptr {limit}, ptr %python)"
        )
    check_limit(low, limit)
    return [low.array_result(node, out, k) for k, out in enumerate(outs)]


def open_limit(low: Lowering, offset: int) -> str:
    """Set the limit of chunks, none of which has failed yet; return its address."""
    limit = _at(low, "%block", offset)
    low.w.do(f"store i64 {python_callbacks.NO_LIMIT}, ptr {limit}")
    return limit


def is_below_limit(low: Lowering, limit: str, number: str) -> str:
    """Emit whether a chunk is to run: no earlier one has failed."""
    end = low.w.define(f"load atomic i64, ptr {limit} monotonic, align 8")
    return low.w.define(f"icmp sge i64 {end}, {number}")


def run_function(
    low: Lowering, function: ChunkFunction, block: str, number: str, limit: str
) -> Callable[[], None]:
    """Emit a call of a function, and begin the code for where it has not failed.

    Returns:
        What ends that code; it emits what goes on in any case.
    """
    w, python = low.w, function.python
    _store_word(low, block, python + python_callbacks.CHUNK, number)
    status = w.define(f"call i32 {function.name}(ptr {block})")
    wide = w.define(f"zext i32 {status} to i64")
    _store_word(low, block, python + python_callbacks.STATUS, wide)
    fails = w.define(f"icmp ne i32 {status}, 0")
    failed, good, go = (w.new_label(x) for x in ("failed", "good", "gone"))
    w.branch(fails, failed, good)
    w.start(failed)
    w.define(f"atomicrmw min ptr {limit}, i64 {number} seq_cst")
    w.jump(go)
    w.start(good)

    def end() -> None:
        w.jump(go)
        w.start(go)

    return end


def check_limit(low: Lowering, limit: str) -> None:
    """Leave the function if a chunk has failed, or a signal has ended them."""
    ended = low.w.define(f"load atomic i64, ptr {limit} seq_cst, align 8")
    outer, low.traps.node = low.traps.node, None
    low.traps.check(low.w.define(f"icmp eq i64 {ended}, {python_callbacks.NO_LIMIT}"), CHUNK)
    low.traps.node = outer


def known_dims(node: Node, operands: Sequence[Registers]) -> Mapping[Dim, str]:
    """Return the registers of all sizes that the operands tell."""
    known: dict[Dim, str] = {}
    for x, slots in zip(node.operands, operands, strict=True):
        symbols = [dim for dim in x.tensor.dims if not isinstance(dim, int)]
        known.update(zip(symbols, slots[1:], strict=False))
    dims = (dim for x in (*node.operands, *node.results) for dim in x.tensor.dims)
    known.update((dim, str(dim)) for dim in dims if isinstance(dim, int))
    return known


def _row_bytes(low: Lowering, out: Array) -> str:
    return low.sizes.mul(low.sizes.product(out.dims[1:]), str(out.dtype.itemsize))


def _at(low: Lowering, base: str, offset: int) -> str:
    return low.w.define(f"getelementptr i8, ptr {base}, i64 {offset}")


def _store_word(low: Lowering, base: str, offset: int, value: str) -> None:
    low.w.do(f"store i64 {value}, ptr {_at(low, base, offset)}")


def header_of(low: Lowering, array: Array) -> str:
    """Return the address of a header as Python's arrays have it, for all threads."""
    w, rank = low.w, len(array.dims)
    slot = w.allocate(f"[{_HEADER_WORDS + rank} x i64]")
    header = w.define(f"getelementptr i8, ptr {slot}, i64 0")
    _fill_header(low, header, array.pointer, array.dims)
    return header


def _fill_header(low: Lowering, header: str, data: str, dims: Sequence[str]) -> None:
    first = _at(low, header, SLOT_BYTES * _HEADER_WORDS)
    low.w.do(f"store ptr {data}, ptr {_at(low, header, DATA_OFFSET)}")
    low.w.do(f"store ptr {first}, ptr {_at(low, header, DIMS_OFFSET)}")
    for k, dim in enumerate(dims):
        _store_word(low, first, SLOT_BYTES * k, dim)


def pass_arguments(
    low: Lowering,
    function: ChunkFunction,
    block: str,
    arrays: Sequence[Array],
    shared: Sequence[Registers],
    first: str,
    rows: str,
) -> None:
    """Store the arguments of a chunk in a block."""
    w, p = low.w, function.parts
    offset, header_at = 0, function.headers
    for array in arrays:
        header = _at(low, block, header_at)
        skipped = low.sizes.mul(first, _row_bytes(low, array))
        data = w.define(f"getelementptr i8, ptr {array.pointer}, i64 {skipped}")
        _fill_header(low, header, data, (rows, *array.dims[1:]))
        w.do(f"store ptr {header}, ptr {_at(low, block, offset)}")
        header_at += SLOT_BYTES * (_HEADER_WORDS + len(array.dims))
        offset += SLOT_BYTES
    for x, slots in zip(p.invariants, shared, strict=True):
        if is_object(x.type):
            w.do(f"store ptr {slots[0]}, ptr {_at(low, block, offset)}")
        else:
            store_slots(low, block, offset, x.type, slots)
        offset += param_size(x.type)


EMITTERS: Mapping[Op, Emit] = {chunk_call: emit_chunk_call}
