"""Cotangents that may be Zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.backends.jax.values import DeviceList, Maybe
from wend.base.zero import ZERO
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import maybe


def add_values(x: Any, y: Any) -> Any:
    """Return the sum of two values, item by item for lists; Zero is the identity."""
    if x is ZERO or y is ZERO:
        return y if x is ZERO else x
    if isinstance(x, Maybe) and isinstance(y, Maybe):
        return Maybe(x.is_present | y.is_present, add_values(x.value, y.value))
    if isinstance(x, Maybe):
        return add_values(x.value, y)
    if isinstance(y, Maybe):
        return add_values(x, y.value)
    if isinstance(x, DeviceList):
        return DeviceList(_add_items(x.items, y.items), x.length, x.size)
    return jnp.add(x, y)


def _add_items(x: Any, y: Any) -> Any:
    """Add the elements of two lists, which may have room for different numbers of them."""
    if isinstance(x, DeviceList):
        return DeviceList(_add_items(x.items, y.items), x.length)
    if isinstance(x, Maybe):
        return Maybe(x.is_present | y.is_present, _add_items(x.value, y.value))
    shape = tuple(map(max, x.shape, y.shape))
    return _enlarged(x, shape) + _enlarged(y, shape)


def _enlarged(x: Any, shape: tuple[int, ...]) -> Any:
    widths = [(0, target - size) for size, target in zip(x.shape, shape, strict=True)]
    return jnp.pad(x, widths) if any(width for _, width in widths) else x


def _zero(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return ZERO


def is_present(x: Any) -> Any:
    """Return whether a maybe is there."""
    if x is ZERO:
        return np.bool_(False)
    return x.is_present if isinstance(x, Maybe) else np.bool_(True)


def _is_zero(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    present = is_present(operands[0])
    return ~present


def _any_nonzero(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    flags = [is_present(x) for x in operands]
    if any(isinstance(flag, np.bool_) and flag for flag in flags):
        return np.bool_(True)
    unknown = [flag for flag in flags if not isinstance(flag, np.bool_)]
    result: Any = np.bool_(False)
    for flag in unknown:
        result = flag if isinstance(result, np.bool_) else result | flag
    return result


def _autograd_add(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return add_values(*operands)


def _instantiate(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, zeros = operands
    if x is ZERO:
        return zeros
    if not isinstance(x, Maybe):
        return x
    if not isinstance(x.value, DeviceList):
        return x.value  # zeros where it is Zero
    is_there = x.is_present
    return jax.tree.map(lambda a, b: jnp.where(is_there, a, b), x.value, _like(zeros, x.value))


def _like(zeros: Any, value: Any) -> Any:
    """Return a list in the form of another one."""
    return jax.tree.map(
        lambda z, v: _enlarged(jnp.asarray(z), v.shape),
        DeviceList(zeros.items, zeros.length, value.size),
        value,
    )


def _present(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    (x,) = operands
    return x.value if isinstance(x, Maybe) else x


EMITTERS: dict[Op, Emitter] = {
    maybe.zero: _zero,
    maybe.is_zero: _is_zero,
    maybe.any_nonzero: _any_nonzero,
    maybe.autograd_add: _autograd_add,
    maybe.instantiate: _instantiate,
    maybe.present: _present,
}
