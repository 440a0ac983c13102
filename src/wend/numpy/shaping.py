"""Functions that query, change and broadcast shapes, and join or split arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.base.errors import ShapeError, UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, apply, apply_all, recorder
from wend.eager.promotion import as_array, broadcast, cast, common_shape, tensor_type
from wend.ir.types import Dim, Shape, symbols
from wend.numpy.public import implements
from wend.numpy.ufuncs import copy_if_operand
from wend.ops import creating
from wend.ops import shaping as ops
from wend.ops.effects import error_name
from wend.ops.shape_errors import SHAPE_ERRORS


def check_device(device: Any) -> None:
    """Raise NumPy's error for a device other than the CPU."""
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


def rank_of(x: Any) -> int:
    """Return the number of dimensions, which must be known statically."""
    return len(tensor_type(x).dims)


def as_array_of(x: Any) -> Any:
    """Return an array without axes for a traced number; other values unchanged."""
    is_number = isinstance(x, Staged) and x.type.shape == () and x.zero_dim is False
    return x.as_zero_dim() if is_number else x


def known_size(x: Any, axis: int, role: str) -> int:
    """Return the size of an axis, which must be known statically."""
    size = tensor_type(x).dims[axis]
    if not isinstance(size, int):
        cure = "pass the array as an argument whose size is not relaxed."
        text = f"{role}{at(user_source())} needs the size of axis {axis} before the run."
        raise refusal(ShapeError(explain(text, cure=cure)))
    return size


@implements(np.reshape)
def reshape(x: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """Give a new shape to an array without changing its data; see `numpy.reshape`.

    Traced arrays are read in the orders C and F.
    """
    if order == "F":
        reshaped = transpose(_reshape(transpose(x), _sizes(shape)[::-1]))
    elif order == "C":
        reshaped = _reshape(x, shape)
    elif order not in ("A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    else:
        raise UnsupportedError(
            explain(
                f"order={order!r}{at(user_source())} asks for the order of an array in memory, "
                "which a trace does not know.",
                cure="choose order='C' or order='F'.",
            )
        )
    return reshaped.copy() if copy else reshaped


def _reshape(x: Any, shape: Any) -> Any:
    sizes = _sizes(shape)
    if any(isinstance(size, Staged) for size in sizes):
        size = apply_all(ops.concat, *(as_vector(as_size(s)) for s in sizes), axis=0)[0]
        return apply(ops.reshape, x, size, shape=_declared_shape(x, sizes))
    dims = tuple(max(operator.index(size), -1) for size in sizes)
    if dims.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    x_type = tensor_type(x)
    if x_type.is_static and -1 in dims:
        known_size = -math.prod(dims)
        total = math.prod(x_type.dims)  # type: ignore[arg-type]
        if known_size == 0 or total % known_size:
            raise ShapeError(f"cannot reshape array of size {total} into shape {dims}")
        dims = tuple(total // known_size if dim == -1 else dim for dim in dims)
    if dims != x_type.shape:
        return apply(ops.reshape, x, shape=dims)
    is_part = dims and isinstance(x, Staged)
    return x[...] if is_part else x  # another object, as a view in another shape is


def _declared_shape(x: Any, sizes: Sequence[Any]) -> Shape:
    """Return the static shape of `x` reshaped to `sizes`."""
    current = recorder.get()
    assert current is not None
    return current.sizes_of_reshape(tensor_type(x).shape, sizes)


def dim_of_size(size: Any) -> Dim:
    """Return the static dimension of a size; equal traced sizes share one symbol."""
    current = recorder.get()
    if isinstance(size, Staged) and current is not None:
        return current.size_of(size)
    return operator.index(size)


def as_size(size: Any) -> Any:
    """Return a size as an i64 scalar."""
    return cast(size, np.dtype(np.int64))


def as_vector(x: Any) -> Any:
    """Return a scalar as a vector of one element."""
    return reshape(x, (1,)) if isinstance(x, Staged) else np.reshape(x, (1,))


@implements(np.ravel)
def ravel(x: Any, order: str = "C") -> Any:
    """Return a flattened array; see `numpy.ravel`."""
    return reshape(x, (-1,), order)


@implements(np.transpose, np.permute_dims)
def transpose(x: Any, axes: Any = None) -> Any:
    """Return an array with axes transposed; see `numpy.transpose`."""
    rank = rank_of(x)
    perm = tuple(range(rank))[::-1] if axes is None else normalize_axis_tuple(axes, rank)
    if len(perm) != rank:
        raise ValueError("axes don't match array")
    return apply(ops.transpose, x, perm=tuple(perm))


permute_dims = transpose


@implements(np.matrix_transpose)
def matrix_transpose(x: Any) -> Any:
    """Transpose a matrix or a stack of matrices; see `numpy.matrix_transpose`."""
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Interchange two axes of an array; see `numpy.swapaxes`."""
    perm = list(range(rank_of(x)))
    both = [operator.index(axis) for axis in (axis1, axis2)]
    first, second = (normalize_axis_index(axis, len(perm)) for axis in both)
    perm[first], perm[second] = perm[second], perm[first]
    return apply(ops.transpose, x, perm=tuple(perm))


@implements(np.moveaxis)
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """Move axes of an array to new positions; see `numpy.moveaxis`."""
    rank = rank_of(x)
    sources = normalize_axis_tuple(source, rank, "source")
    destinations = normalize_axis_tuple(destination, rank, "destination")
    perm = [axis for axis in range(rank) if axis not in sources]
    for position, axis in sorted(zip(destinations, sources, strict=True)):
        perm.insert(position, axis)
    return apply(ops.transpose, x, perm=tuple(perm))


def _insert_unit_axes(x: Any, dims: Sequence[Dim], operand_axes: Sequence[int]) -> Any:
    """Insert axes of size 1; `operand_axes` are the new positions of the array's own axes."""
    if all(isinstance(dim, int) for dim in dims):
        return apply(ops.reshape, x, shape=tuple(dims))
    sizes: list[Any] = [np.ones(1, np.int64)] * len(dims)
    for axis, position in enumerate(operand_axes):
        sizes[position] = as_vector(apply(ops.dim_of, x, axis=axis))
    return apply(ops.reshape, x, apply(ops.concat, *sizes, axis=0), shape=tuple(dims))


@implements(np.expand_dims)
def expand_dims(x: Any, axis: Any) -> Any:
    """Expand the shape of an array with axes of size 1; see `numpy.expand_dims`."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = rank_of(x) + len(axes)
    new_axes = normalize_axis_tuple(axes, rank)
    operand_axes = [position for position in range(rank) if position not in new_axes]
    dims: list[Dim] = [1] * rank
    for position, dim in zip(operand_axes, tensor_type(x).dims, strict=True):
        dims[position] = dim
    return _insert_unit_axes(x, dims, operand_axes)


@implements(np.squeeze)
def squeeze(x: Any, axis: Any = None) -> Any:
    """Remove axes of size 1 from an array; see `numpy.squeeze`."""
    dims = tensor_type(x).dims
    if axis is None:
        axes: tuple[int, ...] = tuple(k for k, dim in enumerate(dims) if dim == 1)
        _check_longer_than_one(x)
    else:
        axes = normalize_axis_tuple(axis, len(dims)) if dims or axis not in (0, -1) else ()
    if any(isinstance(dims[k], int) and dims[k] != 1 for k in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not axes:
        return x  # NumPy returns the array itself, too
    remaining = [k for k in range(len(dims)) if k not in axes]
    if all(isinstance(dims[k], int) for k in remaining):
        return apply(ops.reshape, x, shape=tuple(dims[k] for k in remaining))
    sizes = [as_vector(apply(ops.dim_of, x, axis=k)) for k in remaining]
    shape = apply(ops.concat, *sizes, axis=0)
    return apply(ops.reshape, x, shape, shape=tuple(dims[k] for k in remaining))


def _check_longer_than_one(x: Any) -> None:
    """Record that the run refuses an axis of size 1, whose removal would change the rank."""
    scope: Any = recorder.get()
    if scope is None:
        return
    params = scope.function().b.params
    of_arguments = {dim for param in params for dim in symbols(param.type)}  # none of them is 1
    text = explain(
        f"squeeze(){at(user_source())} finds an axis of size 1, and only the run knows which.",
        cure="name the axes: squeeze(axis=0); or make static what the size comes from.",
    )
    for axis, dim in enumerate(tensor_type(x).dims):
        if not isinstance(dim, int) and dim not in of_arguments:
            scope.emit_raise(error_name(UnsupportedError), text, _size(x, axis) == 1, ())


def broadcast_to(x: Any, shape: Any) -> Any:
    """Broadcast an array to a new shape; see `numpy.broadcast_to`."""
    sizes = _sizes(shape)
    if any(isinstance(size, Staged) for size in sizes):
        size = apply(ops.concat, *(as_vector(as_size(s)) for s in sizes), axis=0)
        return apply(ops.broadcast_to, x, size, shape=tuple(map(dim_of_size, sizes)))
    dims = tuple(operator.index(size) for size in sizes)
    if any(dim < 0 for dim in dims):
        raise ValueError("all elements of broadcast shape must be non-negative")
    return apply(ops.broadcast_to, x, shape=dims)


def new_full(number: Any, shape: Any) -> Any:
    """Return a new array filled with one number, unlike the view that `broadcast_to` returns."""
    return broadcast_to(number, tuple(map(check_size, _sizes(shape)))).copy()


def _sizes(shape: Any) -> Sequence[Any]:
    """Return a shape as a sequence; it may be an integer, or a traced vector of integers."""
    if isinstance(shape, Staged) and shape.type.rank == 1:
        return tuple(shape)  # type: ignore[arg-type]  # a traced array
    return shape if isinstance(shape, (tuple, list)) else (shape,)


def check_size(size: Any) -> Any:
    """Return a size; a traced one raises NumPy's error at run time if it is negative."""
    message = "negative dimensions are not allowed"
    if isinstance(size, Staged):
        return apply(creating.nonnegative, size, message=message)
    if size < 0:
        raise ValueError(message)
    return size


def with_sizes(x: Any, sizes: Sequence[Any], message: str, error: str) -> Any:
    """Return an array, after a check that it has some sizes; the run checks those it knows.

    Raises:
        TypeError, ValueError: it has others; which, `error` says, a key of `SHAPE_ERRORS`.
    """
    dims = tensor_type(x).dims
    known = [(dim, n) for dim, n in zip(dims, sizes, strict=False) if isinstance(n, int)]
    if len(dims) != len(sizes) or any(isinstance(dim, int) and dim != n for dim, n in known):
        raise SHAPE_ERRORS[error](message)
    if all(dim == n for dim, n in known) and len(known) == len(dims):
        return x
    expected = apply(ops.concat, *(as_vector(as_size(n)) for n in sizes), axis=0)
    attrs = {"shape": dims, "message": message, "error": error}
    return apply(ops.keep_shape, x, expected, **attrs)


def broadcast_like(x: Any, like: Any, *, message: str = "") -> Any:
    """Broadcast `x` to the shape of another array, whose sizes may be dynamic.

    `message` is that of the error if the run finds that it does not fit, as of `ops.broadcast_to`.
    """
    like_type = tensor_type(like)
    sizes = () if like_type.is_static else (apply(ops.shape_of, like),)
    attrs = {"message": message} if message else {}
    return apply(ops.broadcast_to, x, *sizes, shape=like_type.shape, **attrs)


def broadcast_batch_dims(*xs: Any, core_rank: int, error: str = "value") -> list[Any]:
    """Broadcast all but the last `core_rank` axes of the arrays to a common shape.

    Args:
        *xs: the arrays.
        core_rank: the number of axes that stay.
        error: "index" for arrays that index another one, as of `broadcast`.

    Raises:
        ShapeError: they do not broadcast.
    """
    shapes = [tensor_type(x).dims for x in xs]
    batch_dims = common_shape([dims[:-core_rank] for dims in shapes])
    assert batch_dims is not None
    target_dims = [(*batch_dims, *dims[-core_rank:]) for dims in shapes]
    if target_dims == shapes:
        return list(xs)
    # `broadcast_to` would raise a ValueError in the run
    may_fail = error != "value" and not all(tensor_type(x).is_static for x in xs)
    if not may_fail and all(isinstance(dim, int) for dim in batch_dims):
        return [broadcast_to(x, (*batch_dims, *shape(x)[-core_rank:])) for x in xs]
    sizes = [apply(ops.shape_of, x) for x in xs]
    batch_shapes = [apply(ops.slice_, size, slices=((None, -core_rank, None),)) for size in sizes]
    attrs = {"error": error} if error != "value" else {}
    batch_shape = apply(ops.broadcast_shapes, *batch_shapes, **attrs)
    core_shapes = [apply(ops.slice_, size, slices=((-core_rank, None, None),)) for size in sizes]
    return [
        x
        if target == dims
        else apply(
            ops.broadcast_to, x, apply(ops.concat, batch_shape, core_shape, axis=0), shape=target
        )
        for x, dims, target, core_shape in zip(xs, shapes, target_dims, core_shapes, strict=True)
    ]


@implements(np.broadcast_arrays)
def broadcast_arrays(*xs: Any) -> Any:
    """Broadcast arrays against each other; see `numpy.broadcast_arrays`."""
    return tuple(broadcast(*map(as_array, xs)))


def _promote_strong(xs: Sequence[Any], dtype: Any, casting: Any) -> list[Any]:
    # Python scalars become arrays here, so they are not weakly typed.
    arrays = [as_array(x) for x in xs]
    if not arrays:
        raise ValueError("need at least one array")
    target = np.result_type(*(tensor_type(x).dtype for x in arrays)) if dtype is None else dtype
    return [cast_as(x, np.dtype(target), casting) for x in arrays]


def cast_as(x: Any, dtype: np.dtype, casting: Any) -> Any:
    """Return the array in a dtype; NumPy's error if a rule of casting forbids it."""
    check_cast(tensor_type(x).dtype, dtype, casting)
    return cast(x, dtype)


def check_cast(source: np.dtype, dtype: np.dtype, casting: Any) -> None:
    """Raise NumPy's TypeError if a rule of casting forbids a cast."""
    if not np.can_cast(source, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {source!r} to {dtype!r} according to the rule {casting!r}"
        )


@implements(np.concatenate, np.concat)
def concatenate(
    arrays: Sequence[Any], axis: int | None = 0, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Join a sequence of arrays along an existing axis; see `numpy.concatenate`."""
    xs = _promote_strong(arrays, dtype, casting)
    if axis is None:
        xs, axis = [ravel(x) if isinstance(x, Staged) else np.ravel(x) for x in xs], 0
    axis = operator.index(axis)
    if 0 in map(rank_of, xs):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return apply(ops.concat, *xs, axis=normalize_axis_index(axis, rank_of(xs[0])))


concat = concatenate


@implements(np.stack)
def stack(
    arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Join a sequence of arrays along a new axis; see `numpy.stack`."""
    xs = _promote_strong(arrays, dtype, casting)
    if len({rank_of(x) for x in xs}) > 1:
        raise ShapeError("all input arrays must have the same shape")
    position = normalize_axis_index(axis, rank_of(xs[0]) + 1)
    rows = [expand_dims(x, position) for x in xs]
    return apply(ops.concat, *rows, axis=position)


def is_single_number(x: Any) -> bool:
    """Return whether this is a number or a 0-d array, traced or not."""
    return not isinstance(x, (list, tuple)) and rank_of(x) == 0


@implements(np.split)
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split an array into multiple sub-arrays; see `numpy.split`."""
    axis = normalize_axis_index(axis, rank_of(x))
    total_size = known_size(x, axis, "np.split")
    if is_single_number(indices_or_sections):
        count = operator.index(indices_or_sections)
        if total_size % count or count < 0:
            raise ValueError("array split does not result in an equal division")
        bounds = (
            list(range(0, total_size + 1, total_size // count)) if total_size else [0] * (count + 1)
        )
    else:
        bounds = [0, *map(operator.index, indices_or_sections), total_size]
    keys = [(slice(None),) * axis + (slice(a, b),) for a, b in pairwise(bounds)]
    if bounds != sorted(bounds) or bounds[-2] > total_size:
        # Parts overlap or positions are out of range; like NumPy, take slices.
        return [x[key] for key in keys]
    sizes = tuple(b - a for a, b in pairwise(bounds))
    parts = list(apply_all(ops.split, x, sizes=sizes, axis=axis))
    for part, key in zip(parts, keys, strict=True):
        part.link_part(x, key)
    return parts


@implements(np.flip)
def flip(x: Any, axis: Any = None) -> Any:
    """Reverse the order of elements along the given axes; see `numpy.flip`."""
    rank = rank_of(x)
    axes = range(rank) if axis is None else normalize_axis_tuple(axis, rank)
    slices = tuple((None, None, -1 if k in axes else None) for k in range(rank))
    return apply(ops.slice_, x, slices=slices)


_PADDING_BY_POSITION = {"edge", "reflect", "symmetric", "wrap"}


def pad(x: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """Pad an array with one constant, or with elements of its own; see `numpy.pad`."""
    constant_values = options.get("constant_values", 0)
    known = np.empty([min(dim, 1) if isinstance(dim, int) else 1 for dim in tensor_type(x).dims])
    np.pad(known, pad_width, mode, **options)  # NumPy's errors
    is_by_position = mode in _PADDING_BY_POSITION and options.get("reflect_type") != "odd"
    if (mode != "constant" and not is_by_position) or np.ndim(constant_values):
        raise UnsupportedError(
            explain(
                f"np.pad{at(user_source())} of a traced array takes no function as a mode, and no "
                "reflect_type='odd'.",
                cure="join the parts: np.concatenate([before, x, after]).",
            )
        )
    pairs = np.broadcast_to(np.asarray(pad_width), (rank_of(x), 2)).tolist()
    widths = tuple((int(low), int(high)) for low, high in pairs)
    if is_by_position:
        for axis, width in enumerate(widths):
            positions = np.pad(np.arange(known_size(x, axis, "np.pad")), width, mode)
            x = x[(*[slice(None)] * axis, positions)]
        return x
    value = cast(constant_values, tensor_type(x).dtype)
    if isinstance(value, Staged):
        size = tuple(n + low + high for n, (low, high) in zip(shape(x), widths, strict=True))
        key = tuple(slice(low, low + n) for n, (low, _) in zip(shape(x), widths, strict=True))
        return new_full(value, size).at[key].set(x)
    value = np.asarray(value).item()
    return apply(ops.pad, x, widths=widths, value=value)


@implements(np.shape)
def shape(x: Any) -> tuple[Any, ...]:
    """Return the shape of an array, where a dynamic size is a traced integer; see `numpy.shape`."""
    return tuple(
        dim if isinstance(dim, int) else _size(x, axis)
        for axis, dim in enumerate(tensor_type(x).dims)
    )


def _size(x: Any, axis: int) -> Any:
    """Return a traced size, weakly typed like a Python integer."""
    size = apply(ops.dim_of, x, axis=axis)
    is_traced = isinstance(size, Staged)
    if is_traced:
        return size.as_weak()
    return size


@implements(np.ndim)
def ndim(x: Any) -> int:
    """Return the number of dimensions of an array; see `numpy.ndim`."""
    return rank_of(x)


@implements(np.size)
def size(x: Any, axis: int | None = None) -> Any:
    """Return the number of elements of an array, or along one axis; see `numpy.size`."""
    if axis is None and tensor_type(x).shape is None:
        x = reshape(x, -1)
    sizes = shape(x)
    if axis is not None:
        return sizes[axis]
    total: Any = 1
    for dim_size in sizes:
        total = total * dim_size
    return total


def _astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    check_device(device)  # NumPy 2.0 has no such parameter
    return np.astype(x, dtype, copy=copy)


@implements(_astype, np.astype)
def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    """Copy an array to a specified dtype; see `numpy.astype`."""
    check_device(device)
    converted = cast(x, np.dtype(dtype))
    return copy_if_operand(converted, [x]) if copy else converted
