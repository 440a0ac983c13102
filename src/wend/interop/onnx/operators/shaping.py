"""Operators that arrange elements: shapes, parts, padding, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import wend.numpy as wnp
from wend.interop.onnx.operators.operands import axes_of, bounded, dtype_of, known, known_ints
from wend.numpy.updating import add_at, set_at


def reshape(x: Any, shape: Any, allowzero: int = 0) -> Any:
    """Return an array in another shape; a size of 0 is the old one, −1 what remains."""
    sizes = known_ints(shape, "the shape of Reshape")
    if not allowzero:
        sizes = [x.shape[k] if size == 0 else size for k, size in enumerate(sizes)]
    return x.reshape(sizes)


def shape_of(x: Any, start: int = 0, end: int | None = None) -> Any:
    """Return the sizes of an array, or some of them."""
    sizes = x.shape[slice(start, end)]
    return np.array(sizes, np.int64) if _are_known(sizes) else wnp.asarray(sizes, np.int64)


def _are_known(sizes: Sequence[Any]) -> bool:
    return all(isinstance(size, int) for size in sizes)


def size_of(x: Any) -> Any:
    """Return the number of elements."""
    return np.int64(x.size) if isinstance(x.size, int) else x.size


def squeeze(x: Any, operand: Any = None, axes: Sequence[int] | None = None) -> Any:
    """Return an array without axes of size 1."""
    chosen = axes_of(axes, operand, x.ndim)
    return wnp.squeeze(x, chosen)


def unsqueeze(x: Any, operand: Any = None, axes: Sequence[int] | None = None) -> Any:
    """Return an array with new axes of size 1."""
    count = len(axes) if operand is None and axes is not None else np.size(operand)
    chosen = axes_of(axes, operand, x.ndim + count)
    return wnp.expand_dims(x, chosen)


def flatten(x: Any, axis: int = 1) -> Any:
    """Return a matrix: the axes before one, and the others."""
    axis = axis + x.ndim if axis < 0 else axis
    rows = int(np.prod(x.shape[:axis]))
    return x.reshape(rows, -1) if rows else x.reshape(rows, int(np.prod(x.shape[axis:])))


def transpose(x: Any, perm: Sequence[int] | None = None) -> Any:
    """Return an array with its axes in another order."""
    return wnp.transpose(x, perm)


def expand(x: Any, shape: Any) -> Any:
    """Return an array broadcast with a shape."""
    sizes = known_ints(shape, "the shape of Expand")
    bounded(sizes, "Expand")
    return wnp.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(sizes)))


def tile(x: Any, repeats: Any) -> Any:
    """Return an array repeated along its axes."""
    counts = known_ints(repeats, "the counts of Tile")
    bounded([*counts, *x.shape], "Tile")
    return wnp.tile(x, counts)


def concat(*arrays: Any, axis: int) -> Any:
    """Return arrays joined along an axis."""
    return wnp.concatenate(arrays, axis=axis)


def split(
    x: Any,
    operand: Any = None,
    axis: int = 0,
    split: Sequence[int] | None = None,
    num_outputs: int | None = None,
    outputs: int = 1,
) -> Any:
    """Return parts along an axis: of given sizes, or equal but for the last."""
    size = x.shape[axis]
    if operand is not None:
        split = known_ints(operand, "the sizes of Split")
    if split is None:
        count = num_outputs or outputs
        part = -(-size // count)
        split = [max(0, min(part, size - k * part)) for k in range(count)]
    bounds = np.cumsum(split)[:-1]
    parts = wnp.split(x, [int(k) for k in bounds], axis=axis)
    return parts[0] if outputs == 1 else tuple(parts)


def slice_(
    x: Any,
    starts: Any,
    ends: Any,
    axes: Any = None,
    steps: Any = None,
) -> Any:
    """Return every so many elements between bounds, which are clipped to the array."""
    count = np.size(starts)
    chosen = range(count) if axes is None else known_ints(axes, "the axes of Slice")
    strides = [1] * count if steps is None else known_ints(steps, "the steps of Slice")
    index: list[Any] = [slice(None)] * x.ndim
    for k, (axis, step) in enumerate(zip(chosen, strides, strict=True)):
        first, last = _bound(starts, k), _bound(ends, k)
        if step < 0 and isinstance(last, int) and last < -x.shape[axis]:
            last = None
        index[axis] = slice(first, last, step)
    return x[tuple(index)]


def _bound(bounds: Any, k: int) -> Any:
    """Return a bound as an int, or traced."""
    bound = bounds.reshape(-1)[k]
    return int(bound) if isinstance(bound, np.generic) else bound


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, mode: str = "constant") -> Any:
    """Return an array with more elements around it, or fewer where the width is negative."""
    widths = known_ints(pads, "the widths of Pad")
    chosen = list(range(x.ndim)) if axes is None else known_ints(axes, "the axes of Pad")
    count = len(chosen)
    before_after = [(0, 0)] * x.ndim
    for k, axis in enumerate(chosen):
        before_after[axis] = (widths[k], widths[k + count])
    cut = [
        slice(max(0, -before), x.shape[axis] - max(0, -after))
        for axis, (before, after) in enumerate(before_after)
    ]
    x = x[tuple(cut)]
    grown = [(max(0, before), max(0, after)) for before, after in before_after]
    bounded([size + sum(width) for size, width in zip(x.shape, grown, strict=True)], "Pad")
    if mode != "constant":
        return wnp.pad(x, grown, mode=_MODES[mode])
    fill = wnp.zeros((), x.dtype) if value is None else wnp.asarray(value, x.dtype).reshape(())
    return wnp.pad(x, grown, constant_values=fill)


def constant_of_shape(shape: Any, value: Any = None) -> Any:
    """Return an array of one value."""
    value = np.zeros(1, np.float32) if value is None else value
    sizes = bounded(known_ints(shape, "the shape of ConstantOfShape"), "ConstantOfShape")
    return np.full(sizes, value[0], value.dtype)


def range_(start: Any, limit: Any, delta: Any) -> Any:
    """Return the numbers from a start to a limit in steps."""
    first, last, step = (known(x, "a bound of Range").reshape(()) for x in (start, limit, delta))
    count = max(int(np.ceil((last - first) / step)), 0)
    bounded([count], "Range")
    return (first + np.arange(count, dtype=first.dtype) * step).astype(first.dtype)


def eye_like(x: Any, dtype: int | None = None, k: int = 0) -> Any:
    """Return ones on a diagonal, in the shape of an array."""
    rows, columns = x.shape
    return np.eye(rows, columns, k, x.dtype if dtype is None else dtype_of(dtype))


def triangle(x: Any, k: Any = None, upper: int = 1) -> Any:
    """Return the elements above or below a diagonal, and zeros."""
    diagonal = 0 if k is None else int(known(k, "the diagonal of Trilu"))
    return (wnp.triu if upper else wnp.tril)(x, diagonal)


def _nonnegative(indices: Any, size: Any) -> Any:
    return wnp.where(indices < 0, indices + size, indices)


def gather(x: Any, indices: Any, axis: int = 0) -> Any:
    """Return the elements of an axis at indices."""
    return wnp.take(x, indices, axis=axis)


def gather_elements(x: Any, indices: Any, axis: int = 0) -> Any:
    """Return elements whose position along an axis indices say."""
    axis = axis % x.ndim
    places = wnp.indices(indices.shape, sparse=True)
    at = [wnp.asarray(place) for place in places]
    at[axis] = _nonnegative(indices, x.shape[axis])
    return x[tuple(at)]


def gather_nd(x: Any, indices: Any, batch_dims: int = 0) -> Any:
    """Return elements or parts at tuples of indices."""
    depth = indices.shape[-1]
    shape = indices.shape[:-1]
    batch = np.indices(shape[:batch_dims], sparse=True) if batch_dims else ()
    at = [b.reshape(b.shape + (1,) * (len(shape) - batch_dims)) for b in batch]
    at += [_nonnegative(indices[..., k], x.shape[batch_dims + k]) for k in range(depth)]
    return x[tuple(at)]


def _combined(x: Any, at: tuple[Any, ...], updates: Any, reduction: str) -> Any:
    """Return an array with elements set, or combined with all updates of their place."""
    if reduction == "none":
        return set_at(x, at, updates)
    if reduction == "add":
        return add_at(x, at, updates)
    combine = _COMBINE[reduction]
    rank = len(at)
    places = wnp.broadcast_arrays(*at)
    flat = [wnp.reshape(place, -1) for place in places]
    parts = wnp.reshape(updates, (-1, *x.shape[rank:]))
    for k in range(parts.shape[0]):  # one by one: several may have one place
        where = tuple(place[k] for place in flat)
        x = set_at(x, where, combine(x[where], parts[k]))
    return x


_COMBINE = {"max": wnp.maximum, "min": wnp.minimum, "mul": wnp.multiply}


def scatter_elements(
    x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none"
) -> Any:
    """Return an array with updates at positions along an axis."""
    axis = axis % x.ndim
    at = [wnp.asarray(place) for place in wnp.indices(indices.shape)]
    at[axis] = _nonnegative(indices, x.shape[axis])
    return _combined(x, tuple(at), updates, reduction)


def scatter_nd(x: Any, indices: Any, updates: Any, reduction: str = "none") -> Any:
    """Return an array with updates at tuples of indices."""
    at = tuple(_nonnegative(indices[..., k], x.shape[k]) for k in range(indices.shape[-1]))
    return _combined(x, at, updates, reduction)


def one_hot(indices: Any, depth: Any, values: Any, axis: int = -1) -> Any:
    """Return arrays with one value at an index and another elsewhere."""
    (count,) = bounded(known_ints(depth, "the depth of OneHot"), "OneHot")
    rank = indices.ndim + 1
    shape = [1] * rank
    shape[axis % rank] = count
    classes = wnp.asarray(indices)
    classes = wnp.where(classes < 0, classes + count, classes)
    is_on = wnp.expand_dims(classes, axis % rank) == wnp.arange(count).reshape(shape)
    return wnp.where(is_on, values[1], values[0])


def nonzero(x: Any) -> Any:
    """Return the indices of elements that are not 0."""
    return wnp.stack(wnp.nonzero(x)).astype(np.int64)


def compress(x: Any, condition: Any, axis: int | None = None) -> Any:
    """Return the elements where a condition holds."""
    return wnp.compress(condition, x, axis=axis)


def depth_to_space(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    """Return an array with blocks of channels as blocks of pixels."""
    n, c, h, w = x.shape
    b, depth = blocksize, c // blocksize**2
    if mode == "DCR":
        y = wnp.transpose(x.reshape(n, b, b, depth, h, w), (0, 3, 4, 1, 5, 2))
    else:
        y = wnp.transpose(x.reshape(n, depth, b, b, h, w), (0, 1, 4, 2, 5, 3))
    return y.reshape(n, depth, h * b, w * b)


def space_to_depth(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    """Return an array with blocks of pixels as channels."""
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return wnp.transpose(y, order).reshape(n, c * b * b, h // b, w // b)


def reverse_sequence(x: Any, lengths: Any, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """Return each sequence of a batch with its first elements in reverse order."""
    y = wnp.moveaxis(x, (time_axis, batch_axis), (0, 1))
    steps = wnp.arange(y.shape[0]).reshape(-1, 1)
    row = lengths.reshape(1, -1)
    places = wnp.where(steps < row, row - 1 - steps, steps)
    turned = y[places, wnp.arange(y.shape[1]).reshape(1, -1)]
    return wnp.moveaxis(turned, (0, 1), (time_axis, batch_axis))


def center_crop_pad(x: Any, shape: Any, axes: Sequence[int] | None = None) -> Any:
    """Return the middle of an array, or the array in the middle of zeros."""
    sizes = known_ints(shape, "the shape of CenterCropPad")
    index: list[Any] = [slice(None)] * x.ndim
    widths = [(0, 0)] * x.ndim
    for axis, size in zip(range(x.ndim) if axes is None else axes, sizes, strict=True):
        actual = x.shape[axis]
        first = abs(actual - size) // 2
        if size < actual:
            index[axis] = slice(first, first + size)
        else:
            widths[axis] = (first, size - actual - first)
    return wnp.pad(x[tuple(index)], widths)


def unique(x: Any, axis: int | None = None, sorted: int = 1, outputs: int = 1) -> Any:
    """Return the different elements, where each is first, which each is, and how many there are."""
    x = known(x, "the input of Unique")
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, inverse, counts = first[order], place[inverse], counts[order]
    results = (values, *(x.astype(np.int64) for x in (first, inverse, counts)))
    return results[:outputs] if outputs > 1 else values


def tensor_scatter(
    past: Any, update: Any, indices: Any = None, axis: int = -2, mode: str = "linear"
) -> Any:
    """Return a cache with an update of a sequence in it, from a position of each batch on."""
    axis = axis % past.ndim
    size, length = past.shape[axis], update.shape[axis]
    start = wnp.zeros(past.shape[0], np.int64) if indices is None else indices
    places = start.reshape(-1, 1) + wnp.arange(length).reshape(1, -1)
    places = places % size if mode == "circular" else places
    at = wnp.arange(past.shape[0]).reshape(-1, 1), places
    moved = set_at(wnp.moveaxis(past, axis, 1), at, wnp.moveaxis(update, axis, 1))
    return wnp.moveaxis(moved, 1, axis)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "CenterCropPad": center_crop_pad,
    "Compress": compress,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "NonZero": nonzero,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": range_,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Shape": shape_of,
    "Size": size_of,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "TensorScatter": tensor_scatter,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": triangle,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
}
