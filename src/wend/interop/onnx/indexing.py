"""Reads and writes at positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.interop.onnx.builder import ELEMENT_TYPES, ModelBuilder, unsupported
from wend.interop.onnx.shaping import sliced
from wend.ir.dtypes import INT64
from wend.ir.graph import Node
from wend.ir.types import Symbol
from wend.ops.parts import AT, CUT, by_axis
from wend.ops.shapes import WHOLE

Names = Sequence[str]


def _as_index(m: ModelBuilder, node: Node, k: int, name: str) -> str:
    """Return positions as i64."""
    is_index = node.operands[k].tensor.dtype == INT64
    return name if is_index else m.emit("Cast", name, to=ELEMENT_TYPES[INT64])


def _coordinates(m: ModelBuilder, node: Node, x: Names, start: int) -> str:
    """Return one array of positions with the coordinates of each along the last axis."""
    last = m.integers(-1)
    columns = [m.emit("Unsqueeze", _as_index(m, node, k, x[k]), last) for k in range(start, len(x))]
    return columns[0] if len(columns) == 1 else m.emit("Concat", *columns, axis=-1)


def _gather(m: ModelBuilder, node: Node, x: Names) -> str:
    if len(x) == 2:
        return m.emit("Gather", x[0], _as_index(m, node, 1, x[1]), axis=0)
    return m.emit("GatherND", x[0], _coordinates(m, node, x, 1))


def _scatter(m: ModelBuilder, node: Node, x: Names) -> str:
    reduction = {"reduction": "add"} if node.op.name == "scatter_add" else {}
    return m.emit("ScatterND", x[0], _coordinates(m, node, x, 2), x[1], **reduction)


def _take_along(m: ModelBuilder, node: Node, x: Names) -> str:
    index = _as_index(m, node, 1, x[1])
    return m.emit("GatherElements", x[0], index, axis=node.attrs["axis"])


def _put_along(m: ModelBuilder, node: Node, x: Names) -> str:
    reduction = {"reduction": "add"} if node.op.name == "add_along" else {}
    index = _as_index(m, node, 2, x[2])
    return m.emit("ScatterElements", x[0], index, x[1], axis=node.attrs["axis"], **reduction)


# Parts by slices: read by Slice, written through the positions of their elements
def _take_part(m: ModelBuilder, node: Node, x: Names) -> str:
    return _part(m, node, x[0], node.attrs["entries"], x[1:], 1)


def _part(
    m: ModelBuilder, node: Node, x: str, entries: Sequence[Any], positions: Names, first: int
) -> str:
    """Return a part of an array; `"at"` axes are dropped last, so that others keep their places."""
    names = [_as_index(m, node, first + k, name) for k, name in enumerate(positions)]
    slices = [entry if not isinstance(entry, str) else WHOLE for entry in entries]
    part = sliced(m, x, slices)
    one = m.integers(1)
    dropped = []
    for axis, (entry, numbers) in enumerate(by_axis(entries, names)):
        if entry == CUT:
            start, stop = (m.emit("Reshape", number, one) for number in numbers)
            part = m.emit("Slice", part, start, stop, m.integers(axis))
        elif entry == AT:
            part = m.emit("Gather", part, m.emit("Reshape", numbers[0], one), axis=axis)
            dropped.append(axis)
    return m.emit("Squeeze", part, m.integers(*dropped)) if dropped else part


def _put_part(m: ModelBuilder, node: Node, x: Names) -> str:
    add = node.op.name == "add_part"
    return _put(m, node, x[0], x[1], node.attrs["entries"], x[2:], add=add)


def _put_slice(m: ModelBuilder, node: Node, x: Names) -> str:
    add = node.op.name == "add_slice"
    return _put(m, node, x[0], x[1], node.attrs["slices"], (), add=add)


def _put_narrow(m: ModelBuilder, node: Node, x: Names) -> str:
    entries: list[Any] = [WHOLE] * len(node.operands[0].tensor.dims)
    entries[node.attrs["axis"]] = CUT
    return _put(m, node, x[0], x[1], entries, x[2:], add=True)


def _put(
    m: ModelBuilder,
    node: Node,
    into: str,
    x: str,
    entries: Sequence[Any],
    positions: Names,
    *,
    add: bool,
) -> str:
    """Return an array with a part replaced or added to.

    The part of an array of element numbers says which elements those are.
    """
    if not entries:
        return m.emit("Add", into, x) if add else x
    reduction = {"reduction": "add"} if add else {}
    count = len(positions)
    if count and entries == (*[AT] * count, *[WHOLE] * (len(entries) - count)):
        return m.emit("ScatterND", into, _row_index(m, node, positions), x, **reduction)
    flat = m.integers(-1)
    shape = m.emit("Shape", into)
    zero, one = m.constant(0, np.int64), m.constant(1, np.int64)
    numbers = m.emit("Range", zero, m.emit("Size", into), one)
    numbers = m.emit("Reshape", numbers, shape, allowzero=1)
    part = _part(m, node, numbers, entries, positions, 2)
    index = m.emit("Unsqueeze", m.emit("Reshape", part, flat), m.integers(-1))
    # NumPy broadcasts what is put to the part.
    x = m.emit("Reshape", m.emit("Expand", x, m.emit("Shape", part)), flat)
    put = m.emit("ScatterND", m.emit("Reshape", into, flat), index, x, **reduction)
    return m.emit("Reshape", put, shape, allowzero=1)


def _row_index(m: ModelBuilder, node: Node, positions: Names) -> str:
    """Return the vector of positions in the leading axes that names one row."""
    one = m.integers(1)
    names = [_as_index(m, node, 2 + k, name) for k, name in enumerate(positions)]
    columns = [m.emit("Reshape", name, one) for name in names]
    return columns[0] if len(columns) == 1 else m.emit("Concat", *columns, axis=0)


def _nonzero(m: ModelBuilder, node: Node, x: Names) -> str | list[str]:
    rank = len(node.results)
    rows = m.emit("NonZero", x[0])
    if not rank:
        return []
    numbers = [m.constant(k, np.int64) for k in range(rank)]
    return [m.emit("Gather", rows, number, axis=0) for number in numbers]


def _sorted(m: ModelBuilder, node: Node, x: Names) -> list[str]:
    """Emit a sort; return the names of values and positions."""
    axis, dims = node.attrs["axis"], node.operands[0].tensor.dims
    if node.operands[0].tensor.dtype.kind == "b":
        raise unsupported(node, "onnxruntime sorts no bools", "sort integers.")
    if isinstance(dims[axis], Symbol):
        bounds = m.integers(axis), m.integers(axis + 1)
        size = m.emit("Slice", m.emit("Shape", x[0]), *bounds, m.integers(0))
    else:
        size = m.integers(dims[axis])
    return m.emit_many("TopK", [x[0], size], 2, axis=axis, largest=0, sorted=1)


def _searchsorted(m: ModelBuilder, node: Node, x: Names) -> str:
    """Count the elements below each value."""
    compare = "Less" if node.attrs["side"] == "left" else "LessOrEqual"
    last = m.integers(-1)
    is_below = m.emit(compare, x[0], m.emit("Unsqueeze", x[1], last))
    numbers = m.emit("Cast", is_below, to=ELEMENT_TYPES[INT64])
    return m.emit("ReduceSum", numbers, last, keepdims=0)


INDEXING: Mapping[str, Any] = {
    "gather": _gather,
    "scatter_add": _scatter,
    "scatter_set": _scatter,
    "take_along": _take_along,
    "add_along": _put_along,
    "set_along": _put_along,
    "take_part": _take_part,
    "set_part": _put_part,
    "add_part": _put_part,
    "set_slice": _put_slice,
    "add_slice": _put_slice,
    "add_narrow": _put_narrow,
    "nonzero": _nonzero,
    "searchsorted": _searchsorted,
    "sort": lambda m, node, x: _sorted(m, node, x)[0],
    "argsort": lambda m, node, x: _sorted(m, node, x)[1],
}
