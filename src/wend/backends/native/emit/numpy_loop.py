"""Calls of NumPy's inner loops; elementwise operations without native code are computed by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import FAILED
from wend.backends.native.emit.control.host import emit_host, run_on_host
from wend.backends.native.rt import numpy_loops
from wend.backends.native.rt.numpy_loops import Loop
from wend.backends.native.target.kinds import REGISTERS, memory_type
from wend.backends.native.target.platform import platform
from wend.backends.native.target.value_layout import Registers, is_scalar, registers
from wend.ir.graph import Node, Value
from wend.ir.types import TensorType
from wend.ops import elementwise


def stored(low: Lowering, type: str, numbers: Sequence[str]) -> str:
    """Store numbers in the frame of the function; return their address."""
    w = low.w
    address = w.allocate(f"[{len(numbers)} x {type}]")
    for k, number in enumerate(numbers):
        at = w.define(f"getelementptr {type}, ptr {address}, i64 {k}") if k else address
        w.do(f"store {type} {number}, ptr {at}")
    return address


def call_loop(
    low: Lowering, loop: Loop, pointers: Sequence[str], sizes: Sequence[str], steps: Sequence[str]
) -> None:
    """Emit a call of a loop."""
    low.calls.external[loop.function] = f"void @{loop.function}({numpy_loops.TYPES})"
    if loop.data != "null":
        low.calls.external[loop.data] = f"void {loop.data}()"
    arguments = [
        stored(low, "ptr", pointers),
        stored(low, "i64", sizes),
        stored(low, "i64", steps),
        loop.data,
    ]
    low.w.do(f"call void @{loop.function}({', '.join(f'ptr {x}' for x in arguments)})")


def emit_fallback(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a node without native code: by the loop of its kernel, a ufunc, else as a host call."""
    loop = elementwise_loop(node)
    if loop is None:
        return emit_host(low, node, operands)
    arrays = [in_memory(low, node, k, operands[k]) for k in range(len(operands))]
    for other in arrays[1:]:
        low.check_equal_dims(arrays[0].dims, other.dims)
    out = result_in_memory(low, node, 0, arrays[0].dims)
    arrays.append(out)
    steps = [str(array.dtype.itemsize) for array in arrays]
    pointers, count = [array.pointer for array in arrays], low.arrays.count(out)
    if not node.op.errors_of(node):
        call_loop(low, loop, pointers, [count], steps)
        return [loaded_result(low, node, 0, out)]
    # The loop would raise an error itself, so it is not called for what has none.
    has_powers = _has_powers(low, arrays[1])
    count = low.w.define(f"select i1 {has_powers}, i64 {count}, i64 0")
    call_loop(low, loop, pointers, [count], steps)
    return or_by_kernel(low, node, operands, [out], has_powers)


def _has_powers(low: Lowering, exponents: Array) -> str:
    """Emit whether no exponent is negative, of which integers have no power."""
    kind = exponents.kind

    def body(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
        x = low.arrays.load(exponents, k)
        is_whole = low.w.define(f"icmp sge {kind.text} {x}, 0")
        return [low.w.define(f"and i1 {so_far[0]}, {is_whole}")]

    if kind.is_unsigned:
        return "true"
    return low.w.fold(low.arrays.count(exponents), ["i1"], ["true"], body)[0]


def or_by_kernel(
    low: Lowering, node: Node, operands: Sequence[Registers], outs: Sequence[Array], succeeded: str
) -> list[Registers]:
    """Return the registers of results in memory, or where none were found those of the kernel."""
    w = low.w
    native_results = [loaded_result(low, node, k, out) for k, out in enumerate(outs)]
    if not platform().is_process:
        low.traps.check(succeeded, FAILED)
        return native_results
    failed, done = w.new_label("none"), w.new_label("done")
    w.branch_unless(succeeded, failed)
    native_block = w.block
    w.jump(done)
    w.start(failed)
    for value, out in zip(node.results, outs, strict=True):
        if not is_scalar(value.type):
            low.arrays.release(out.pointer)
    host_results = run_on_host(low, node, operands)
    host_block = w.block
    w.jump(done)
    w.start(done)
    return [
        w.merge(registers(value.type), [(native, native_block), (host, host_block)])
        for value, native, host in zip(node.results, native_results, host_results, strict=True)
    ]


def elementwise_loop(node: Node) -> Loop | None:
    """Return the loop that computes a node element by element; None if there is none."""
    kernel: Any = node.op.kernel
    if not isinstance(kernel, np.ufunc) or kernel.signature is not None or len(node.results) != 1:
        return None
    name = kernel.__name__
    if getattr(np, name, None) is not kernel:
        return None
    if node.op.errors_of(node) and node.op is not elementwise.pow:
        return None
    values = (*node.operands, *node.results)
    if not all(isinstance(v.type, TensorType) and v.type.shape is not None for v in values):
        return None
    letters = [v.tensor.dtype.char for v in values]
    loop = Loop("", name, f"{''.join(letters[:-1])}->{letters[-1]}")
    return loop if numpy_loops.is_available(loop) else None


def in_memory(low: Lowering, node: Node, k: int, slots: Registers) -> Array:
    """Return an operand as an array; a number in a register is stored in the frame."""
    value = node.operands[k]
    if not is_scalar(value.type):
        return low.array(node, k)
    array = _in_frame(low, value)
    low.arrays.store(array, "0", slots[0])
    return array


def result_in_memory(low: Lowering, node: Node, k: int, dims: Sequence[str]) -> Array:
    """Return the memory of a result; of a number that has a register, in the frame."""
    value = node.results[k]
    return _in_frame(low, value) if is_scalar(value.type) else low.new_result(node, dims, k)


def loaded_result(low: Lowering, node: Node, k: int, array: Array) -> Registers:
    """Return the registers of a result in memory."""
    if is_scalar(node.results[k].type):
        return (low.arrays.load(array, "0"),)
    return low.array_result(node, array, k)


def _in_frame(low: Lowering, value: Value) -> Array:
    dtype: Any = value.tensor.dtype
    return Array(low.w.allocate(memory_type(REGISTERS[dtype])), dtype, ())
