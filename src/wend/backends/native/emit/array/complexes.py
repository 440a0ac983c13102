"""Complex numbers, stored as pairs of reals, and their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array import elementwise
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.emit.scalar.functions import hypot
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops

Pair = tuple[str, str]


def _part_kind(dtype: np.dtype) -> Kind:
    """Return the kind of the reals that a complex dtype consists of."""
    return Kind(np.dtype(f"f{dtype.itemsize // 2}"))


def _load_pair(low: Lowering, array: Array, k: str) -> Pair:
    """Load the real and imaginary parts of element k."""
    kind, real_address = _part_kind(array.dtype), low.arrays.address(array, k)
    imag_address = low.w.define(f"getelementptr {kind.element}, ptr {real_address}, i64 1")
    return low.arrays.load_at(kind, real_address), low.arrays.load_at(kind, imag_address)


def _store_pair(low: Lowering, array: Array, k: str, pair: Pair) -> None:
    """Store the real and imaginary parts of element k."""
    kind, real_address = _part_kind(array.dtype), low.arrays.address(array, k)
    low.arrays.store_at(kind, real_address, pair[0])
    imag_address = low.w.define(f"getelementptr {kind.element}, ptr {real_address}, i64 1")
    low.arrays.store_at(kind, imag_address, pair[1])


def _to_real(emit_element: Callable[[Lowering, Kind, Pair], str]) -> Emit:
    """Return the emitter of an operation from complex to real numbers."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        array = low.array(node, 0)
        kind = _part_kind(array.dtype)

        def element(k: str) -> str:
            return emit_element(low, kind, _load_pair(low, array, k))

        if is_scalar(node.results[0].type):
            return [(element("0"),)]
        return [low.computed_result(node, array.dims, element)]

    return emit


def emit_conj(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the complex conjugate: the imaginary parts change sign."""
    array = low.array(node, 0)
    out, kind = low.new_result(node, array.dims), _part_kind(array.dtype)

    def each(k: str) -> None:
        real, imag = _load_pair(low, array, k)
        _store_pair(low, out, k, (real, low.w.define(f"fneg {kind.text} {imag}")))

    low.w.loop(low.arrays.count(out), each)
    return [low.array_result(node, out)]


def emit_complex_cast(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the conversion of numbers to complex ones."""
    source, target = (value.tensor.dtype for value in (node.operands[0], node.results[0]))
    if target.kind != "c":
        return elementwise.EMITTERS[ops.cast](low, node, operands)
    if source.kind != "c" and source not in REGISTERS:
        return NotImplemented
    part = _part_kind(target)
    if source.kind == "c":
        source_part = _part_kind(source)

        def pair(k: str) -> Pair:
            real, imag = _load_pair(low, array, k)
            return emit_cast(low.w, source_part, part, real), emit_cast(
                low.w, source_part, part, imag
            )

    else:

        def pair(k: str) -> Pair:
            x = operands[0][0] if is_number else low.arrays.load(array, k)
            return emit_cast(low.w, Kind(source), part, x), part.literal(0)

    is_number = is_scalar(node.operands[0].type) and source in REGISTERS
    array = Array("", source, ()) if is_number else low.array(node, 0)
    out = low.new_result(node, array.dims)
    low.w.loop(low.arrays.count(out), lambda k: _store_pair(low, out, k, pair(k)))
    return [low.array_result(node, out)]


def emit_complex(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit complex numbers from their real and imaginary parts."""
    if is_scalar(node.operands[0].type):
        out = low.new_result(node, ())
        _store_pair(low, out, "0", (operands[0][0], operands[1][0]))
        return [low.array_result(node, out)]
    real, imag = low.array(node, 0), low.array(node, 1)
    low.check_equal_dims(real.dims, imag.dims)
    out = low.new_result(node, real.dims)
    low.w.loop(
        low.arrays.count(out),
        lambda k: _store_pair(low, out, k, (low.arrays.load(real, k), low.arrays.load(imag, k))),
    )
    return [low.array_result(node, out)]


def _arithmetic(emit_pair: Callable[..., Pair], emit_real: Emit) -> Emit:
    """Return the emitter of an operation on complex numbers that also exists for reals."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        if node.operands[0].tensor.dtype.kind != "c":
            return emit_real(low, node, operands)
        arrays = [low.array(node, k) for k in range(len(operands))]
        low.check_equal_dims(arrays[0].dims, arrays[-1].dims)
        out, part_type = low.new_result(node, arrays[0].dims), _part_kind(arrays[0].dtype).text

        def apply(opcode: str, x: str, y: str) -> str:
            return low.w.define(f"{opcode} {part_type} {x}, {y}")

        low.w.loop(
            low.arrays.count(out),
            lambda k: _store_pair(
                low, out, k, emit_pair(apply, *(_load_pair(low, x, k) for x in arrays))
            ),
        )
        return [low.array_result(node, out)]

    return emit


def emit_select(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the choice between two complex numbers for each element of a mask."""
    if node.results[0].tensor.dtype.kind != "c":
        return elementwise.EMITTERS[ops.select](low, node, operands)
    is_number = is_scalar(node.operands[0].type)
    x, y = low.array(node, 1), low.array(node, 2)
    mask = x if is_number else low.array(node, 0)
    low.check_equal_dims(mask.dims, x.dims)
    low.check_equal_dims(x.dims, y.dims)
    out, part = low.new_result(node, x.dims), _part_kind(x.dtype).text

    def each(k: str) -> None:
        pred = operands[0][0] if is_number else low.arrays.load(mask, k)
        pairs = zip(_load_pair(low, x, k), _load_pair(low, y, k), strict=True)
        parts = [low.w.define(f"select i1 {pred}, {part} {a}, {part} {b}") for a, b in pairs]
        _store_pair(low, out, k, (parts[0], parts[1]))

    low.w.loop(low.arrays.count(out), each)
    return [low.array_result(node, out)]


def _product(apply: Callable[[str, str, str], str], x: Pair, y: Pair) -> Pair:
    """Emit the product of two complex numbers."""
    real = apply("fsub", apply("fmul", x[0], y[0]), apply("fmul", x[1], y[1]))
    return real, apply("fadd", apply("fmul", x[0], y[1]), apply("fmul", x[1], y[0]))


def emit_absolute(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit absolute values of complex numbers; a single one takes C's `hypot`, as in Python."""
    if is_scalar(node.results[0].type):
        return _to_real(_absolute)(low, node, operands)
    return _to_real(lambda low, kind, pair: hypot(low, kind, *pair))(low, node, operands)


def _absolute(low: Lowering, kind: Kind, pair: Pair) -> str:
    wide = kind.of(FLOAT64)
    absolute = low.calls.from_libm("hypot", *(emit_cast(low.w, kind, wide, x) for x in pair))
    return emit_cast(low.w, wide, kind, absolute)


EMITTERS: Mapping[Op, Emit] = {
    ops.real: _to_real(lambda low, kind, pair: pair[0]),
    ops.imag: _to_real(lambda low, kind, pair: pair[1]),
    ops.complex_abs: emit_absolute,
    ops.conj: emit_conj,
    ops.cast: emit_complex_cast,
    ops.complex: emit_complex,
    ops.select: emit_select,
    **{
        op: _arithmetic(emit_pair, elementwise.EMITTERS[op])
        for op, emit_pair in (
            (ops.add, lambda apply, x, y: (apply("fadd", x[0], y[0]), apply("fadd", x[1], y[1]))),
            (ops.sub, lambda apply, x, y: (apply("fsub", x[0], y[0]), apply("fsub", x[1], y[1]))),
            (ops.neg, lambda apply, x: (apply("fmul", x[0], "-1.0"), apply("fmul", x[1], "-1.0"))),
            (ops.mul, _product),
        )
    },
}
