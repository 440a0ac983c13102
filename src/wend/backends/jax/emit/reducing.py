"""Reductions, positions of extrema, running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from wend.backends.jax.emit.indexing import array
from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import reducing, scanning


def _reduce(function: Callable[..., Any]) -> Emitter:
    def run(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
        x = array(operands[0], node)
        axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
        return function(x, axis=axes, keepdims=keepdims).astype(x.dtype)

    return run


def _position(function: Callable[..., Any]) -> Emitter:
    def run(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
        x = array(operands[0], node)
        axis, keepdims = node.attrs["axis"], node.attrs["keepdims"]
        return function(x, axis=axis, keepdims=keepdims).astype(jnp.int64)

    return run


def _cumsum(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x = array(operands[0], node)
    return jax.lax.cumsum(x, axis=node.attrs["axis"], reverse=node.attrs["reverse"])


def _cumprod(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return jax.lax.cumprod(array(operands[0], node), axis=node.attrs["axis"])


def _recurrence(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """x[k] += a[k]·x[k−1] along an axis, one after the other as the kernel."""
    axis, reverse = node.attrs["axis"], node.attrs["reverse"]
    a, x = (jnp.moveaxis(array(v, node, k), axis, 0) for k, v in enumerate(operands))
    if x.shape[0] == 0:
        return array(operands[1], node, 1)

    a = a.at[-1 if reverse else 0].set(0)  # nothing precedes the first, whatever its factor

    def step(previous: Any, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        current = pair[1] + pair[0] * previous
        return current, current

    _, rows = jax.lax.scan(step, jnp.zeros_like(x[0]), (a, x), reverse=reverse)
    return jnp.moveaxis(rows, 0, axis)


# Kinds of dtypes for which NumPy's kernels compute, by their real parts and then the imaginary ones
BY_KERNEL: dict[Op, str] = dict.fromkeys(
    (reducing.reduce_max, reducing.reduce_min, reducing.argmax, reducing.argmin), "c"
)
EMITTERS: dict[Op, Emitter] = {
    reducing.reduce_sum: _reduce(jnp.sum),
    reducing.reduce_prod: _reduce(jnp.prod),
    reducing.reduce_max: _reduce(jnp.max),
    reducing.reduce_min: _reduce(jnp.min),
    reducing.reduce_any: _reduce(jnp.any),
    reducing.reduce_all: _reduce(jnp.all),
    reducing.argmax: _position(jnp.argmax),
    reducing.argmin: _position(jnp.argmin),
    reducing.cumsum: _cumsum,
    scanning.cumprod: _cumprod,
    scanning.linear_recurrence: _recurrence,
}
