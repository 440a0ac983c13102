"""Linear algebra on stacks of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
    _check_pivots(ctx, node, factors)
    return factors, exchanges, permutation


def _check_pivots(ctx: GraphLowering, node: Node, factors: Any) -> None:
    pivots = jnp.diagonal(factors, axis1=-2, axis2=-1)
    ctx.check(node, jnp.any(pivots == 0), _singular)


def _lu_factor(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    a = array(operands[0], node)
    factors, exchanges = _of_matrices(_factor, a)
    _check_pivots(ctx, node, factors)
    return jnp.swapaxes(factors, -1, -2), exchanges


def _lu_solve(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    factors, exchanges, y = (array(v, node, k) for k, v in enumerate(operands))
    trans = int(node.attrs["transposed"])
    return _of_matrices(
        partial(_solve_factored, trans), jnp.swapaxes(factors, -1, -2), exchanges, y
    )


def _of_matrices(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Apply a function to each matrix of stacks, with what others have for it."""
    for _ in range(first.ndim - 2):
        function = jax.vmap(function)
    return function(first, *others)


def _factor(a: Any) -> tuple[Any, Any]:
    """Return the factors of a matrix and its exchanges, from 1; or a larger triangle, marked."""

    def factored(a: Any) -> tuple[Any, Any]:
        factors, exchanges, _ = jax.lax.linalg.lu(a)
        return factors, exchanges + 1

    def marked(mark: int) -> Callable[[Any], tuple[Any, Any]]:
        return lambda a: (a, jnp.full(len(a), mark, jnp.int32))

    if len(a) <= linalg.LARGEST_FACTORED_TRIANGLE:
        return factored(a)
    is_finite = jnp.isfinite(a).all()
    is_upper, is_lower = (is_finite & (part(a) == a).all() for part in (jnp.triu, jnp.tril))
    number = jnp.where(is_upper, 0, jnp.where(is_lower, 1, 2))
    return jax.lax.switch(number, [marked(-1), marked(0), factored], a)  # type: ignore[no-any-return]


def _solve_factored(trans: int, matrix: Any, exchanges: Any, y: Any) -> Any:
    def by_factors(matrix: Any, exchanges: Any, y: Any) -> Any:
        return jax.scipy.linalg.lu_solve((matrix, exchanges - 1), y, trans=trans)

    def by_triangle(is_lower: bool) -> Callable[[Any, Any, Any], Any]:
        solve = partial(jax.scipy.linalg.solve_triangular, lower=is_lower, trans=trans)
        return lambda matrix, exchanges, y: solve(matrix, y)

    if len(matrix) == 0:
        return y
    number = jnp.clip(exchanges[0], -1, 1) + 1
    ways = [by_triangle(False), by_triangle(True), by_factors]
    return jax.lax.switch(number, ways, matrix, exchanges, y)


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
