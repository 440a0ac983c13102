"""Linear algebra on stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.emit.indexing import array
from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import linalg


def _singular(values: Sequence[Any]) -> None:
    np.linalg.inv(np.zeros((1, 1)))


def _indefinite(values: Sequence[Any]) -> None:
    np.linalg.cholesky(-np.eye(1))


def _factors(ctx: GraphLowering, node: Node, a: Any) -> Sequence[Any]:
    factors, exchanges, permutation = jax.lax.linalg.lu(a)
    pivots = jnp.diagonal(factors, axis1=-2, axis2=-1)
    ctx.check(node, jnp.any(pivots == 0), _singular)
    return factors, exchanges, permutation


def _lu_factor(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    factors, exchanges, _ = _factors(ctx, node, array(operands[0], node))
    return jnp.swapaxes(factors, -1, -2), exchanges + 1


def _lu_solve(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    factors, exchanges, y = (array(v, node, k) for k, v in enumerate(operands))
    pair = jnp.swapaxes(factors, -1, -2), exchanges - 1
    return jax.scipy.linalg.lu_solve(pair, y, trans=int(node.attrs["transposed"]))


def _solve(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    a, y = (array(v, node, k) for k, v in enumerate(operands))
    factors, _, permutation = _factors(ctx, node, a)
    rows = jnp.take_along_axis(y, permutation[..., None], axis=-2)
    lower = jax.lax.linalg.triangular_solve(
        factors, rows, left_side=True, lower=True, unit_diagonal=True
    )
    return jax.lax.linalg.triangular_solve(factors, lower, left_side=True, lower=False)


def _lower_factor(a: Any) -> Any:
    return jax.lax.linalg.cholesky(jnp.tril(a), symmetrize_input=False)


def _cholesky(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    a = array(operands[0], node)
    lower = _lower_factor(a)
    failed = jnp.any(jnp.isnan(jnp.diagonal(lower, axis1=-2, axis2=-1)))
    ctx.check(node, failed, _indefinite)
    return jnp.tril(lower)


def _has_factors(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    a = array(operands[0], node)
    if node.attrs["factors"] == "cholesky":
        return ~jnp.any(jnp.isnan(jnp.diagonal(_lower_factor(a), axis1=-2, axis2=-1)))
    factors, _, _ = jax.lax.linalg.lu(a)
    return ~jnp.any(jnp.diagonal(factors, axis1=-2, axis2=-1) == 0)


EMITTERS: dict[Op, Emitter] = {
    linalg.solve: _solve,
    linalg.lu_factor: _lu_factor,
    linalg.lu_solve: _lu_solve,
    linalg.cholesky: _cholesky,
    linalg.has_factors: _has_factors,
}
