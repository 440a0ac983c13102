"""Fourier transforms by NumPy's loops; without them, the NumPy kernels run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.control.host import run_on_host
from wend.backends.native.emit.numpy_loop import stored
from wend.backends.native.rt import numpy_fft
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers, registers
from wend.ir.dtypes import real_of
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import fourier


def emit_transform(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the transforms along an axis."""
    dtype = real_of(node.operands[0].tensor.dtype)
    if not all(numpy_fft.is_available(stem, dtype) for stem in _stems(node)):
        return NotImplemented
    array, axis = low.array(node, 0), node.attrs["axis"]
    points, count = _sizes(low, node, operands, array.dims[axis])
    if is_literal(points) and int(points) < 1:
        return NotImplemented

    def emit() -> Registers:
        out = low.new_result(node, (*array.dims[:axis], count, *array.dims[axis + 1 :]))
        _emit_loops(low, node, array, out, points, Kind(dtype))
        return low.array_result(node, out)

    if is_literal(points):
        return [emit()]
    return [_emit_if_any(low, node, operands, points, emit)]


def _stems(node: Node) -> tuple[str, ...]:
    """Return the names of the loops that a node may call: for an even and an odd size."""
    if node.op is fourier.rfft:
        return "rfft_n_even", "rfft_n_odd"
    return ("irfft",) if node.op is fourier.irfft else ("fft",)


def _sizes(low: Lowering, node: Node, operands: Sequence[Registers], size: str) -> tuple[str, str]:
    """Return the number of points of a transform, and the size of the axis of its result."""
    if node.op is fourier.irfft:
        declared = node.attrs["size"]
        points = str(declared) if isinstance(declared, int) else operands[1][0]
        return points, points
    if node.op is fourier.rfft:
        return size, low.sizes.add(low.sizes.div(size, "2"), "1")
    return size, size


def _emit_if_any(
    low: Lowering,
    node: Node,
    operands: Sequence[Registers],
    points: str,
    emit: Callable[[], Registers],
) -> Registers:
    """Emit transforms of a size that the run knows; of no points, the kernel raises the error."""
    w = low.w
    none, done = w.new_label("none"), w.new_label("done")
    w.branch_unless(w.define(f"icmp sgt i64 {points}, 0"), none)
    result = emit()
    block = w.block
    w.jump(done)
    w.start(none)
    (host_result,) = run_on_host(low, node, operands)
    host_block = w.block
    w.jump(done)
    w.start(done)
    type = node.results[0].type
    return w.merge(registers(type), [(result, block), (host_result, host_block)])


def _emit_loops(
    low: Lowering, node: Node, array: Array, out: Array, points: str, kind: Kind
) -> None:
    """Emit calls of NumPy's loop for all positions of the other axes."""
    w, sizes, axis = low.w, low.sizes, node.attrs["axis"]
    factor = w.allocate(kind.text)
    w.do(f"store {kind.text} {_factor(low, node, points, kind)}, ptr {factor}")
    forward = w.allocate("i8")
    w.do(f"store i8 {0 if node.attrs.get('inverse') else 1}, ptr {forward}")
    before, inner = sizes.product(array.dims[:axis]), sizes.product(array.dims[axis + 1 :])
    itemsizes = [str(x.dtype.itemsize) for x in (array, out)]
    # In bytes, for input and output: between points, and of all points at one outer position
    steps = [sizes.mul(inner, itemsize) for itemsize in itemsizes]
    blocks = [sizes.mul(step, x.dims[axis]) for step, x in zip(steps, (array, out), strict=True)]
    counts = [array.dims[axis], out.dims[axis]]

    def call(count: str, addresses: Sequence[str], between: Sequence[str]) -> None:
        arguments = [
            stored(low, "ptr", [addresses[0], factor, addresses[1]]),
            stored(low, "i64", [count, *counts]),
            stored(low, "i64", [between[0], "0", between[1], *steps]),
            forward,
        ]
        text = ", ".join(f"ptr {pointer}" for pointer in arguments)
        _call_loop(low, _stems(node), kind.dtype, points, text)

    if inner == "1":
        call(before, (array.pointer, out.pointer), blocks)
        return

    def each(k: str) -> None:
        addresses = [
            w.define(f"getelementptr i8, ptr {x.pointer}, i64 {sizes.mul(k, block)}")
            for x, block in zip((array, out), blocks, strict=True)
        ]
        call(inner, addresses, itemsizes)

    w.loop(before, each)


def _call_loop(
    low: Lowering, stems: Sequence[str], dtype: np.dtype, points: str, arguments: str
) -> None:
    """Emit a call of the loop for the parity of the size."""
    w = low.w

    def call(stem: str) -> None:
        low.calls.external[numpy_fft.name(stem, dtype)] = numpy_fft.declaration(stem, dtype)
        w.do(f"call void @{numpy_fft.name(stem, dtype)}({arguments})")

    if len(stems) == 1 or is_literal(points):
        call(stems[int(points) % 2 if len(stems) > 1 else 0])
        return
    even, odd, done = (w.new_label(hint) for hint in ("even", "odd", "done"))
    w.branch(w.define(f"trunc i64 {points} to i1"), odd, even)
    for label, stem in zip((even, odd), stems, strict=True):
        w.start(label)
        call(stem)
        w.jump(done)
    w.start(done)


def _factor(low: Lowering, node: Node, points: str, kind: Kind) -> str:
    """Return what each result is multiplied by, in the precision of NumPy."""
    is_inverse = node.op is fourier.irfft or node.attrs.get("inverse", False)
    match node.attrs["norm"]:
        case "ortho":
            is_root = True
        case "forward" if not is_inverse:
            is_root = False
        case "backward" if is_inverse:
            is_root = False
        case _:
            return kind.literal(1)
    number = low.w.define(f"sitofp i64 {points} to {kind.text}")
    if is_root:
        number = low.w.define(f"call {kind.text} @llvm.sqrt.{kind.suffix}({kind.text} {number})")
    return low.w.define(f"fdiv {kind.text} {kind.literal(1)}, {number}")


EMITTERS: Mapping[Op, Emit] = dict.fromkeys(
    (fourier.fft, fourier.rfft, fourier.irfft), emit_transform
)
