"""Errors that kernels of operations may raise in a run, where shape rules cannot tell (D45)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from wend.ir.graph import Node, Value
from wend.ir.op import Raises
from wend.ir.types import TensorType

# Yields the axes of its first operand that a node indexes, with the positions
Indexed: TypeAlias = Callable[[Node], Iterable[tuple[int, Value]]]

LINALG: Raises = (np.linalg.LinAlgError,)
# Operations that only move elements, and those whose results are positions in range
_MOVING = frozenset(["cast", "reshape", "transpose", "broadcast_to", "slice"])
_GIVING_POSITIONS = frozenset(["argsort", "argmax", "argmin", "nonzero", "iota", "position"])


def if_sizes_unknown(node: Node) -> Raises:
    """Return what an operation raises if sizes do not agree, where only the run knows them."""
    types = [v.type for v in (*node.operands, *node.results)]
    are_known = all(isinstance(type, TensorType) and type.is_static for type in types)
    return () if are_known else (ValueError,)


def if_axis_unknown(node: Node) -> Raises:
    """Return what a reduction without an identity raises if an axis is empty, as a run may find."""
    dims, attrs = node.operands[0].tensor.dims, node.attrs
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    return () if all(isinstance(dims[axis], int) for axis in axes) else (ValueError,)


def if_perhaps_not_square(node: Node) -> Raises:
    """Return what a function of square matrices raises, where only the run knows their sizes."""
    dims = node.operands[0].tensor.dims[-2:]
    return () if all(isinstance(dim, int) for dim in dims) else LINALG


def leading_axes(start: int) -> Indexed:
    """Return what a node indexes whose operands from `start` on are positions, axis by axis."""
    return lambda node: enumerate(node.operands[start:])


def attr_axis(start: int) -> Indexed:
    """Return what a node indexes whose operand `start` has positions along its attr `axis`."""
    return lambda node: [(node.attrs["axis"], node.operands[start])]


def if_out_of_range(indexed: Indexed) -> Callable[[Node], Raises]:
    """Return the rule for an operation at positions along axes of its first operand."""

    def errors(node: Node) -> Raises:
        if node.attrs.get("in_bounds"):
            return ()
        array = node.operands[0].type
        dims = (isinstance(array, TensorType) and array.shape) or ()
        sizes = dict(enumerate(dim if isinstance(dim, int) else 0 for dim in dims))
        is_inside = all(_is_in_range(x, sizes.get(axis, 0)) for axis, x in indexed(node))
        return () if is_inside else (IndexError,)

    return errors


def _is_in_range(positions: Value, limit: int) -> bool:
    """Return whether positions are known to be in an axis of this size, or were found in one."""
    node = positions.node
    while node is not None and node.op.name in _MOVING:
        node = node.operands[0].node
    if node is None:
        return False
    if node.op.name != "constant":
        return node.op.name in _GIVING_POSITIONS
    value: Any = node.attrs["value"][()]
    return bool(np.all(value < limit) and np.all(value >= -limit))


def if_negative_power(node: Node) -> Raises:
    """Return what a power raises: integers have none with a negative exponent."""
    exponent = node.operands[1]
    if not isinstance(exponent.type, TensorType) or exponent.type.dtype.kind not in "iu":
        return ()
    value = exponent.node
    is_constant = value is not None and value.op.name == "constant"
    is_known = is_constant and np.all(value.attrs["value"][()] >= 0)  # type: ignore[union-attr]
    return () if is_known else (ValueError,)
