"""Operations that change shapes and move elements without computing.

A shape that is only known at run time is a further operand, an i64 vector; the attr `shape` then
only declares the type of the result (D10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import ShapeError, listed
from wend.base.zero import ZERO
from wend.ir.dtypes import INT64
from wend.ir.graph import Node
from wend.ir.op import Explicit, Linear, Op, Raises, Rounding, no_gradient
from wend.ir.types import (
    Dim,
    Shape,
    Symbol,
    TensorType,
    Type,
    fresh,
)
from wend.ops import elementwise, shape_errors
from wend.ops.raising import if_sizes_unknown
from wend.ops.shapes import (
    WHOLE,
    Slices,
    check_axis,
    check_scalar_index,
    same_dim,
    size_of,
    tensor_of,
    unwrap_single,
)


def _target(shape: Shape | None, sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape at run time: the operand if there is one, else the attr."""
    return tuple(int(size) for size in sizes[0]) if sizes else shape  # type: ignore[return-value]


# Batch rules (`ops/batching.py`)
def _batch_axis(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    """Move the axis by the one that counts the elements; all but the first operand are shared."""
    return None if any(flags[1:]) else c.emit(node, operands, axis=node.attrs["axis"] + 1)


def _batch_shape_of(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    sizes = c.b.slice(c.b.shape_of(operands[0]), slices=((1, None, None),))
    c.shared.add(sizes)
    return sizes


def _batch_dim_of(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    size = c.b.size_of(operands[0], node.attrs["axis"] + 1)
    c.shared.add(size)
    return size


def _batch_broadcast_to(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    (x, *sizes), shape = operands, node.attrs["shape"]
    if any(flags[1:]) or shape is None:
        return None
    missing = len(shape) - (len(x.tensor.dims) - 1)
    x = c.b.insert_axes(x, axes=tuple(range(1, 1 + missing)))
    target = (c.size, *shape)
    if not sizes:
        if isinstance(c.size, int):
            return c.b.broadcast_to(x, target)
        sizes = [c.b.constant(shape, np.int64)]
    return c.b.spread(x, c.sizes(sizes[0]), target)


def _batch_sum_to(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    x, shape = operands[0], node.attrs["shape"]
    inner = x.tensor.dims[1:]
    if any(flags[1:]) or shape is None or not all(isinstance(d, int) for d in (*inner, *shape)):
        return None
    leading = len(inner) - len(shape)
    summed = [k + leading for k, size in enumerate(shape) if size == 1 and inner[k + leading] != 1]
    axes = tuple(axis + 1 for axis in (*range(leading), *summed))
    return c.reshape(c.b.reduce_sum(x, axes=axes, keepdims=True), shape)


def _batch_refine(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    type = c.type_of(node.attrs["type"])
    return None if type is None else c.b.refine(operands[0], type)


def _batch_reshape(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    x, *sizes = operands
    shape = node.results[0].type.shape
    if any(flags[1:]) or shape is None:
        return None
    return c.reshape(x, shape, *sizes)


def _batch_transpose(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    return c.b.transpose(operands[0], perm=(0, *(axis + 1 for axis in node.attrs["perm"])))


def _batch_concat(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    values = c.all(operands, flags)
    return None if values is None else c.emit(node, values, axis=node.attrs["axis"] + 1)


def _batch_split(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    attrs = {**node.attrs, "axis": node.attrs["axis"] + 1}
    return c.b.emit_node(node.op, operands, **attrs).results


def _batch_slices(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    values = c.all(operands, flags)
    slices = (WHOLE, *node.attrs["slices"])
    return None if values is None else c.emit(node, values, slices=slices)


def _batch_add_narrow(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    if any(flags[2:]):
        return None
    values = c.all(operands[:2], flags[:2])
    axis = node.attrs["axis"] + 1
    return None if values is None else c.emit(node, [*values, *operands[2:]], axis=axis)


def _batch_pad(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    return c.emit(node, operands, widths=((0, 0), *node.attrs["widths"]))


# Shapes as values
def _infer_shape_of(x: Type) -> TensorType:
    rank = tensor_of(x).rank
    return TensorType(INT64, (fresh() if rank is None else rank,))


shape_of = Op(
    "shape_of",
    _infer_shape_of,
    lambda x: np.array(np.shape(x), np.int64),
    no_gradient(),
    is_cheap=True,
    reads_shape=True,
    batch=_batch_shape_of,
)


def _infer_dim_of(x: Type, *, axis: int) -> TensorType:
    if tensor_of(x).rank is not None:
        check_axis(axis, len(tensor_of(x).dims))
    return TensorType(INT64, ())


dim_of = Op(
    "dim_of",
    _infer_dim_of,
    lambda x, *, axis: np.int64(np.shape(x)[axis]),
    no_gradient(),
    is_cheap=True,
    reads_shape=True,
    batch=_batch_dim_of,
)


# Of the arrays that index one, the error is an IndexError: `error` is "index", else "value".
def _infer_broadcast_shapes(*shapes: Type, error: str = "value") -> TensorType:
    ranks = [tensor_of(type).dims[0] for type in shapes]
    known = [rank for rank in ranks if isinstance(rank, int)]
    return TensorType(INT64, (max(known) if len(known) == len(ranks) else fresh(),))


def _broadcast_errors(node: Node) -> Raises:
    return (IndexError,) if node.attrs.get("error") == "index" else (ValueError,)


broadcast_shapes = Op(
    "broadcast_shapes",
    _infer_broadcast_shapes,
    shape_errors.broadcast_shapes,
    no_gradient(),
    is_cheap=True,
    raises=_broadcast_errors,
    error_attrs=("error",),
)


# Broadcasting and its transpose. In the message, `{operand}` is the operand's shape, `{shape[k:]}`
# the target's from an axis on, and `{part[k:]}` the operand's without up to k leading axes of size
# 1. Without a message the error is that of `np.broadcast_to`.
def _infer_broadcast_to(
    x: Type, *sizes: Type, shape: Shape | None, message: str = ""
) -> TensorType:
    x = tensor_of(x)
    if x.shape is not None and shape is not None:
        if len(x.shape) > len(shape):
            raise ShapeError(f"cannot broadcast {x} to fewer dimensions")
        for dim, target_dim in zip(x.shape[::-1], shape[::-1], strict=False):
            if isinstance(dim, int) and isinstance(target_dim, int) and dim not in (1, target_dim):
                default = f"cannot broadcast {x} to shape {shape}"
                raise ShapeError(shape_errors.filled_in(message, x.shape, shape) or default)
    return x.with_shape(shape)


def _kernel_broadcast_to(x: Any, *sizes: Any, shape: Shape | None, message: str = "") -> Any:
    target = _target(shape, sizes)
    if target == ():
        return x
    try:
        return np.broadcast_to(x, target)
    except ValueError:
        if not message:
            raise
        raise ShapeError(shape_errors.filled_in(message, np.shape(x), target)) from None


def _if_sizes_may_differ(node: Node) -> tuple[type[ValueError], ...]:
    source, target = (tensor_of(value.type).shape for value in (node.operands[0], node.results[0]))
    if source is None or target is None:
        return (ValueError,)
    pairs = zip(source[::-1], target[::-1], strict=False)
    return () if all(size in (1, target_size) for size, target_size in pairs) else (ValueError,)


broadcast_to = Op(
    "broadcast_to",
    _infer_broadcast_to,
    _kernel_broadcast_to,
    Linear(lambda b, n, ct, i: b.sum_like(ct, n.operands[0]), operands=(0,)),
    is_cheap=True,
    raises=_if_sizes_may_differ,
    error_attrs=("message",),
    view_of=0,
    batch=_batch_broadcast_to,
)


def _infer_sum_to(x: Type, *sizes: Type, shape: Shape | None) -> TensorType:
    return tensor_of(x).with_shape(shape)


def _kernel_sum_to(x: Any, *sizes: Any, shape: Shape | None) -> Any:
    x, target = np.asarray(x), _target(shape, sizes)
    leading = x.ndim - len(target)
    trailing = x.shape[leading:]
    axes = [axis + leading for axis, size in enumerate(target) if size == 1 and trailing[axis] != 1]
    summed = np.add.reduce(x, axis=(*range(leading), *axes), dtype=x.dtype, keepdims=True)
    return summed.reshape(target)[()]


sum_to = Op(
    "sum_to",
    _infer_sum_to,
    _kernel_sum_to,
    Linear(lambda b, n, ct, i: b.broadcast_like(ct, n.operands[0]), operands=(0,)),
    is_speculatable=True,
    rounding=Rounding.OF_FLOATS,
    step=elementwise.add,
    identity=0,
    batch=_batch_sum_to,
)


# The same array under a type with other dimension symbols
refine = Op(
    "refine",
    lambda x, *, type: type,
    lambda x, *, type: x,
    Linear(lambda b, n, ct, i: b.refine(ct, n.operands[0].type)),
    is_cheap=True,
    shares=0,
    forwards_zero=True,
    batch=_batch_refine,
)


def _infer_keep_shape(
    x: Type, sizes: Type, *, shape: Shape, message: str, error: str
) -> TensorType:
    if len(tensor_of(x).dims) != len(shape):
        raise ShapeError(f"{x} cannot keep a shape of {len(shape)} sizes")
    return tensor_of(x).with_shape(shape)


def _keep_shape_errors(node: Node) -> Raises:
    error = node.attrs["error"]
    return () if error == "carry" else (shape_errors.SHAPE_ERRORS[error],)


# The same array, after a check of its sizes against a vector, in which −1 accepts any. In the
# message `{shape}` is the expected and `{its}` the actual shape, `{size}` and `{actual}` the first
# sizes that differ; `error` is "carry" (for a loop's carry), "index", "type" or "value".
keep_shape = Op(
    "keep_shape",
    _infer_keep_shape,
    shape_errors.keep_shape,
    Linear(lambda b, n, ct, i: b.refine(ct, n.operands[0].type), operands=(0,)),
    raises=_keep_shape_errors,
    error_attrs=("message", "error"),
    shares=0,
)


# Reshaping; one −1 in the shape stands for the remaining size
def _infer_reshape(x: Type, *sizes: Type, shape: Shape | None) -> TensorType:
    x = tensor_of(x)
    if sizes or shape is None:
        return x.with_shape(shape)
    total = None if x.shape is None else size_of(x.shape)
    known = size_of(tuple(dim for dim in shape if dim != -1))
    if -1 in shape:
        inferred: Dim = fresh()
        if total is not None and known is not None:
            if known == 0 or total % known:
                raise ShapeError(f"cannot reshape {x} to {shape}")
            inferred = total // known
        return x.with_shape(tuple(inferred if dim == -1 else dim for dim in shape))
    if total is not None and known is not None and total != known:
        raise ShapeError(f"cannot reshape {x}, {total} elements, to {shape}")
    return x.with_shape(shape)


reshape = Op(
    "reshape",
    _infer_reshape,
    lambda x, *sizes, shape: np.reshape(x, _target(shape, sizes))[()],
    Linear(lambda b, n, ct, i: b.reshape_like(ct, n.operands[0]), operands=(0,)),
    is_cheap=True,
    raises=if_sizes_unknown,
    shares=0,
    view_of=0,
    batch=_batch_reshape,
)


def _infer_transpose(x: Type, *, perm: tuple[int, ...]) -> TensorType:
    x = tensor_of(x)
    if sorted(perm) != list(range(len(x.dims))):
        raise ShapeError(f"{perm} is not an order of the axes of {x}")
    return x.with_shape(tuple(x.dims[axis] for axis in perm))


transpose = Op(
    "transpose",
    _infer_transpose,
    lambda x, *, perm: np.transpose(x, perm),
    Linear(lambda b, n, ct, i: b.transpose(ct, perm=tuple(np.argsort(n.attrs["perm"]).tolist()))),
    is_cheap=True,
    view_of=0,
    batch=_batch_transpose,
)


# Joining and splitting
def _infer_concat(*types: Type, axis: int) -> TensorType:
    first = tensor_of(types[0])
    check_axis(axis, len(first.dims))
    dims = list(first.dims)
    for type in map(tensor_of, types[1:]):
        if type.dtype != first.dtype or type.rank != first.rank:
            raise ShapeError(f"cannot concatenate {listed(types)}")
        for k, dim in enumerate(type.dims):
            if k != axis:
                dims[k] = same_dim(dims[k], dim, f"sizes along axis {k} of arrays to concatenate")
    sizes = [tensor_of(type).dims[axis] for type in types]
    known = [size for size in sizes if isinstance(size, int)]
    dims[axis] = sum(known) if len(known) == len(sizes) else fresh()
    return first.with_shape(tuple(dims))


def _transpose_concat(b: Any, node: Any, ct: Any, index: int) -> Any:
    return _pieces_of_concat(b, node, ct, [index])[0]


def _pieces_of_concat(b: Any, node: Any, ct: Any, indices: Sequence[int]) -> Sequence[Any]:
    axis, pieces = node.attrs["axis"], {}
    known, others = 0, None  # where an operand starts: the sum of the two
    wanted_indices = set(indices)

    def position() -> Any:
        return b.integer(known) if others is None else b.add(others, b.integer(known))

    for index, operand in enumerate(node.operands):
        dim = operand.type.dims[axis]
        is_piece = index in wanted_indices
        start = position() if is_piece else None
        if isinstance(dim, int):
            known += dim
        else:
            size = b.size_of(operand, axis)
            others = size if others is None else b.add(others, size)
        if is_piece:
            pieces[index] = b.narrow(ct, start, position(), axis=axis, size=dim)
    return [pieces[index] for index in indices]


concat = Op(
    "concat",
    _infer_concat,
    lambda *xs, axis: np.concatenate(xs, axis=axis),
    Linear(_transpose_concat, transpose_all=_pieces_of_concat),
    raises=if_sizes_unknown,
    is_speculatable=True,
    batch=_batch_concat,
)


def _infer_split(x: Type, *, sizes: tuple[int, ...], axis: int) -> tuple[TensorType, ...]:
    x = tensor_of(x)
    check_axis(axis, len(x.dims))
    whole = x.dims[axis]
    if isinstance(whole, int) and whole != sum(sizes):
        raise ShapeError(f"sizes {sizes} do not add up to {whole}, axis {axis} of {x}")
    return tuple(x.with_shape((*x.dims[:axis], size, *x.dims[axis + 1 :])) for size in sizes)


def _kernel_split(x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    return unwrap_single(np.split(x, np.cumsum(sizes)[:-1], axis=axis))


def _pull_back_split(b: Any, node: Any, cts: Any) -> Any:
    pieces = [
        b.zeros_like(result) if ct is ZERO else ct
        for ct, result in zip(cts, node.results, strict=True)
    ]
    return (b.concat(*pieces, axis=node.attrs["axis"]),)


split = Op(
    "split",
    _infer_split,
    _kernel_split,
    Explicit(_pull_back_split, linear=(0,)),
    batch=_batch_split,
)


# Slices with static bounds, and their transpose
def _infer_slice(x: Type, *, slices: Slices) -> TensorType:
    x = tensor_of(x)
    if len(slices) != len(x.dims):
        raise ShapeError(f"{len(slices)} slices for {x}")
    dims: list[Dim] = []
    for axis, (dim, bounds) in enumerate(zip(x.dims, slices, strict=True)):
        if isinstance(dim, int):
            dims.append(len(range(*slice(*bounds).indices(dim))))
        else:
            dims.append(
                dim if bounds[:2] == (None, None) and bounds[2] in (None, 1, -1) else fresh(axis)
            )
    return x.with_shape(tuple(dims))


def sliced_type(x: TensorType, slices: Slices) -> TensorType:
    """Return the type of `x` after slicing."""
    return _infer_slice(x, slices=slices)


def _kernel_slice(x: Any, *, slices: Slices) -> Any:
    return np.asarray(x)[tuple(slice(*bounds) for bounds in slices)]


def _accumulate_slice(b: Any, node: Any, ct: Any, index: int, into: Any) -> Any:
    return b.add_slice(into, ct, slices=node.attrs["slices"])


slice_ = Op(
    "slice",
    _infer_slice,
    _kernel_slice,
    Linear.adding(_accumulate_slice),
    is_cheap=True,
    view_of=0,
    batch=_batch_slices,
)


def _kernel_add_slice(into: Any, x: Any, *, slices: Slices) -> Any:
    out = np.array(into)
    out[tuple(slice(*bounds) for bounds in slices)] += x
    return out


add_slice = Op(
    "add_slice",
    lambda into, x, *, slices: tensor_of(into),
    _kernel_add_slice,
    Linear(lambda b, n, ct, i: b.slice(ct, slices=n.attrs["slices"]) if i else ct),
    updates=0,
    addends=(0,),
    batch=_batch_slices,
)


# A slice of one axis with bounds known at run time, and its transpose
def _infer_narrow(x: Type, start: Type, stop: Type, *, axis: int, size: Dim | None) -> TensorType:
    x = tensor_of(x)
    check_axis(axis, len(x.dims))
    check_scalar_index(start, "the start")
    check_scalar_index(stop, "the stop")
    return x.with_shape((*x.dims[:axis], fresh() if size is None else size, *x.dims[axis + 1 :]))


def _along(axis: int, start: Any, stop: Any) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(int(start), int(stop)),)


def _kernel_narrow(x: Any, start: Any, stop: Any, *, axis: int, size: Dim | None) -> Any:
    return x[_along(axis, start, stop)]


def _accumulate_narrow(b: Any, node: Any, ct: Any, index: int, into: Any) -> Any:
    _, start, stop = node.operands
    return b.add_narrow(into, ct, start, stop, axis=node.attrs["axis"])


narrow = Op(
    "narrow",
    _infer_narrow,
    _kernel_narrow,
    Linear.adding(_accumulate_narrow, (0,)),
    is_cheap=True,
    view_of=0,
    traps=True,
    batch=_batch_axis,
)


def _kernel_add_narrow(into: Any, x: Any, start: Any, stop: Any, *, axis: int) -> Any:
    out = np.array(into)
    out[_along(axis, start, stop)] += x
    return out


def _transpose_add_narrow(b: Any, node: Any, ct: Any, index: int) -> Any:
    if index == 0:
        return ct
    _, x, start, stop = node.operands
    axis = node.attrs["axis"]
    return b.narrow(ct, start, stop, axis=axis, size=x.type.dims[axis])


add_narrow = Op(
    "add_narrow",
    lambda into, x, start, stop, *, axis: tensor_of(into),
    _kernel_add_narrow,
    Linear(_transpose_add_narrow, operands=(0, 1)),
    updates=0,
    addends=(0,),
    batch=_batch_add_narrow,
)


# Padding with a constant
def _infer_pad(x: Type, *, widths: tuple[tuple[int, int], ...], value: Any) -> TensorType:
    x = tensor_of(x)
    if len(widths) != len(x.dims):
        raise ShapeError(f"{len(widths)} pad widths for {x}")
    dims: list[Dim] = []
    for axis, (dim, (low, high)) in enumerate(zip(x.dims, widths, strict=True)):
        if isinstance(dim, Symbol):
            dims.append(dim if low == high == 0 else fresh(axis))
        else:
            dims.append(dim + low + high)
    return x.with_shape(tuple(dims))


def _pull_back_pad(b: Any, node: Any, cts: Any) -> Any:
    # −high or None: a stop of −0 would be an empty slice
    slices = tuple((low, -high or None, None) for low, high in node.attrs["widths"])
    return (b.slice(cts[0], slices=slices),)


def _jvp_pad(b: Any, node: Any, tangents: Any) -> Any:
    # The constant has no tangent: padding is linear only when that is 0.
    return (b.emit(pad, tangents[0], widths=node.attrs["widths"], value=0),)


def _kernel_pad(x: Any, *, widths: tuple[tuple[int, int], ...], value: Any) -> Any:
    return np.pad(x, widths, constant_values=value) if widths else x


pad: Op = Op("pad", _infer_pad, _kernel_pad, Explicit(_pull_back_pad, _jvp_pad), batch=_batch_pad)
