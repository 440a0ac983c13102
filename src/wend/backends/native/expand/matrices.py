"""Linear algebra by the decompositions that have emitters, which compute in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.ir.dtypes import FLOAT64, complex_of, real_of
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import decompositions, elementwise, factors, linalg, reducing
from wend.ops.decompositions import (
    adjoint,
    column,
    conj,
    on_diagonal,
    product,
    row,
    times_columns,
)


def in_double_precision(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """Compute in double precision and round the results, as NumPy does."""
    dtype = operands[0].tensor.dtype
    wide = complex_of(FLOAT64) if dtype.kind == "c" else FLOAT64
    if dtype == wide:
        return None
    casts = [b.cast(x, wide) for x in operands]
    results = b.emit_node(node.op, casts, **node.attrs).results
    return [b.cast(x, value.tensor.dtype) for x, value in zip(results, node.results, strict=True)]


def complex_in_double_precision(
    b: Any, node: Node, operands: Sequence[Value]
) -> Sequence[Value] | None:
    """Compute in double precision what is complex; f32 has an emitter."""
    is_complex = operands[0].tensor.dtype.kind == "c"
    return in_double_precision(b, node, operands) if is_complex else None


def pinv(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """V·S⁻¹·Uᴴ, where singular values below a part of the largest count as none."""
    (a,) = operands
    sizes = _known_sizes(a)
    if sizes is None:
        return None
    rtol, dtype = node.attrs["rtol"], real_of(a.tensor.dtype)
    if rtol is None:
        rtol = max(sizes) * np.finfo(dtype).eps
    u, s, vh = b.emit_node(decompositions.svd, [a], full=False).results
    largest = b.emit(reducing.reduce_max, s, axes=(len(s.tensor.dims) - 1,), keepdims=True)
    limit = b.broadcast_like(b.mul(largest, b.full_like(largest, rtol)), s)
    is_kept, one = b.emit(elementwise.gt, s, limit), b.ones_like(s)
    inverses = b.select(is_kept, b.reciprocal(b.select(is_kept, s, one)), b.zeros_like(s))
    return [product(b, times_columns(b, adjoint(b, vh), inverses), adjoint(b, u))]


def det_gradient(b: Any, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """The derivative of det by singular values, as in its kernel, in up to one direction."""
    a, *directions = operands
    sizes = _known_sizes(a)
    if len(directions) > 1 or sizes is None:
        return None
    u, s, vh = b.emit_node(decompositions.svd, [a], full=False).results
    left, right = conj(b, u), conj(b, vh)
    if not directions:
        one, rank = b.ones_like(a), len(a.tensor.dims)
        others = b.select(on_diagonal(b, a), one, b.broadcast_like(row(b, _as(b, s, a)), a))
        inner = times_columns(b, left, b.reduce_prod(others, axes=(rank - 1,)))
    else:
        turned = product(b, b.matrix_transpose(left), directions[0], b.matrix_transpose(right))
        inner = product(b, left, _second_form(b, s, turned, sizes[0]))
    phase = b.mul(b.emit(factors.det, u), b.emit(factors.det, vh))
    result = product(b, inner, right)
    return [b.mul(b.broadcast_like(column(b, column(b, phase)), result), result)]


def _second_form(b: Any, s: Value, turned: Value, n: int) -> Any:
    """The form of two directions in the basis of the singular vectors, one of them `turned`."""
    *stack, _, _ = turned.tensor.dims
    # others[i, j]: the product of all singular values but i and j, 0 for i = j
    cube = turned.tensor.with_shape((*stack, n, n, n))
    spread = b.insert_axes(_as(b, s, turned), axes=(len(stack), len(stack) + 1))
    spread = b.broadcast_to(spread, cube.dims)
    eye = np.eye(n, dtype=bool)
    is_left_out = b.constant(np.broadcast_to(eye[:, None] | eye[None], (n, n, n)))
    is_left_out = b.broadcast_to(is_left_out, cube.dims)
    remaining = b.select(is_left_out, b.ones_like(spread), spread)
    others = b.reduce_prod(remaining, axes=(len(stack) + 2,))
    diagonal = on_diagonal(b, turned)
    zeros = b.zeros_like(turned)
    others = b.select(diagonal, zeros, others)
    on = b.select(diagonal, turned, zeros)
    sums = b.reduce_sum(b.matmul(on, others), axes=(len(stack),))
    crossed = b.matrix_transpose(b.mul(others, turned))
    return b.sub(b.select(diagonal, b.broadcast_like(row(b, sums), turned), zeros), crossed)


def _as(b: Any, x: Value, like: Value) -> Any:
    return b.cast(x, like.tensor.dtype)


def _known_sizes(a: Value) -> tuple[int, int] | None:
    """Return the rows and columns of a matrix; None if one is not known, or there are none."""
    rows, columns = a.tensor.dims[-2:]
    if isinstance(rows, int) and isinstance(columns, int) and rows and columns:
        return rows, columns
    return None


RULES: Mapping[Op, Any] = {
    factors.pinv: pinv,
    factors.det_gradient: det_gradient,
    linalg.solve: complex_in_double_precision,
    linalg.cholesky: complex_in_double_precision,
    **dict.fromkeys(
        (
            *(decompositions.eigh, decompositions.eig, decompositions.svd),
            *(factors.qr, factors.det, factors.slogdet, linalg.has_factors),
        ),
        in_double_precision,
    ),
}
