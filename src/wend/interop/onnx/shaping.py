"""Operations on shapes, joins and slices, reductions and products."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.interop.onnx.builder import ELEMENT_TYPES, ModelBuilder, unsupported
from wend.ir.dtypes import INT64
from wend.ir.graph import Node
from wend.ir.types import Dim, Symbol
from wend.ops.shapes import WHOLE

Names = Sequence[str]
_LAST = np.iinfo(np.int64).max
_FIRST = np.iinfo(np.int64).min


def _shape(m: ModelBuilder, node: Node, sizes: Names) -> str:
    """Return the name of a shape: an operand where only the run knows it, else a constant."""
    return sizes[0] if sizes else m.integers(*node.attrs["shape"])


def _size(m: ModelBuilder, x: str, axis: int) -> str:
    return m.emit("Gather", m.emit("Shape", x), m.constant(axis, np.int64), axis=0)


def _iota(m: ModelBuilder, node: Node, x: Names) -> str:
    length = x[0] if x else m.constant(node.attrs["length"], np.int64)
    if x and node.operands[0].tensor.dtype != INT64:
        length = m.emit("Cast", length, to=ELEMENT_TYPES[INT64])
    positions = m.emit("Range", m.constant(0, np.int64), length, m.constant(1, np.int64))
    dtype = node.attrs["dtype"]
    return positions if dtype == INT64 else m.emit("Cast", positions, to=ELEMENT_TYPES[dtype])


def _from_elements(m: ModelBuilder, node: Node, x: Names) -> str:
    ones = m.integers(1)
    vector = m.emit("Concat", *(m.emit("Reshape", name, ones) for name in x), axis=0)
    return m.emit("Reshape", vector, m.integers(*node.attrs["shape"]))


def _broadcast_to(m: ModelBuilder, node: Node, x: Names) -> str:
    if node.results[0].type == node.operands[0].type and node.results[0].tensor.is_static:
        return x[0]
    return m.emit("Expand", x[0], _shape(m, node, x[1:]))


def _broadcast_shapes(m: ModelBuilder, node: Node, x: Names) -> str:
    ranks = [operand.tensor.dims[0] for operand in node.operands]
    known = [rank for rank in ranks if isinstance(rank, int)]
    if len(known) < len(ranks):
        raise unsupported(node, "a rank is unknown", "export it for arrays of known rank.")
    padded = [
        m.emit("Concat", m.integers(*[1] * (max(known) - rank)), name, axis=0)
        if rank < max(known)
        else name
        for rank, name in zip(known, x, strict=True)
    ]
    return functools.reduce(
        lambda a, b: m.emit("Where", m.emit("Equal", a, m.integers(1)), b, a), padded
    )


def _sum_to(m: ModelBuilder, node: Node, x: Names) -> str:
    operand, result = node.operands[0].tensor, node.results[0].tensor
    if operand.shape is None or result.shape is None:
        raise unsupported(node, "a rank is unknown", "export it for arrays of known rank.")
    leading = len(operand.shape) - len(result.shape)
    pairs: list[tuple[Dim, Dim]] = [*zip(operand.shape[leading:], result.shape, strict=True)]
    if any(a != b and (isinstance(a, Symbol) and isinstance(b, Symbol)) for a, b in pairs):
        raise unsupported(node, "its sizes are unknown", "export it for known sizes.")
    axes = [*range(leading), *(leading + k for k, (a, b) in enumerate(pairs) if a != b and b == 1)]
    summed = _reduced(m, "ReduceSum", x[0], axes, keepdims=True) if axes else x[0]
    return m.emit("Reshape", summed, _shape(m, node, x[1:])) if leading else summed


def _reshape(m: ModelBuilder, node: Node, x: Names) -> str:
    return m.emit("Reshape", x[0], _shape(m, node, x[1:]), allowzero=1)


def _transpose(m: ModelBuilder, node: Node, x: Names) -> str:
    perm = node.attrs["perm"]
    return m.emit("Transpose", x[0], perm=perm) if perm else x[0]


def _split(m: ModelBuilder, node: Node, x: Names) -> list[str]:
    sizes, axis = node.attrs["sizes"], node.attrs["axis"]
    return m.emit_many("Split", [x[0], m.integers(*sizes)], len(sizes), axis=axis)


def sliced(m: ModelBuilder, x: str, slices: Sequence[Any]) -> str:
    """Return the name of a part by Python's slices."""
    parts = [(axis, bounds) for axis, bounds in enumerate(slices) if bounds != WHOLE]
    if not parts:
        return x
    columns: list[list[int]] = [[], [], [], []]
    for axis, (start, stop, step) in parts:
        step = 1 if step is None else step
        start = (0 if step > 0 else _LAST) if start is None else start
        stop = (_LAST if step > 0 else _FIRST) if stop is None else stop
        for column, value in zip(columns, (start, stop, axis, step), strict=True):
            column.append(value)
    return m.emit("Slice", x, *(m.integers(*column) for column in columns))


def _narrow(m: ModelBuilder, node: Node, x: Names) -> str:
    one = m.integers(1)
    start, stop = (m.emit("Reshape", name, one) for name in x[1:])
    return m.emit("Slice", x[0], start, stop, m.integers(node.attrs["axis"]))


def _pad(m: ModelBuilder, node: Node, x: Names) -> str:
    widths = node.attrs["widths"]
    if not widths:
        return x[0]
    pads = [low for low, _ in widths] + [high for _, high in widths]
    value = m.constant(node.attrs["value"], node.operands[0].tensor.dtype)
    return m.emit("Pad", x[0], m.integers(*pads), value, mode="constant")


# Reductions
def _reduced(m: ModelBuilder, op: str, x: str, axes: Sequence[int], *, keepdims: bool) -> str:
    return m.emit(op, x, m.integers(*axes), keepdims=int(keepdims))


def _reduce(op: str) -> Any:
    def emit(m: ModelBuilder, node: Node, x: Names) -> str:
        axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
        return _reduced(m, op, x[0], axes, keepdims=keepdims) if axes else x[0]

    return emit


def _reduce_bool(op: str) -> Any:
    """Return the emitter of a reduction of bools, as one of integers."""

    def emit(m: ModelBuilder, node: Node, x: Names) -> str:
        axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
        if not axes:
            return x[0]
        numbers = m.emit("Cast", x[0], to=ELEMENT_TYPES[np.dtype(np.int32)])
        number = _reduced(m, op, numbers, axes, keepdims=keepdims)
        return m.emit("Greater", number, m.constant(0, np.int32))

    return emit


def _extreme_of_bools_or(op: str) -> Any:
    def emit(m: ModelBuilder, node: Node, x: Names) -> str:
        if node.operands[0].tensor.dtype.kind == "b":
            return str(_reduce_bool(op)(m, node, x))
        return str(_reduce(op)(m, node, x))

    return emit


def _position(op: str) -> Any:
    def emit(m: ModelBuilder, node: Node, x: Names) -> str:
        (name,) = x
        if node.operands[0].tensor.dtype.kind == "b":
            name = m.emit("Cast", name, to=ELEMENT_TYPES[np.dtype(np.int32)])
        return m.emit(op, name, axis=node.attrs["axis"], keepdims=int(node.attrs["keepdims"]))

    return emit


def _cumsum(m: ModelBuilder, node: Node, x: Names) -> str:
    axis = m.constant(node.attrs["axis"], np.int64)
    return m.emit("CumSum", x[0], axis, reverse=int(node.attrs["reverse"]))


# Products
def _dot_general(m: ModelBuilder, node: Node, x: Names) -> str:
    """Emit one matrix product: [batch, free, contracted] @ [batch, contracted, free]."""
    (x_contract, y_contract), (x_batch, y_batch) = node.attrs["contract"], node.attrs["batch"]
    types = [operand.tensor for operand in node.operands]
    x_free = [k for k in range(len(types[0].dims)) if k not in (*x_contract, *x_batch)]
    y_free = [k for k in range(len(types[1].dims)) if k not in (*y_contract, *y_batch)]
    left = _permuted(m, x[0], [*x_batch, *x_free, *x_contract])
    right = _permuted(m, x[1], [*y_batch, *y_contract, *y_free])
    counts = [len(x_batch), len(x_free), len(x_contract), len(y_free)]
    if counts[1:] == [1, 1, 1] or (not x_batch and counts[2] == 1 and max(counts) <= 1):
        return m.emit("MatMul", left, right)
    batch = [_size_of(m, types[0].dims[k], x[0], k) for k in x_batch]
    rows = [_size_of(m, types[0].dims[k], x[0], k) for k in x_free]
    depth = [_size_of(m, types[0].dims[k], x[0], k) for k in x_contract]
    columns = [_size_of(m, types[1].dims[k], x[1], k) for k in y_free]
    middle = _product(m, depth)
    left = m.emit("Reshape", left, _vector(m, [*batch, _product(m, rows), middle]), allowzero=1)
    right = m.emit(
        "Reshape", right, _vector(m, [*batch, middle, _product(m, columns)]), allowzero=1
    )
    product = m.emit("MatMul", left, right)
    return m.emit("Reshape", product, _vector(m, [*batch, *rows, *columns]), allowzero=1)


def _permuted(m: ModelBuilder, x: str, order: Sequence[int]) -> str:
    is_sorted = [*order] == sorted(order)
    return x if is_sorted else m.emit("Transpose", x, perm=order)


def _size_of(m: ModelBuilder, dim: Dim, x: str, axis: int) -> int | str:
    """Return a size: a number, or the name of a vector with it."""
    if isinstance(dim, int):
        return dim
    return m.emit(
        "Slice", m.emit("Shape", x), m.integers(axis), m.integers(axis + 1), m.integers(0)
    )


def _product(m: ModelBuilder, sizes: Sequence[int | str]) -> int | str:
    known = math.prod(size for size in sizes if isinstance(size, int))
    unknown = [size for size in sizes if isinstance(size, str)]
    if not unknown:
        return known
    name = unknown[0]
    for other in unknown[1:]:
        name = m.emit("Mul", name, other)
    return name if known == 1 else m.emit("Mul", name, m.integers(known))


def _vector(m: ModelBuilder, sizes: Sequence[int | str]) -> str:
    """Return the name of a shape of numbers and names."""
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) == len(sizes):
        return m.integers(*numbers)
    parts = [m.integers(size) if isinstance(size, int) else size for size in sizes]
    return m.emit("Concat", *parts, axis=0)


def _same(m: ModelBuilder, node: Node, x: Names) -> str:
    return x[0]


SHAPING: Mapping[str, Any] = {
    "iota": _iota,
    "from_elements": _from_elements,
    "shape_of": lambda m, node, x: m.emit("Shape", x[0]),
    "dim_of": lambda m, node, x: _size(m, x[0], node.attrs["axis"]),
    "broadcast_shapes": _broadcast_shapes,
    "broadcast_to": _broadcast_to,
    "sum_to": _sum_to,
    "refine": _same,
    "keep_shape": _same,
    "nonnegative": _same,
    "reshape": _reshape,
    "transpose": _transpose,
    "concat": lambda m, node, x: m.emit("Concat", *x, axis=node.attrs["axis"]),
    "split": _split,
    "slice": lambda m, node, x: sliced(m, x[0], node.attrs["slices"]),
    "narrow": _narrow,
    "pad": _pad,
    "reduce_sum": _reduce("ReduceSum"),
    "reduce_prod": _reduce("ReduceProd"),
    "reduce_max": _extreme_of_bools_or("ReduceMax"),
    "reduce_min": _extreme_of_bools_or("ReduceMin"),
    "reduce_any": _reduce_bool("ReduceMax"),
    "reduce_all": _reduce_bool("ReduceMin"),
    "argmax": _position("ArgMax"),
    "argmin": _position("ArgMin"),
    "cumsum": _cumsum,
    "dot_general": _dot_general,
}
