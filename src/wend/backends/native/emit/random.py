"""Random bits by `rt/philox.py`, quantiles by NumPy's logarithms, draws by NumPy's functions."""

from __future__ import annotations

import math
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
from wend.backends.native.rt import legacy_draws, numpy_draws, numpy_loops, philox, twister
from wend.backends.native.rt.numpy_loops import Loop
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.platform import platform
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import Symbol
from wend.ops import effects, random


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


def emit_host_action(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a draw by a function of NumPy's; Python makes other calls."""
    draw = node.attrs["action"].draw
    if draw is None or not platform().is_process:
        return NotImplemented
    is_own = draw.function in _OWN
    if not (is_own or numpy_draws.is_available(draw.function)):
        return NotImplemented
    w, result, passed = low.w, node.results[1].tensor, node.operands[-len(draw.operands) :]
    *parameters, (address,) = operands[-len(draw.operands) :]
    typed = [
        f"{REGISTERS[value.tensor.dtype]} {x}"
        for value, (x,) in zip(passed, parameters, strict=False)
    ]
    bits = w.define(f"inttoptr i64 {address} to ptr")
    dims = [str(dim) for dim in result.dims]
    count = str(math.prod(map(int, dims)))
    if draw.is_legacy and not is_own:
        bits = w.define(f"load ptr, ptr {bits}")
    if draw.function == _BOUNDED:
        out = result_in_memory(low, node, 1, dims)
        function = _declared(low, draw.function, "void", "ptr, i64, i64, i64, i1 zeroext, ptr")
        ends = f"i64 {count}, i1 zeroext {str(draw.is_legacy).lower()}, ptr {out.pointer}"
        w.do(f"call void {function}(ptr {bits}, {', '.join(typed)}, {ends})")
        return [(), loaded_result(low, node, 1, out)]

    def drawn() -> str:
        if is_own:
            return _own_draw(low, draw.function, bits, [x for (x,) in parameters])
        type = REGISTERS[result.dtype]
        types = ", ".join(["ptr", *(x.partition(" ")[0] for x in typed)])
        function = _declared(low, draw.function, type, types)
        return w.define(f"call {type} {function}({', '.join([f'ptr {bits}', *typed])})")

    if is_scalar(node.results[1].type):
        return [(), (drawn(),)]
    out = low.new_result(node, dims, 1)
    w.loop(count, lambda k: low.arrays.store(out, k, drawn()))
    return [(), low.array_result(node, out, 1)]


# By function: the name, the types of its parameters and of its result
_OWN = {
    effects.POLAR: (legacy_draws.NAME, "ptr", "double"),
    effects.TWISTER: (twister.RANDOM, "ptr, ptr", "double"),
    effects.TWISTER_BELOW: (twister.BELOW, "ptr, ptr, i64", "i64"),
}


def _own_draw(low: Lowering, function: str, state: str, parameters: Sequence[str]) -> str:
    """Emit a draw by a function of wend's, and the shift and scale of its number."""
    w, (name, types, type) = low.w, _OWN[function]
    low.calls.external[name] = f"{type} @{name}({types})"
    passed = [f"ptr {state}"]
    if function != effects.POLAR:
        passed.append("ptr %python")
    if function == effects.TWISTER_BELOW:
        passed.append(f"i64 {parameters[1]}")
        x = w.define(f"call i64 @{name}({', '.join(passed)})")
        return w.define(f"add i64 {parameters[0]}, {x}")
    x = w.define(f"call double @{name}({', '.join(passed)})")
    if not parameters:
        return x
    return w.define(f"fadd double {parameters[0]}, {w.define(f'fmul double {parameters[1]}, {x}')}")


def _declared(low: Lowering, stem: str, result: str, types: str) -> str:
    """Declare a function of NumPy's, and return how the module calls it."""
    name = numpy_draws.name(stem)
    low.calls.external[name] = f"{result} @{name}({types})"
    return f"@{name}"


_BOUNDED = "random_bounded_uint64_fill"  # draws integers below a bound into memory


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
    effects.host_action: emit_host_action,
    random.random_bits: emit_random_bits,
    random.exponential_quantile: emit_exponential,
    random.gumbel_quantile: emit_gumbel,
}
