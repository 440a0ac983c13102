"""Reductions over axes of arrays in memory (D49), and scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.rt.ordering import row_argminmax
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.backends.native.target.writer import Writer
from wend.ir.graph import Node
from wend.ir.op import TABLE, Op
from wend.ops import elementwise, reducing, scanning, shaping

Combine = Callable[[Lowering, Node, Kind, str, str], str]


def _lowest(dtype: np.dtype) -> Any:
    """Return the lowest value of a dtype."""
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    """Return the highest value of a dtype."""
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


# How a reduction combines two elements, and its identity
COMBINERS: Mapping[Op, Combine] = {
    op: ELEMENTS[op.step].emit for op in TABLE.values() if op.step is not None
}


def identity_of(node: Node, kind: Kind) -> str:
    """Return the value that a reduction starts with."""
    if node.op.identity is not None:
        return kind.literal(node.op.identity)
    return kind.literal((_lowest if node.op is reducing.reduce_max else _highest)(kind.dtype))


def check_nonempty(low: Lowering, sizes: Sequence[str]) -> None:
    """Emit a check that no size is 0, since an empty array has no extreme element."""
    for size in sizes:
        is_empty = low.sizes.equal(size, "0")
        if is_empty != "false":
            is_nonempty = (
                "false" if is_empty == "true" else low.w.define(f"xor i1 {is_empty}, true")
            )
            low.traps.check(is_nonempty, BAD_SHAPE)


def row_sum(low: Lowering, kind: Kind, address: str, count: str) -> str:
    """Emit the sum of contiguous floats by NumPy's pairwise summation."""
    if is_literal(count) and int(count) <= _PAIRWISE_BLOCK:
        return _unrolled_row_sum(low, kind, address, int(count))
    low.arrays.uses_pool = True  # declares wend.sum, too
    text = f"call {kind.text} @wend.sum.{kind.suffix}(ptr {address}, i64 {count})"
    return low.w.define(f"fadd {kind.text} {low.w.define(text)}, {kind.literal(0)}")


def _unrolled_row_sum(low: Lowering, kind: Kind, address: str, count: int) -> str:
    """Emit the sum of a row inline, bit for bit as `wend.sum` computes it.

    Partial sums in one vector are halved until one is left; the remaining elements follow.
    """
    w, total, begin = low.w, kind.literal(0), 0

    def load(number: int, kind: Kind) -> str:
        at = w.define(f"getelementptr {kind.element}, ptr {address}, i64 {number}")
        return w.define(f"load {kind.text}, ptr {at}, align {kind.dtype.itemsize}")

    if count >= _PARTIAL_SUMS:
        begin = count - count % _PARTIAL_SUMS
        vector = Kind(kind.dtype, _PARTIAL_SUMS)
        sums = load(0, vector)
        for number in range(_PARTIAL_SUMS, begin, _PARTIAL_SUMS):
            sums = w.define(f"fadd {vector.text} {sums}, {load(number, vector)}")
        while vector.lanes > 1:
            half = Kind(kind.dtype, vector.lanes // 2)
            halves = (_alternate_lanes(w, vector, sums, start) for start in (0, 1))
            sums, vector = w.define(f"fadd {half.text} {next(halves)}, {next(halves)}"), half
        total = w.define(f"fadd {kind.text} {sums}, {total}")
    for number in range(begin, count):
        total = w.define(f"fadd {kind.text} {total}, {load(number, kind)}")
    return total


def _alternate_lanes(w: Writer, kind: Kind, vector: str, start: int) -> str:
    """Return every second lane of a vector; of two lanes, a scalar."""
    if kind.lanes == 2:
        return w.define(f"extractelement {kind.text} {vector}, i64 {start}")
    lanes = ", ".join(f"i32 {k}" for k in range(start, kind.lanes, 2))
    mask = f"<{kind.lanes // 2} x i32> <{lanes}>"
    return w.define(f"shufflevector {kind.text} {vector}, {kind.text} poison, {mask}")


# NumPy's pairwise summation keeps 8 partial sums, and splits a row of more than 128 elements.
_PARTIAL_SUMS, _PAIRWISE_BLOCK = 8, 128

# The byte that decides the result, and how the pointer from `memchr` compares with null if it does
_DECIDING_BYTES = {reducing.reduce_any: (1, "ne"), reducing.reduce_all: (0, "eq")}
_ROW_EXTREMES = {reducing.reduce_max: "max", reducing.reduce_min: "min"}


def emit_reduction(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit one loop if the reduced elements are contiguous, else one over all elements in order."""
    axes, value = node.attrs["axes"], node.operands[0].tensor
    if value.dtype not in REGISTERS:
        return NotImplemented
    if is_scalar(value):
        return [operands[0]]
    return reduce_axes(low, node, low.array(node, 0), axes, node.attrs["keepdims"])


def reduce_axes(
    low: Lowering, node: Node, array: Array, axes: Sequence[int], keepdims: bool
) -> Any:
    """Emit the reduction of a node over axes of an array."""
    combine, kind, rank = COMBINERS[node.op], array.kind, len(array.dims)
    identity = identity_of(node, kind)
    if node.op in (reducing.reduce_max, reducing.reduce_min):
        check_nonempty(low, [array.dims[axis] for axis in axes])
    tail = rank
    while tail and tail - 1 in axes:
        tail -= 1
    count = low.sizes.product(array.dims[tail:])

    def reduce_row(first: str) -> str:
        """Reduce a contiguous row."""
        address = low.arrays.address(array, first)
        row = Array(address, array.dtype, (count,))
        if node.op in (reducing.reduce_sum, shaping.sum_to) and kind.is_real:
            return row_sum(low, kind, address, count)
        if node.op in _ROW_EXTREMES and kind.is_real:
            name = row_argminmax.value_name(_ROW_EXTREMES[node.op], array.dtype)
            return low.calls.row_function(name, kind.text, address, count)
        if node.op in _DECIDING_BYTES and kind.is_bool:
            return _compare_memchr(low, address, count, *_DECIDING_BYTES[node.op])
        (total,) = low.w.fold(
            count,
            [kind.text],
            [identity],
            lambda k, so_far: [combine(low, node, kind, so_far[0], low.arrays.load(row, k))],
        )
        return total

    kept_axes = [k for k in range(rank) if k not in axes]
    if is_scalar(node.results[0].type) and tail == 0:
        return [(reduce_row("0"),)]
    dims = tuple(array.dims[k] if k in kept_axes else "1" for k in range(rank))
    out = low.new_result(node, dims if keepdims else tuple(array.dims[k] for k in kept_axes))
    result = low.array_result(node, out)
    if kept_axes == list(range(tail)):
        low.w.loop(
            low.sizes.product(array.dims[:tail]),
            lambda k: low.arrays.store(out, k, reduce_row(low.sizes.mul(k, count))),
        )
        return [result]
    low.w.loop(low.arrays.count(out), lambda k: low.arrays.store(out, k, identity))
    strides, out_strides = low.sizes.strides(array.dims), low.sizes.strides(dims)
    out_strides = [stride if k in kept_axes else "0" for k, stride in enumerate(out_strides)]

    def add(position: tuple[str, ...]) -> None:
        first = low.arrays.offset(position, strides[:tail])
        element = reduce_row(first) if tail < rank else low.arrays.load(array, first)
        out_offset = low.arrays.offset(position, out_strides[:tail])
        old = low.arrays.load(out, out_offset)
        low.arrays.store(out, out_offset, combine(low, node, kind, old, element))

    low.arrays.for_each_position(array.dims[:tail], add)
    return [result]


def _compare_memchr(low: Lowering, address: str, count: str, byte: int, predicate: str) -> str:
    """Emit a comparison with null of `memchr`, which stops at the first matching byte."""
    low.calls.uses_memchr = True
    match = low.w.define(f"call ptr @memchr(ptr {address}, i32 {byte}, i64 {count})")
    return low.w.define(f"icmp {predicate} ptr {match}, null")


def emit_sum_to(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the sum over broadcast axes."""
    value, result = node.operands[0].tensor, node.results[0].tensor
    if is_scalar(value) and is_scalar(result):
        return [operands[0]]
    if value.dtype not in REGISTERS or not value.dims or result.shape is None:
        return NotImplemented
    if not (value.is_static and result.is_static):
        return _sum_to_known_at_run_time(low, node)
    new_axes = len(value.dims) - len(result.dims)
    pairs = enumerate(zip(value.dims[new_axes:], result.dims, strict=True), new_axes)
    axes = [
        *range(new_axes),
        *(k for k, (dim, target_dim) in pairs if target_dim == 1 and dim != 1),
    ]
    array = low.array(node, 0)
    if is_scalar(result):
        return reduce_axes(low, node, array, axes, keepdims=False)
    if new_axes and len(axes) > new_axes:  # some axes are dropped, others keep one element
        return _sum_to_known_at_run_time(low, node)
    return reduce_axes(low, node, array, axes, keepdims=not new_axes)


def _sum_to_known_at_run_time(low: Lowering, node: Node) -> Any:
    """Emit a sum over all positions in order, to sizes that decide at run time what is summed."""
    array, result = low.array(node, 0), node.results[0].tensor
    if len(node.operands) > 1:
        sizes = low.array(node, 1)
        dims = [low.arrays.load(sizes, str(axis)) for axis in range(len(result.dims))]
    elif result.is_static:
        dims = [str(dim) for dim in result.dims]
    else:
        return NotImplemented
    new_axes = len(array.dims) - len(dims)
    is_one = [low.sizes.equal(dim, "1") for dim in dims]
    for dim, flag, size in zip(dims, is_one, array.dims[new_axes:], strict=True):
        same = low.sizes.equal(dim, size)
        if "true" not in (flag, same):
            low.traps.check(low.w.define(f"or i1 {flag}, {same}"), BAD_SHAPE)
    out = (
        Array(low.w.allocate(array.kind.text), array.dtype, ())
        if is_scalar(result)
        else low.new_result(node, dims)
    )
    kind, combine = array.kind, COMBINERS[node.op]
    low.w.loop(low.arrays.count(out), lambda k: low.arrays.store(out, k, kind.literal(0)))
    strides = [
        low.w.define(f"select i1 {flag}, i64 0, i64 {stride}")
        for flag, stride in zip(is_one, low.sizes.strides(dims), strict=True)
    ]

    def add(position: tuple[str, ...]) -> None:
        at = low.arrays.offset(position, low.sizes.strides(array.dims))
        target = low.arrays.offset(position[new_axes:], strides)
        total = combine(low, node, kind, low.arrays.load(out, target), low.arrays.load(array, at))
        low.arrays.store(out, target, total)

    low.arrays.for_each_position(array.dims, add)
    if is_scalar(result):
        return [(low.arrays.load(out, "0"),)]
    return [low.array_result(node, out)]


# (low, node, kind, elements of the operands, previous result, whether it is the first) -> result
ScanStep = Callable[[Lowering, Node, Kind, Sequence[str], str, str], str]


def _scan(step: ScanStep, initial: float) -> Emit:
    """Return the emitter of a scan along an axis that starts from `initial`."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        value = node.operands[0].tensor
        if value.dtype not in REGISTERS or is_scalar(value):
            return NotImplemented
        arrays, axis = [low.array(node, k) for k in range(len(operands))], node.attrs["axis"]
        source, kind = arrays[0], arrays[0].kind
        for other in arrays:
            low.check_equal_dims(source.dims, other.dims)
        size, strides = source.dims[axis], low.sizes.strides(source.dims)
        out = low.new_result(node, source.dims)
        is_reverse = node.attrs.get("reverse", False)
        others = [k for k in range(len(strides)) if k != axis]

        def scan_line(position: tuple[str, ...]) -> None:
            start = low.arrays.offset(position, [strides[k] for k in others])

            def body(k: str, previous: tuple[str, ...]) -> Sequence[str]:
                is_first = low.w.define(f"icmp eq i64 {k}, 0")
                if is_reverse:
                    k = low.sizes.sub(low.sizes.sub(size, "1"), k)
                at = low.sizes.add(start, low.sizes.mul(k, strides[axis]))
                elements = [low.arrays.load(array, at) for array in arrays]
                result = step(low, node, kind, elements, previous[0], is_first)
                low.arrays.store(out, at, result)
                return [result]

            low.w.fold(size, [kind.text], [kind.literal(initial)], body)

        low.arrays.for_each_position([source.dims[k] for k in others], scan_line)
        return [low.array_result(node, out)]

    return emit


def _combine_step(op: Op) -> ScanStep:
    """Return the step that combines an element with the previous result."""
    return lambda low, node, kind, elements, previous, _: ELEMENTS[op].emit(
        low, node, kind, previous, elements[0]
    )


def _linear_recurrence_step(
    low: Lowering, node: Node, kind: Kind, elements: Sequence[str], previous: str, is_first: str
) -> str:
    """Emit x + factor · previous.

    The first element is x alone, even if its factor is infinite.
    """
    factor, x = elements
    product = ELEMENTS[elementwise.mul].emit(low, node, kind, factor, previous)
    total = ELEMENTS[elementwise.add].emit(low, node, kind, x, product)
    return low.w.define(f"select i1 {is_first}, {kind.text} {x}, {kind.text} {total}")


EMITTERS: Mapping[Op, Emit] = {
    **dict.fromkeys(COMBINERS, emit_reduction),
    shaping.sum_to: emit_sum_to,
    reducing.cumsum: _scan(_combine_step(elementwise.add), -0.0),
    scanning.cumprod: _scan(_combine_step(elementwise.mul), 1),
    scanning.linear_recurrence: _scan(_linear_recurrence_step, 0),
}
