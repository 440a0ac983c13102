"""Products of arrays: matrix, inner, outer and tensor products."""

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


def _promote_pair(x: Any, y: Any) -> tuple[Any, Any]:
    # As in NumPy, Python scalars become arrays in a product, so they are not weakly typed.
    x, y = as_array(x), as_array(y)
    dtype = np.result_type(tensor_type(x).dtype, tensor_type(y).dtype)
    return cast(x, dtype), cast(y, dtype)


def _contract(x: Any, y: Any, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]) -> Any:
    for x_axis, y_axis in zip(*contract, strict=True):
        x_size, y_size = tensor_type(x).dims[x_axis], tensor_type(y).dims[y_axis]
        if isinstance(x_size, int) and isinstance(y_size, int) and x_size != y_size:
            shapes = f"{tensor_type(x).shape} and {tensor_type(y).shape}"
            raise ShapeError(
                f"shapes {shapes} not aligned: {x_size} (dim {x_axis}) != {y_size} (dim {y_axis})"
            )
    return apply(dot_general, x, y, contract=contract, batch=batch)


@implements(np.matmul)
def matmul(x: Any, y: Any) -> Any:
    """Return the matrix product of two arrays; see `numpy.matmul`."""
    x, y = _promote_pair(x, y)
    x_rank, y_rank = shaping.rank_of(x), shaping.rank_of(y)
    if not x_rank or not y_rank:
        raise ValueError(
            f"matmul: Input operand {1 if x_rank else 0} does not have enough dimensions (has 0, "
            "gufunc core with signature (n?,k),(k,m?)->(n?,m?) requires 1)"
        )
    if x_rank <= 2 or y_rank == 1:
        return _matmul_unbatched(x, y, x_rank, y_rank)
    if y_rank == 2:
        return _contract(x, y, ((x_rank - 1,), (0,)), ((), ()))
    x, y = shaping.broadcast_batch_dims(x, y, core_rank=2)
    rank = shaping.rank_of(x)
    axes = tuple(range(rank - 2))
    return _contract(x, y, ((rank - 1,), (rank - 2,)), (axes, axes))


def _matmul_unbatched(x: Any, y: Any, x_rank: int, y_rank: int) -> Any:
    """Multiply operands of which at most one has batch dimensions."""
    product = _contract(x, y, ((x_rank - 1,), (max(y_rank - 2, 0),)), ((), ()))
    if y_rank <= 2:
        return product
    # [m, k] @ [s…, k, n] gave [m, s…, n]; the batch dimensions s… come first.
    return shaping.moveaxis(product, 0, -2) if x_rank == 2 else product


@implements(np.dot)
def dot(x: Any, y: Any) -> Any:
    """Return the dot product of two arrays; see `numpy.dot`."""
    x, y = _promote_pair(x, y)
    x_rank, y_rank = shaping.rank_of(x), shaping.rank_of(y)
    if not x_rank or not y_rank:
        return x * y
    return _contract(x, y, ((x_rank - 1,), (max(y_rank - 2, 0),)), ((), ()))


@implements(np.vdot)
def vdot(x: Any, y: Any) -> Any:
    """Return the dot product of two arrays as vectors, the first conjugated; see `numpy.vdot`."""
    x, y = _promote_pair(
        *(shaping.ravel(v) if isinstance(v, Staged) else np.ravel(v) for v in (x, y))
    )
    return dot(_conjugate(x), y)


def _conjugate(x: Any) -> Any:
    return np.conjugate(x) if tensor_type(x).dtype.kind == "c" else x


@implements(np.outer)
def outer(x: Any, y: Any) -> Any:
    """Compute the outer product of two vectors; see `numpy.outer`."""
    x, y = (shaping.ravel(v) if isinstance(v, Staged) else np.ravel(v) for v in (x, y))
    x, y = _promote_pair(x, y)
    return shaping.expand_dims(x, 1) * y


@implements(np.tensordot)
def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    """Compute the tensor dot product along the given axes; see `numpy.tensordot`."""
    return shaping.as_array_of(contract(x, y, axes))


def contract(x: Any, y: Any, axes: Any) -> Any:
    """Compute the tensor dot product along the given axes, a number where no axis is left."""
    x, y = _promote_pair(x, y)
    x_rank, y_rank = shaping.rank_of(x), shaping.rank_of(y)
    if isinstance(axes, (int, np.integer)):
        for k in range(int(axes)):  # as in NumPy, an IndexError if there are not so many axes
            if tensor_type(x).dims[k - int(axes)] != tensor_type(y).dims[k]:
                break
        pairs = tuple(range(x_rank - int(axes), x_rank)), tuple(range(int(axes)))
    else:
        pairs = normalize_axis_tuple(axes[0], x_rank), normalize_axis_tuple(axes[1], y_rank)
    return _contract(x, y, pairs, ((), ()))


@implements(np.vecdot)
def vecdot(x: Any, y: Any, axis: int = -1) -> Any:
    """Compute the vector dot product along an axis; see `numpy.vecdot`."""
    x, y = _promote_pair(x, y)
    if not shaping.rank_of(x) or not shaping.rank_of(y):
        raise ValueError("vecdot: Input operand does not have enough dimensions")
    x, y = (shaping.moveaxis(v, normalize_axis_index(axis, shaping.rank_of(v)), -1) for v in (x, y))
    same_dim(tensor_type(x).dims[-1], tensor_type(y).dims[-1], "the sizes that vecdot sums over")
    product = _conjugate(x) * y
    if tensor_type(product).dtype == BOOL:
        return reducing.any(product, axis=-1)
    return reducing.sum(product, axis=-1, dtype=tensor_type(product).dtype)
