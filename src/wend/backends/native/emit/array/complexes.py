"""Complex numbers and their parts: pairs of reals in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.array import elementwise
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops

Pair = tuple[str, str]


def _parts(dtype: np.dtype) -> Kind:
    """The reals that numbers of a complex dtype are made of."""
    return Kind(np.dtype(f"f{dtype.itemsize // 2}"))


def _load(low: Lowering, array: Array, k: str) -> Pair:
    kind, first = _parts(array.dtype), low.arrays.address(array, k)
    second = low.w.define(f"getelementptr {kind.element}, ptr {first}, i64 1")
    return low.arrays.load_at(kind, first), low.arrays.load_at(kind, second)


def _store(low: Lowering, array: Array, k: str, pair: Pair) -> None:
    kind, first = _parts(array.dtype), low.arrays.address(array, k)
    low.arrays.store_at(kind, first, pair[0])
    second = low.w.define(f"getelementptr {kind.element}, ptr {first}, i64 1")
    low.arrays.store_at(kind, second, pair[1])


def _to_real(write: Callable[[Lowering, Kind, Pair], str]) -> Emit:
    """The emitter of an operation that makes a real of each complex number."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        array = low.array(node, 0)
        kind = _parts(array.dtype)

        def element(k: str) -> str:
            return write(low, kind, _load(low, array, k))

        if is_scalar(node.results[0].type):
            return [(element("0"),)]
        made = low.new_result(node, array.dims)
        low.w.loop(low.arrays.count(made), lambda k: low.arrays.store(made, k, element(k)))
        return [low.give(node, made)]

    return emit


def emit_conj(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The imaginary part turned."""
    array = low.array(node, 0)
    made, kind = low.new_result(node, array.dims), _parts(array.dtype)

    def each(k: str) -> None:
        real, imag = _load(low, array, k)
        _store(low, made, k, (real, low.w.define(f"fneg {kind.text} {imag}")))

    low.w.loop(low.arrays.count(made), each)
    return [low.give(node, made)]


def emit_complex(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Numbers made of their parts."""
    if is_scalar(node.operands[0].type):
        made = low.new_result(node, ())
        _store(low, made, "0", (operands[0][0], operands[1][0]))
        return [low.give(node, made)]
    real, imag = low.array(node, 0), low.array(node, 1)
    for mine, theirs in zip(real.dims, imag.dims, strict=True):
        low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
    made = low.new_result(node, real.dims)
    low.w.loop(
        low.arrays.count(made),
        lambda k: _store(low, made, k, (low.arrays.load(real, k), low.arrays.load(imag, k))),
    )
    return [low.give(node, made)]


def _arithmetic(write: Callable[..., Pair], of_reals: Emit) -> Emit:
    """The emitter of an operation that reals have, too."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        if node.operands[0].tensor.dtype.kind != "c":
            return of_reals(low, node, operands)
        arrays = [low.array(node, k) for k in range(len(operands))]
        for mine, theirs in zip(arrays[0].dims, arrays[-1].dims, strict=True):
            low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
        made, type = low.new_result(node, arrays[0].dims), _parts(arrays[0].dtype).text

        def do(opcode: str, x: str, y: str) -> str:
            return low.w.define(f"{opcode} {type} {x}, {y}")

        low.w.loop(
            low.arrays.count(made),
            lambda k: _store(low, made, k, write(do, *(_load(low, x, k) for x in arrays))),
        )
        return [low.give(node, made)]

    return emit


def _product(do: Callable[[str, str, str], str], x: Pair, y: Pair) -> Pair:
    real = do("fsub", do("fmul", x[0], y[0]), do("fmul", x[1], y[1]))
    return real, do("fadd", do("fmul", x[0], y[1]), do("fmul", x[1], y[0]))


def _size(low: Lowering, kind: Kind, pair: Pair) -> str:
    wide = kind.of(FLOAT64)
    found = low.calls.from_libm("hypot", *(write_cast(low.w, kind, wide, x) for x in pair))
    return write_cast(low.w, wide, kind, found)


EMITTERS: Mapping[Op, Emit] = {
    ops.real: _to_real(lambda low, kind, pair: pair[0]),
    ops.imag: _to_real(lambda low, kind, pair: pair[1]),
    ops.complex_abs: _to_real(_size),
    ops.conj: emit_conj,
    ops.complex: emit_complex,
    **{
        op: _arithmetic(write, elementwise.EMITTERS[op])
        for op, write in (
            (ops.add, lambda do, x, y: (do("fadd", x[0], y[0]), do("fadd", x[1], y[1]))),
            (ops.sub, lambda do, x, y: (do("fsub", x[0], y[0]), do("fsub", x[1], y[1]))),
            (ops.neg, lambda do, x: (do("fmul", x[0], "-1.0"), do("fmul", x[1], "-1.0"))),
            (ops.mul, _product),
        )
    },
}
