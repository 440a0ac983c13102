"""Determinants, pseudo-inverses and orthogonal factors of stacks of matrices.

As in `decompositions`, rules take and give the gradient of a real function, conj(ct).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.zero import ZERO
from wend.ir.dtypes import real_of
from wend.ir.op import Explicit, Op
from wend.ir.types import TensorType, Type
from wend.ops.decompositions import (
    adjoint,
    column,
    conj,
    gradient,
    matrix_of,
    on_diagonal,
    product,
    shorter,
)
from wend.ops.raising import LINALG


# Determinants
def _infer_det(a: Type) -> TensorType:
    a = matrix_of(a, square=True)
    return a.with_shape(a.dims[:-2])


def _broadcast_scalars(b: Any, x: Any, like: Any) -> Any:
    """Broadcast one number per matrix over the matrices."""
    return b.broadcast_like(column(b, column(b, b.cast(x, like.type.dtype))), like)


def _pull_back_det(b: Any, node: Any, cts: Any) -> Any:
    (a,) = node.operands
    return (b.mul(_broadcast_scalars(b, cts[0], a), b.emit(cofactors, a)),)


det = Op("det", _infer_det, lambda a: np.linalg.det(a), Explicit(_pull_back_det))


def _kernel_cofactors(a: Any) -> Any:
    # det(A)·A⁻ᵀ by singular values: the product of the others needs no division, so it is right
    # for singular matrices.
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(a.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
    phase = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return (phase * np.conj(u * others[..., None, :] @ vh)).astype(a.dtype, copy=False)


def _pull_back_cofactors(b: Any, node: Any, cts: Any) -> Any:
    # With C the cofactors: (⟨ct, C⟩·C − C·ctᵀ·C)/det
    (a,), (c,) = node.operands, node.results
    rank = len(a.type.dims)
    inner = b.reduce_sum(b.mul(cts[0], c), axes=(rank - 2, rank - 1))
    cross_term = product(b, c, b.matrix_transpose(cts[0]), c)
    numerator = b.sub(b.mul(_broadcast_scalars(b, inner, a), c), cross_term)
    return (b.div(numerator, _broadcast_scalars(b, b.emit(det, a), a)),)


# The gradient of det. Its own derivative is defined for regular matrices, and NaN at singular ones.
cofactors = Op(
    "cofactors",
    lambda a: matrix_of(a, square=True),
    _kernel_cofactors,
    Explicit(_pull_back_cofactors),
)


def _infer_slogdet(a: Type) -> tuple[TensorType, ...]:
    sign = _infer_det(a)
    return sign, sign.with_dtype(real_of(sign.dtype))


def _pull_back_slogdet(b: Any, node: Any, cts: Any) -> Any:
    # d log det = tr(A⁻¹ dA); its real part is the logarithm's, its imaginary part turns the sign.
    (a,), (sign, _) = node.operands, node.results
    factor = None if cts[1] is ZERO else b.cast(cts[1], a.type.dtype)
    if cts[0] is not ZERO and a.type.dtype.kind == "c":
        turn = b.imag(b.mul(cts[0], sign))
        turning = b.complex(b.zeros_like(turn), turn)
        factor = turning if factor is None else b.add(factor, turning)
    if factor is None:
        return (ZERO,)
    one = b.select(on_diagonal(b, a), b.ones_like(a), b.zeros_like(a))
    return (b.mul(_broadcast_scalars(b, factor, a), b.solve(b.matrix_transpose(a), one)),)


slogdet = Op(
    "slogdet", _infer_slogdet, lambda a: tuple(np.linalg.slogdet(a)), Explicit(_pull_back_slogdet)
)


# Pseudo-inverses
def _infer_pinv(a: Type, *, rtol: float | None) -> TensorType:
    a = matrix_of(a)
    return a.with_shape((*a.dims[:-2], a.dims[-1], a.dims[-2]))


def _kernel_pinv(a: Any, *, rtol: float | None) -> Any:
    rtol = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    return np.linalg.pinv(a, rcond=rtol)


def _pull_back_pinv(b: Any, node: Any, cts: Any) -> Any:
    # Golub and Pereyra, "The differentiation of pseudo-inverses" (1973), eq. 4.12:
    # dP = −P dA P + P Pᴴ dAᴴ (1 − A P) + (1 − P A) dAᴴ Pᴴ P
    (a,), (p,) = node.operands, node.results
    g = conj(b, cts[0])
    gh, ph = adjoint(b, g), adjoint(b, p)
    first = product(b, ph, g, ph)
    second = product(b, gh, p, ph)
    second = b.sub(second, product(b, a, p, second))
    third = product(b, ph, p, gh)
    third = b.sub(third, product(b, third, p, a))
    return (conj(b, b.sub(b.add(second, third), first)),)


# No derivative exists where the rank changes
pinv = Op("pinv", _infer_pinv, _kernel_pinv, Explicit(_pull_back_pinv), raises=LINALG)


# Orthogonal factors
def _infer_qr(a: Type, *, complete: bool) -> tuple[TensorType, ...]:
    a = matrix_of(a)
    *stack, rows, columns = a.dims
    k = rows if complete else shorter(a)
    return a.with_shape((*stack, rows, k)), a.with_shape((*stack, k, columns))


def _pull_back_qr(b: Any, node: Any, cts: Any) -> Any:
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application
    # in optimum experimental design" (2010); wide matrices: Roberts and Roberts, "QR and LQ
    # decomposition matrix backpropagation algorithms" (2020), section 4.
    (a,), (q, r) = node.operands, node.results
    rows, columns = a.type.dims[-2:]
    if node.attrs["complete"] and rows != columns and shorter(a.type) != rows:
        raise NotImplementedError(
            "the columns that complete a basis have no derivative: use qr with mode='reduced'"
        )
    gq, gr = gradient(b, cts[0], q), gradient(b, cts[1], r)
    if rows == columns or shorter(a.type) == columns:
        return (conj(b, _pull_back_tall(b, q, r, gq, gr)),)
    y, gv = b.part(a, rows, columns), b.part(gr, rows, columns)
    front = _pull_back_tall(
        b, q, b.part(r, 0, rows), b.add(gq, product(b, y, adjoint(b, gv))), b.part(gr, 0, rows)
    )
    back = product(b, q, gv)
    return (conj(b, b.concat(front, back, axis=len(a.type.dims) - 1)),)


def _pull_back_tall(b: Any, q: Any, r: Any, gq: Any, gr: Any) -> Any:
    m = b.sub(product(b, r, adjoint(b, gr)), product(b, adjoint(b, gq), q))
    half = b.half_lower(m)
    lower = b.add(half, adjoint(b, half))  # the lower triangle, mirrored
    inner = b.add(gq, product(b, q, lower))
    return adjoint(b, b.solve(r, adjoint(b, inner)))


qr = Op(
    "qr",
    _infer_qr,
    lambda a, *, complete: tuple(np.linalg.qr(a, "complete" if complete else "reduced")),
    Explicit(_pull_back_qr),
)
