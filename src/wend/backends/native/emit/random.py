"""Random bits by `rt/philox.py`, and quantiles by NumPy's logarithms, which give Python's draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.numpy_loop import (
    call_loop,
    in_memory,
    loaded_result,
    result_in_memory,
)
from wend.backends.native.rt import numpy_loops, philox
from wend.backends.native.rt.numpy_loops import Loop
from wend.backends.native.target.value_layout import Registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import Symbol
from wend.ops import random


def emit_random_bits(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the words of a key and a counter."""
    shape = node.results[0].tensor.shape
    if shape is None:
        return NotImplemented
    key, counter = low.array(node, 0), low.array(node, 1)
    dims = [str(dim) for dim in shape]
    if len(operands) > 2:
        sizes = low.array(node, 2)
        dims = [low.arrays.load(sizes, str(axis)) for axis in range(len(shape))]
        for size in dims:
            low.traps.check(low.w.define(f"icmp sge i64 {size}, 0"), BAD_SHAPE)
    elif any(isinstance(dim, Symbol) for dim in shape):
        return NotImplemented
    out = result_in_memory(low, node, 0, dims)
    low.calls.external[philox.NAME] = f"void @{philox.NAME}({philox.TYPES})"
    pointers = ", ".join(f"ptr {array.pointer}" for array in (key, counter, out))
    low.w.do(f"call void @{philox.NAME}({pointers}, i64 {low.arrays.count(out)})")
    return [loaded_result(low, node, 0, out)]


def emit_exponential(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit −log1p(−x)."""

    def compute(array: Array, out: Array, loop: Loop) -> None:
        _negate(low, array, out)
        _apply(low, loop, out, out)
        _negate(low, out, out)

    return _by_loop(low, node, operands, "log1p", compute)


def emit_gumbel(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit −log(−log x)."""

    def compute(array: Array, out: Array, loop: Loop) -> None:
        _apply(low, loop, array, out)
        _negate(low, out, out)
        _apply(low, loop, out, out)
        _negate(low, out, out)

    return _by_loop(low, node, operands, "log", compute)


def _by_loop(
    low: Lowering, node: Node, operands: Sequence[Registers], ufunc: str, compute: Any
) -> Any:
    dtype: np.dtype = node.operands[0].tensor.dtype
    loop = Loop("", ufunc, f"{dtype.char}->{dtype.char}")
    if dtype.itemsize < 4 or not numpy_loops.is_available(loop):
        return NotImplemented
    array = in_memory(low, node, 0, operands[0])
    out = result_in_memory(low, node, 0, array.dims)
    compute(array, out, loop)
    return [loaded_result(low, node, 0, out)]


def _apply(low: Lowering, loop: Loop, array: Array, out: Array) -> None:
    step = str(array.dtype.itemsize)
    pointers = [array.pointer, out.pointer]
    call_loop(low, loop, pointers, [low.arrays.count(out)], [step, step])


def _negate(low: Lowering, array: Array, out: Array) -> None:
    def each(k: str) -> None:
        x = low.w.define(f"fneg {array.kind.text} {low.arrays.load(array, k)}")
        low.arrays.store(out, k, x)

    low.w.loop(low.arrays.count(out), each)


EMITTERS: Mapping[Op, Emit] = {
    random.random_bits: emit_random_bits,
    random.exponential_quantile: emit_exponential,
    random.gumbel_quantile: emit_gumbel,
}
