"""Functions that change shapes and join arrays."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.base.errors import ShapeError
from wend.eager.dispatch import Staged, apply, apply_all, recorder
from wend.eager.promotion import as_array, broadcast, cast, common_shape, tensor_type
from wend.ir.types import Dim, Shape
from wend.numpy.public import implements
from wend.numpy.ufuncs import own
from wend.ops import creating
from wend.ops import shaping as ops


def check_device(device: Any) -> None:
    """Arrays are where NumPy's are."""
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


def rank_of(x: Any) -> int:
    """The number of dimensions, which must be known."""
    return len(tensor_type(x).dims)


@implements(np.reshape)
def reshape(x: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """`numpy.reshape` in C order, for traced arrays as well."""
    if order != "C":
        raise NotImplementedError("reshape of a traced array has order='C' only")
    found = _reshaped(x, shape)
    return found.copy() if copy else found


def _reshaped(x: Any, shape: Any) -> Any:
    wanted = shape if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(size, Staged) for size in wanted):
        size = apply_all(ops.concat, *(reshape_1(as_size(s)) for s in wanted), axis=0)[0]
        return apply(ops.reshape, x, size, shape=_declared(x, wanted))
    dims = tuple(max(operator.index(size), -1) for size in wanted)
    if dims.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = tensor_type(x)
    if known.is_static and -1 in dims:
        rest = -math.prod(dims)
        total = math.prod(known.dims)  # type: ignore[arg-type]
        if rest == 0 or total % rest:
            raise ShapeError(f"cannot reshape array of size {total} into shape {dims}")
        dims = tuple(total // rest if dim == -1 else dim for dim in dims)
    return x if dims == known.shape else apply(ops.reshape, x, shape=dims)


def _declared(x: Any, sizes: Sequence[Any]) -> Shape:
    """What the type of an array says of a shape to which `x` is brought."""
    current = recorder.get()
    assert current is not None
    return current.sizes_of_reshape(tensor_type(x).shape, sizes)


def declared_size(size: Any) -> Dim:
    """What the type of an array says of a size: equal traced ones are one symbol."""
    current = recorder.get()
    if isinstance(size, Staged) and current is not None:
        return current.size_of(size)
    return operator.index(size)


def as_size(size: Any) -> Any:
    """A size as an i64 scalar."""
    return cast(size, np.dtype(np.int64))


def reshape_1(x: Any) -> Any:
    """A scalar as a vector of one."""
    return reshape(x, (1,)) if isinstance(x, Staged) else np.reshape(x, (1,))


@implements(np.ravel)
def ravel(x: Any) -> Any:
    """`numpy.ravel`, for traced arrays as well."""
    return reshape(x, (-1,))


@implements(np.transpose, np.permute_dims)
def transpose(x: Any, axes: Any = None) -> Any:
    """`numpy.transpose`, for traced arrays as well."""
    rank = rank_of(x)
    perm = tuple(range(rank))[::-1] if axes is None else normalize_axis_tuple(axes, rank)
    if len(perm) != rank:
        raise ValueError("axes don't match array")
    return apply(ops.transpose, x, perm=tuple(perm))


permute_dims = transpose


@implements(np.matrix_transpose)
def matrix_transpose(x: Any) -> Any:
    """`numpy.matrix_transpose`, for traced arrays as well."""
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """`numpy.swapaxes`, for traced arrays as well."""
    perm = list(range(rank_of(x)))
    first, second = (normalize_axis_index(axis, len(perm)) for axis in (axis1, axis2))
    perm[first], perm[second] = perm[second], perm[first]
    return apply(ops.transpose, x, perm=tuple(perm))


@implements(np.moveaxis)
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """`numpy.moveaxis`, for traced arrays as well."""
    rank = rank_of(x)
    sources = normalize_axis_tuple(source, rank, "source")
    places = normalize_axis_tuple(destination, rank, "destination")
    perm = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        perm.insert(place, axis)
    return apply(ops.transpose, x, perm=tuple(perm))


def _with_axes(x: Any, dims: Sequence[Dim], kept: Sequence[int]) -> Any:
    """Insert axes of size 1; `kept` are the places of the array's own axes."""
    if all(isinstance(dim, int) for dim in dims):
        return apply(ops.reshape, x, shape=tuple(dims))
    sizes: list[Any] = [np.ones(1, np.int64)] * len(dims)
    for axis, place in enumerate(kept):
        sizes[place] = reshape_1(apply(ops.dim_of, x, axis=axis))
    return apply(ops.reshape, x, apply(ops.concat, *sizes, axis=0), shape=tuple(dims))


@implements(np.expand_dims)
def expand_dims(x: Any, axis: Any) -> Any:
    """`numpy.expand_dims`, for traced arrays as well."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = rank_of(x) + len(axes)
    places = normalize_axis_tuple(axes, rank)
    kept = [place for place in range(rank) if place not in places]
    dims: list[Dim] = [1] * rank
    for place, dim in zip(kept, tensor_type(x).dims, strict=True):
        dims[place] = dim
    return _with_axes(x, dims, kept)


@implements(np.squeeze)
def squeeze(x: Any, axis: Any = None) -> Any:
    """`numpy.squeeze`, for traced arrays as well."""
    dims = tensor_type(x).dims
    if axis is None:
        axes: tuple[int, ...] = tuple(k for k, dim in enumerate(dims) if dim == 1)
    else:
        axes = normalize_axis_tuple(axis, len(dims)) if dims or axis not in (0, -1) else ()
    if any(isinstance(dims[k], int) and dims[k] != 1 for k in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    left = [k for k in range(len(dims)) if k not in axes]
    if all(isinstance(dims[k], int) for k in left):
        return apply(ops.reshape, x, shape=tuple(dims[k] for k in left))
    sizes = [reshape_1(apply(ops.dim_of, x, axis=k)) for k in left]
    given = apply(ops.concat, *sizes, axis=0)
    return apply(ops.reshape, x, given, shape=tuple(dims[k] for k in left))


@implements(np.broadcast_to)
def broadcast_to(x: Any, shape: Any) -> Any:
    """`numpy.broadcast_to`, for traced arrays as well."""
    wanted = shape if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(size, Staged) for size in wanted):
        size = apply(ops.concat, *(reshape_1(as_size(s)) for s in wanted), axis=0)
        return apply(ops.broadcast_to, x, size, shape=tuple(map(declared_size, wanted)))
    return apply(ops.broadcast_to, x, shape=tuple(operator.index(size) for size in wanted))


def filled(number: Any, shape: Any) -> Any:
    """An array of its own, of one number: unlike what `broadcast_to` gives, a view of nothing."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return broadcast_to(number, tuple(map(nonnegative_size, sizes))).copy()


def nonnegative_size(size: Any) -> Any:
    """A size; NumPy's error where a traced one is negative."""
    if not isinstance(size, Staged):
        return size
    return apply(creating.nonnegative, size, message="negative dimensions are not allowed")


def broadcast_to_shape_of(x: Any, like: Any) -> Any:
    """`x` spread over the shape of another array, whose sizes need not be known."""
    known = tensor_type(like)
    if known.is_static:
        return apply(ops.broadcast_to, x, shape=known.shape)
    return apply(ops.broadcast_to, x, apply(ops.shape_of, like), shape=known.shape)


def spread_stacks(*xs: Any, kept: int) -> list[Any]:
    """Arrays with all but their last `kept` axes spread over the shape that these have in common.

    Raises:
        ShapeError: they do not broadcast.
    """
    shapes = [tensor_type(x).dims for x in xs]
    stack = common_shape([dims[:-kept] for dims in shapes])
    assert stack is not None
    wanted = [(*stack, *dims[-kept:]) for dims in shapes]
    if wanted == shapes:
        return list(xs)
    if all(isinstance(dim, int) for dim in stack):
        return [broadcast_to(x, (*stack, *shape(x)[-kept:])) for x in xs]
    sizes = [apply(ops.shape_of, x) for x in xs]
    leads = [apply(ops.slice_, size, slices=((None, -kept, None),)) for size in sizes]
    lead = functools.reduce(lambda a, b: apply(ops.broadcast_shapes, a, b), leads)
    ends = [apply(ops.slice_, size, slices=((-kept, None, None),)) for size in sizes]
    return [
        x
        if dims == mine
        else apply(ops.broadcast_to, x, apply(ops.concat, lead, end, axis=0), shape=dims)
        for x, mine, dims, end in zip(xs, shapes, wanted, ends, strict=True)
    ]


@implements(np.broadcast_arrays)
def broadcast_arrays(*xs: Any) -> Any:
    """`numpy.broadcast_arrays`, for traced arrays as well."""
    return tuple(broadcast(*map(as_array, xs)))


def _same_dtype(xs: Sequence[Any]) -> list[Any]:
    # Python's numbers are taken as arrays, so they are not weak.
    arrays = [as_array(x) for x in xs]
    if not arrays:
        raise ValueError("need at least one array")
    dtype = np.result_type(*(tensor_type(x).dtype for x in arrays))
    return [cast(x, dtype) for x in arrays]


@implements(np.concatenate, np.concat)
def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Any:
    """`numpy.concatenate`, for traced arrays as well."""
    xs = _same_dtype(arrays)
    if axis is None:
        xs, axis = [ravel(x) if isinstance(x, Staged) else np.ravel(x) for x in xs], 0
    if 0 in map(rank_of, xs):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return apply(ops.concat, *xs, axis=normalize_axis_index(axis, rank_of(xs[0])))


concat = concatenate


@implements(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    """`numpy.stack`, for traced arrays as well."""
    xs = _same_dtype(arrays)
    if len({rank_of(x) for x in xs}) > 1:
        raise ShapeError("all input arrays must have the same shape")
    place = normalize_axis_index(axis, rank_of(xs[0]) + 1)
    rows = [expand_dims(x, place) for x in xs]
    return apply(ops.concat, *rows, axis=place)


@implements(np.split)
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """`numpy.split`, for traced arrays as well."""
    axis = normalize_axis_index(axis, rank_of(x))
    whole = tensor_type(x).dims[axis]
    if not isinstance(whole, int):
        raise ShapeError(f"split needs the size of axis {axis} before the run")
    if isinstance(indices_or_sections, (int, np.integer)):
        count = int(indices_or_sections)
        if count <= 0 or whole % count:
            raise ValueError("array split does not result in an equal division")
        bounds = list(range(0, whole + 1, whole // count)) if whole else [0] * (count + 1)
    else:
        bounds = [0, *map(operator.index, indices_or_sections), whole]
    keys = [(slice(None),) * axis + (slice(a, b),) for a, b in pairwise(bounds)]
    if bounds != sorted(bounds) or bounds[-2] > whole:
        # Parts that overlap, or positions out of range: slices, as in NumPy.
        return [x[key] for key in keys]
    sizes = tuple(b - a for a, b in pairwise(bounds))
    parts = list(apply_all(ops.split, x, sizes=sizes, axis=axis))
    for part, key in zip(parts, keys, strict=True):
        part.become_part(x, key)
    return parts


@implements(np.flip)
def flip(x: Any, axis: Any = None) -> Any:
    """`numpy.flip`, for traced arrays as well."""
    rank = rank_of(x)
    axes = range(rank) if axis is None else normalize_axis_tuple(axis, rank)
    slices = tuple((None, None, -1 if k in axes else None) for k in range(rank))
    return apply(ops.slice_, x, slices=slices)


@implements(np.pad)
def pad(x: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    """`numpy.pad` with a constant, for traced arrays as well."""
    if mode != "constant" or np.ndim(constant_values):
        raise NotImplementedError("pad of a traced array takes mode='constant' and one value")
    if np.asarray(pad_width).dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(np.asarray(pad_width), (rank_of(x), 2)).tolist()
    if np.min(pad_width, initial=0) < 0:
        raise ValueError("index can't contain negative values")
    widths = tuple((int(low), int(high)) for low, high in pairs)
    value = np.asarray(constant_values).astype(tensor_type(x).dtype).item()
    return apply(ops.pad, x, widths=widths, value=value)


@implements(np.shape)
def shape(x: Any) -> tuple[Any, ...]:
    """The shape; a size that is not known before the run is a traced integer."""
    return tuple(
        dim if isinstance(dim, int) else _size(x, axis)
        for axis, dim in enumerate(tensor_type(x).dims)
    )


def _size(x: Any, axis: int) -> Any:
    """A traced size; like a number of Python it does not decide on dtypes."""
    found = apply(ops.dim_of, x, axis=axis)
    is_traced = isinstance(found, Staged)
    if is_traced:
        found.weak = True
    return found


@implements(np.ndim)
def ndim(x: Any) -> int:
    """The number of dimensions."""
    return rank_of(x)


@implements(np.size)
def size(x: Any, axis: int | None = None) -> Any:
    """The number of elements, or of those along an axis."""
    if axis is None and tensor_type(x).shape is None:
        x = reshape(x, -1)
    sizes = shape(x)
    if axis is not None:
        return sizes[axis]
    total: Any = 1
    for one in sizes:
        total = total * one
    return total


def _astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    check_device(device)  # which NumPy 2.0 does not take
    return np.astype(x, dtype, copy=copy)


@implements(_astype, np.astype)
def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    """`numpy.astype`, for traced arrays as well."""
    check_device(device)
    found = cast(x, np.dtype(dtype))
    return own(found, [x]) if copy else found
