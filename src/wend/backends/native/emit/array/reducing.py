"""Reductions over axes, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.rt import row_argminmax
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.sizes import known
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.backends.native.target.writer import Writer
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise, reducing, scanning, shaping

Combine = Callable[[Lowering, Node, Kind, str, str], str]


def _combined(op: Op) -> Combine:
    return ELEMENTS[op].write


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


# What two elements become, and what it starts with
WAYS: Mapping[Op, Combine] = {
    reducing.reduce_sum: _combined(elementwise.add),
    shaping.sum_to: _combined(elementwise.add),
    reducing.reduce_prod: _combined(elementwise.mul),
    reducing.reduce_max: _combined(elementwise.maximum),
    reducing.reduce_min: _combined(elementwise.minimum),
    reducing.reduce_any: _combined(elementwise.bit_or),
    reducing.reduce_all: _combined(elementwise.bit_and),
}
_STARTS: Mapping[Op, Callable[[np.dtype], Any]] = {
    reducing.reduce_sum: lambda dtype: 0,
    shaping.sum_to: lambda dtype: 0,
    reducing.reduce_prod: lambda dtype: 1,
    reducing.reduce_max: _lowest,
    reducing.reduce_min: _highest,
    reducing.reduce_any: lambda dtype: False,
    reducing.reduce_all: lambda dtype: True,
}


def identity_of(node: Node, kind: Kind) -> str:
    """What a reduction starts with."""
    return kind.literal(_STARTS[node.op](kind.dtype))


def expect_some(low: Lowering, sizes: Sequence[str]) -> None:
    """Leave the function where a size is 0, since there is no extreme element."""
    for size in sizes:
        equal = low.sizes.equal(size, "0")
        if equal != "false":
            some = "false" if equal == "true" else low.w.define(f"xor i1 {equal}, true")
            low.traps.check(some, BAD_SHAPE)


def sum_of_row(low: Lowering, kind: Kind, address: str, count: str) -> str:
    """The sum of floats side by side, as NumPy adds them."""
    if known(count) and int(count) <= _FEW:
        return _sum_of_few(low, kind, address, int(count))
    low.arrays.used = True  # the function is part of that library
    text = f"call {kind.text} @wend.sum.{kind.suffix}(ptr {address}, i64 {count})"
    return low.w.define(f"fadd {kind.text} {low.w.define(text)}, {kind.literal(0)}")


def _sum_of_few(low: Lowering, kind: Kind, address: str, count: int) -> str:
    """The same sum in place: eight partial sums in a vector, halved to one, then what is left."""
    w, total, first = low.w, kind.literal(0), 0

    def load(number: int, kind: Kind) -> str:
        at = w.define(f"getelementptr {kind.element}, ptr {address}, i64 {number}")
        return w.define(f"load {kind.text}, ptr {at}, align {kind.dtype.itemsize}")

    if count >= _PARTS:
        first = count - count % _PARTS
        parts = Kind(kind.dtype, _PARTS)
        sums = load(0, parts)
        for number in range(_PARTS, first, _PARTS):
            sums = w.define(f"fadd {parts.text} {sums}, {load(number, parts)}")
        while parts.lanes > 1:
            half = Kind(kind.dtype, parts.lanes // 2)
            both = (_every_second(w, parts, sums, start) for start in (0, 1))
            sums, parts = w.define(f"fadd {half.text} {next(both)}, {next(both)}"), half
        total = w.define(f"fadd {kind.text} {sums}, {total}")
    for number in range(first, count):
        total = w.define(f"fadd {kind.text} {total}, {load(number, kind)}")
    return total


def _every_second(w: Writer, kind: Kind, vector: str, start: int) -> str:
    """Half of a vector's numbers; of two, one by itself."""
    if kind.lanes == 2:
        return w.define(f"extractelement {kind.text} {vector}, i64 {start}")
    numbers = ", ".join(f"i32 {k}" for k in range(start, kind.lanes, 2))
    mask = f"<{kind.lanes // 2} x i32> <{numbers}>"
    return w.define(f"shufflevector {kind.text} {vector}, {kind.text} poison, {mask}")


# So many numbers NumPy adds at once, and so many without halving them first.
_PARTS, _FEW = 8, 128

# What byte is looked for, and how what is found compares with a null pointer
_SOUGHT = {reducing.reduce_any: (1, "ne"), reducing.reduce_all: (0, "eq")}
_EXTREMES = {reducing.reduce_max: "max", reducing.reduce_min: "min"}


def emit_reduction(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """One loop where what is reduced lies side by side, else one over all elements in order."""
    axes, value = node.attrs["axes"], node.operands[0].tensor
    if value.dtype not in REGISTERS:
        return NotImplemented
    if is_scalar(value):
        return [operands[0]]
    return reduce_axes(low, node, low.array(node, 0), axes, node.attrs["keepdims"])


def reduce_axes(
    low: Lowering, node: Node, array: Array, axes: Sequence[int], keepdims: bool
) -> Any:
    """The reduction of a node over axes of an array."""
    combine, kind, rank = WAYS[node.op], array.kind, len(array.dims)
    identity = identity_of(node, kind)
    if node.op in (reducing.reduce_max, reducing.reduce_min):
        expect_some(low, [array.dims[axis] for axis in axes])
    tail = rank
    while tail and tail - 1 in axes:
        tail -= 1
    count = low.sizes.product(array.dims[tail:])

    def block(first: str) -> str:
        """All elements of a row."""
        address = low.arrays.address(array, first)
        row = Array(address, array.dtype, (count,))
        if node.op in (reducing.reduce_sum, shaping.sum_to) and kind.is_real:
            return sum_of_row(low, kind, address, count)
        if node.op in _EXTREMES and kind.is_real:
            name = row_argminmax.value_name(_EXTREMES[node.op], array.dtype)
            return low.calls.of_row(name, kind.text, address, count)
        if node.op in _SOUGHT and kind.is_bool:
            return _has_byte(low, address, count, *_SOUGHT[node.op])
        (total,) = low.w.fold(
            count,
            [kind.text],
            [identity],
            lambda k, so_far: [combine(low, node, kind, so_far[0], low.arrays.load(row, k))],
        )
        return total

    kept = [k for k in range(rank) if k not in axes]
    if is_scalar(node.results[0].type) and tail == 0:
        return [(block("0"),)]
    dims = tuple(array.dims[k] if k in kept else "1" for k in range(rank))
    made = low.new_result(node, dims if keepdims else tuple(array.dims[k] for k in kept))
    result = low.give(node, made)
    if kept == list(range(tail)):
        outer = low.sizes.product(array.dims[:tail])

        def each(k: str) -> None:
            low.arrays.store(made, k, block(low.sizes.mul(k, count)))

        low.w.loop(outer, each)
        return [result]
    low.w.loop(low.arrays.count(made), lambda k: low.arrays.store(made, k, identity))
    own, into = low.sizes.strides(array.dims), low.sizes.strides(dims)
    into = [stride if k in kept else "0" for k, stride in enumerate(into)]

    def add(position: tuple[str, ...]) -> None:
        first = low.arrays.offset(position, own[:tail])
        found = block(first) if tail < rank else low.arrays.load(array, first)
        place = low.arrays.offset(position, into[:tail])
        old = low.arrays.load(made, place)
        low.arrays.store(made, place, combine(low, node, kind, old, found))

    low.arrays.nest(array.dims[:tail], add)
    return [result]


def _has_byte(low: Lowering, address: str, count: str, byte: int, how: str) -> str:
    """Whether there is a byte, by the C library: it stops where the first one is."""
    low.calls.finds_bytes = True
    found = low.w.define(f"call ptr @memchr(ptr {address}, i32 {byte}, i64 {count})")
    return low.w.define(f"icmp {how} ptr {found}, null")


def emit_sum_to(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The sum over what was broadcast."""
    value, result = node.operands[0].tensor, node.results[0].tensor
    if is_scalar(value) and is_scalar(result):
        return [operands[0]]
    if not (value.is_static and result.is_static) or value.dtype not in REGISTERS:
        return NotImplemented
    if is_scalar(value):
        return NotImplemented
    lead = len(value.dims) - len(result.dims)
    pairs = enumerate(zip(value.dims[lead:], result.dims, strict=True), lead)
    axes = [*range(lead), *(k for k, (mine, theirs) in pairs if theirs == 1 and mine != 1)]
    array = low.array(node, 0)
    if is_scalar(result):
        return reduce_axes(low, node, array, axes, keepdims=False)
    if lead and len(axes) > lead:
        return NotImplemented  # some axes go, others stay with one element
    return reduce_axes(low, node, array, axes, keepdims=not lead)


# What an element becomes: from those of the operands, what the one before has become, and whether
# it is the first
Step = Callable[[Lowering, Node, Kind, Sequence[str], str, str], str]


def _running(step: Step, neutral: float) -> Emit:
    """Each element from the one before it along an axis, the first from `neutral`."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        value = node.operands[0].tensor
        if value.dtype not in REGISTERS or is_scalar(value):
            return NotImplemented
        arrays, axis = [low.array(node, k) for k in range(len(operands))], node.attrs["axis"]
        source, kind = arrays[0], arrays[0].kind
        for other in arrays:
            for mine, theirs in zip(source.dims, other.dims, strict=True):
                low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
        size, own = source.dims[axis], low.sizes.strides(source.dims)
        made = low.new_result(node, source.dims)
        is_reverse = node.attrs.get("reverse", False)
        others = [k for k in range(len(own)) if k != axis]

        def line(position: tuple[str, ...]) -> None:
            start = low.arrays.offset(position, [own[k] for k in others])

            def body(k: str, before: tuple[str, ...]) -> Sequence[str]:
                is_first = low.w.define(f"icmp eq i64 {k}, 0")
                if is_reverse:
                    k = low.sizes.sub(low.sizes.sub(size, "1"), k)
                at = low.sizes.add(start, low.sizes.mul(k, own[axis]))
                given = [low.arrays.load(array, at) for array in arrays]
                found = step(low, node, kind, given, before[0], is_first)
                low.arrays.store(made, at, found)
                return [found]

            low.w.fold(size, [kind.text], [kind.literal(neutral)], body)

        low.arrays.nest([source.dims[k] for k in others], line)
        return [low.give(node, made)]

    return emit


def _with_before(op: Op) -> Step:
    combine = _combined(op)
    return lambda low, node, kind, given, before, _: combine(low, node, kind, before, given[0])


def _add_multiple(
    low: Lowering, node: Node, kind: Kind, given: Sequence[str], before: str, is_first: str
) -> str:
    """Where there is none before, its factor does not count, be it infinite."""
    factor, x = given
    product = _combined(elementwise.mul)(low, node, kind, factor, before)
    total = _combined(elementwise.add)(low, node, kind, x, product)
    return low.w.define(f"select i1 {is_first}, {kind.text} {x}, {kind.text} {total}")


EMITTERS: Mapping[Op, Emit] = {
    **dict.fromkeys(WAYS, emit_reduction),
    shaping.sum_to: emit_sum_to,
    reducing.cumsum: _running(_with_before(elementwise.add), -0.0),
    scanning.cumprod: _running(_with_before(elementwise.mul), 1),
    scanning.linear_recurrence: _running(_add_multiple, 0),
}
