"""Products of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.base.errors import ShapeError
from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import as_array, cast, tensor_type
from wend.ir.dtypes import BOOL
from wend.numpy import reducing, shaping
from wend.numpy.public import implements
from wend.ops.contracting import Axes, dot_general
from wend.ops.shapes import same_dim


def _pair(x: Any, y: Any) -> tuple[Any, Any]:
    # Products take Python's numbers as arrays, so they are not weak.
    x, y = as_array(x), as_array(y)
    dtype = np.result_type(tensor_type(x).dtype, tensor_type(y).dtype)
    return cast(x, dtype), cast(y, dtype)


def _product(x: Any, y: Any, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]) -> Any:
    for mine, theirs in zip(*contract, strict=True):
        a, b = tensor_type(x).dims[mine], tensor_type(y).dims[theirs]
        if isinstance(a, int) and isinstance(b, int) and a != b:
            shapes = f"{tensor_type(x).shape} and {tensor_type(y).shape}"
            raise ShapeError(f"shapes {shapes} not aligned: {a} (dim {mine}) != {b} (dim {theirs})")
    return apply(dot_general, x, y, contract=contract, batch=batch)


@implements(np.matmul)
def matmul(x: Any, y: Any) -> Any:
    """`numpy.matmul`, for traced arrays as well."""
    x, y = _pair(x, y)
    mine, theirs = shaping.rank_of(x), shaping.rank_of(y)
    if not mine or not theirs:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    if mine <= 2 or theirs == 1:
        return _plain(x, y, mine, theirs)
    if theirs == 2:
        return _product(x, y, ((mine - 1,), (0,)), ((), ()))
    x, y = shaping.spread_stacks(x, y, kept=2)
    rank = shaping.rank_of(x)
    axes = tuple(range(rank - 2))
    return _product(x, y, ((rank - 1,), (rank - 2,)), (axes, axes))


def _plain(x: Any, y: Any, mine: int, theirs: int) -> Any:
    """Where no stack has to be lined up with another."""
    free = _product(x, y, ((mine - 1,), (max(theirs - 2, 0),)), ((), ()))
    if theirs <= 2:
        return free
    # [m] @ [s…, k, n] gave [m, s…, n]: the stack comes first.
    return shaping.moveaxis(free, 0, -2) if mine == 2 else free


@implements(np.dot)
def dot(x: Any, y: Any) -> Any:
    """`numpy.dot`, for traced arrays as well."""
    x, y = _pair(x, y)
    mine, theirs = shaping.rank_of(x), shaping.rank_of(y)
    if not mine or not theirs:
        return x * y
    return _product(x, y, ((mine - 1,), (max(theirs - 2, 0),)), ((), ()))


@implements(np.vdot)
def vdot(x: Any, y: Any) -> Any:
    """`numpy.vdot`, for traced arrays as well."""
    x, y = _pair(*(shaping.ravel(v) if isinstance(v, Staged) else np.ravel(v) for v in (x, y)))
    return dot(_conjugate(x), y)


def _conjugate(x: Any) -> Any:
    return np.conjugate(x) if tensor_type(x).dtype.kind == "c" else x


@implements(np.outer)
def outer(x: Any, y: Any) -> Any:
    """`numpy.outer`, for traced arrays as well."""
    x, y = (shaping.ravel(v) if isinstance(v, Staged) else np.ravel(v) for v in (x, y))
    x, y = _pair(x, y)
    return shaping.expand_dims(x, 1) * y


@implements(np.tensordot)
def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    """`numpy.tensordot`, for traced arrays as well."""
    x, y = _pair(x, y)
    mine, theirs = shaping.rank_of(x), shaping.rank_of(y)
    if isinstance(axes, (int, np.integer)):
        pairs = tuple(range(mine - int(axes), mine)), tuple(range(int(axes)))
    else:
        pairs = normalize_axis_tuple(axes[0], mine), normalize_axis_tuple(axes[1], theirs)
    return _product(x, y, pairs, ((), ()))


@implements(np.vecdot)
def vecdot(x: Any, y: Any, axis: int = -1) -> Any:
    """`numpy.vecdot`, for traced arrays as well."""
    x, y = _pair(x, y)
    if not shaping.rank_of(x) or not shaping.rank_of(y):
        raise ValueError("vecdot: Input operand does not have enough dimensions")
    x, y = (shaping.moveaxis(v, normalize_axis_index(axis, shaping.rank_of(v)), -1) for v in (x, y))
    same_dim(tensor_type(x).dims[-1], tensor_type(y).dims[-1], "the sizes that vecdot sums over")
    product = _conjugate(x) * y
    if tensor_type(product).dtype == BOOL:
        return reducing.any(product, axis=-1)
    return reducing.sum(product, axis=-1, dtype=tensor_type(product).dtype)
