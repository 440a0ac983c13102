"""Determinants, pseudo-inverses and orthogonal factors of stacks of matrices.

As in `decompositions`, rules take and give the gradient of a real function, conj(ct).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.zero import ZERO
from wend.ir.dtypes import real_of
from wend.ir.op import Explicit, Op, Rounding
from wend.ir.types import TensorType, Type
from wend.ops.decompositions import (
    adjoint,
    column,
    conj,
    first_rows,
    gradient,
    incomplete_basis,
    matrix_of,
    on_diagonal,
    product,
    shorter,
)
from wend.ops.raising import LINALG, if_perhaps_not_square
from wend.ops.shapes import check_same


# Determinants
def _infer_det(a: Type) -> TensorType:
    a = matrix_of(a, square=True)
    return a.with_shape(a.dims[:-2])


def _broadcast_scalars(b: Any, x: Any, like: Any) -> Any:
    """Broadcast one number per matrix over the matrices."""
    return b.broadcast_like(column(b, column(b, b.cast(x, like.type.dtype))), like)


def _pull_back_det(b: Any, node: Any, cts: Any) -> Any:
    (a,) = node.operands
    return (b.mul(_broadcast_scalars(b, cts[0], a), b.emit(det_gradient, a)),)


det = Op(
    "det",
    _infer_det,
    lambda a: np.linalg.det(a),
    Explicit(_pull_back_det),
    rounding=Rounding.OF_FLOATS,
    raises=if_perhaps_not_square,
)


def _infer_det_gradient(a: Type, *directions: Type) -> TensorType:
    return matrix_of(check_same((a, *directions)), square=True)


def _kernel_det_gradient(a: Any, *directions: Any) -> Any:
    # det(A + X) = det(U)·det(Vᴴ)·det(S + UᴴXV), and the term of det(S + Y) that is of degree m in Y
    # is the sum over m of the rows, of the product of the other singular values and of the
    # determinant of these rows and columns of Y. Nothing is divided by a small number.
    u, s, vh = np.linalg.svd(a)
    left, right = np.conj(u), np.conj(vh)
    turned = [np.matrix_transpose(left) @ x @ np.matrix_transpose(right) for x in directions]
    rows = range(len(directions) + 1)
    others = _products_of_others(s, len(rows))
    inner = np.zeros_like(a)
    for columns in itertools.permutations(rows):
        entries = (f"...{'ABCDEFGH'[i]}{'ABCDEFGH'[k]}" for i, k in enumerate(columns))
        *factors, result = entries
        subscripts = ",".join([f"...{'ABCDEFGH'[: len(rows)]}", *factors])
        if columns[-1] == rows[-1]:
            values = np.einsum(f"{subscripts}->...{result[-1]}", others, *turned)
            inner += _sign(columns) * values[..., None] * np.eye(a.shape[-1])
        else:
            inner += _sign(columns) * np.einsum(f"{subscripts}->{result}", others, *turned)
    phase = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return (phase * (left @ inner @ right)).astype(a.dtype, copy=False)


def _products_of_others(s: Any, count: int) -> Any:
    """Return products of all but `count` of the numbers, 0 where two of these are the same one."""
    size = s.shape[-1]
    chosen = np.indices((size,) * count)
    is_left_out = np.zeros((size,) * (count + 1), bool)
    for index in chosen:
        is_left_out |= index[..., None] == np.arange(size)
    products = np.where(is_left_out, 1, s[(..., *(None,) * count, slice(None))]).prod(-1)
    return products * (is_left_out.sum(-1) == count)


def _sign(permutation: Sequence[int]) -> int:
    """Return the sign of a permutation."""
    pairs = itertools.combinations(permutation, 2)
    return -1 if sum(i > k for i, k in pairs) % 2 else 1


def _pull_back_det_gradient(b: Any, node: Any, cts: Any) -> Any:
    # The derivatives of det are symmetric forms: that of the next order, and in a direction the
    # same form, with the cotangent for the direction.
    a, *directions = node.operands
    exchanged = (
        b.emit(det_gradient, a, *directions[:i], cts[0], *directions[i + 1 :])
        for i in range(len(directions))
    )
    return (b.emit(det_gradient, a, *directions, cts[0]), *exchanged)


# The gradient of the derivative of det in some directions; without directions, that of det
det_gradient: Op = Op(
    "det_gradient",
    _infer_det_gradient,
    _kernel_det_gradient,
    Explicit(_pull_back_det_gradient),
    rounding=Rounding.OF_FLOATS,
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
    "slogdet",
    _infer_slogdet,
    lambda a: tuple(np.linalg.slogdet(a)),
    Explicit(_pull_back_slogdet),
    rounding=Rounding.OF_FLOATS,
    raises=if_perhaps_not_square,
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
pinv = Op(
    "pinv",
    _infer_pinv,
    _kernel_pinv,
    Explicit(_pull_back_pinv),
    raises=LINALG,
    rounding=Rounding.OF_FLOATS,
)


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
        if cts[0] is not ZERO:
            raise incomplete_basis("columns", "qr with mode='reduced'")
        q, r = b.part(q, 0, columns), first_rows(b, r, columns)
        gr = cts[1] if cts[1] is ZERO else first_rows(b, cts[1], columns)
        cts = ZERO, gr
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
    rounding=Rounding.OF_FLOATS,
)
