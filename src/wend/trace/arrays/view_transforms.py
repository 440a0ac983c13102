"""Views of whole arrays in another order or shape, or of their real or imaginary parts.

A write to one is a write to the array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.eager.dispatch import apply
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.numpy.shaping import reshape, shape, transpose
from wend.ops import elementwise, shaping


@dataclass(frozen=True, slots=True)
class ViewTransform:
    """The operation that makes a view; it takes the place of a key."""

    op: Op
    attrs: Mapping[str, Any]

    def is_reshape(self) -> bool:
        """Return whether the view keeps the order of the elements."""
        return self.op is shaping.reshape

    def of(self, whole: Any) -> Any:
        """Return the view of an array."""
        return apply(self.op, whole, **self.attrs)

    def back(self, view: Any, whole: Any) -> Any:
        """Return the array that has this view."""
        if self.op is shaping.transpose:
            return transpose(view, np.argsort(self.attrs["perm"]))
        if self.op is elementwise.real:
            return apply(elementwise.complex, view, apply(elementwise.imag, whole))
        if self.op is elementwise.imag:
            return apply(elementwise.complex, apply(elementwise.real, whole), view)
        return reshape(view, shape(whole))


def view_transform_of(node: Node, *, is_view: bool = False) -> ViewTransform | None:
    """Return the transform of a node whose result is certainly a view of its operand, or None.

    Whether NumPy copies in a reshape of several axes depends on their order in memory, which a
    trace does not know.

    Args:
        node: a node of the graph.
        is_view: whether NumPy is known to have returned a view.
    """
    if node.op in (shaping.transpose, elementwise.real, elementwise.imag):
        return ViewTransform(node.op, node.attrs)
    if node.op is not shaping.reshape or len(node.operands) != 1:
        return None
    if not node.operands[0].tensor.is_static or not (is_view or not may_copy(node)):
        return None
    return ViewTransform(node.op, node.attrs)


def is_repeated(array: Value) -> bool:
    """Return whether an array is one element of another, as often as it has elements."""
    node = array.node
    is_broadcast = node is not None and node.op is shaping.broadcast_to
    return is_broadcast and {*(node.operands[0].tensor.shape or ())} <= {1}  # type: ignore[union-attr]


def may_copy(node: Node | None) -> bool:
    """Return whether NumPy may give a copy of an operand, and no view, for what a node makes.

    Where only axes of size 1 come and go, or all elements are one in memory, it gives a view.
    """
    if node is None or node.op is not shaping.reshape or is_repeated(node.operands[0]):
        return False
    shapes = node.operands[0].tensor.shape, node.results[0].tensor.shape
    if None in shapes:
        return True
    old, new = ([dim for dim in shape or () if dim != 1] for shape in shapes)
    return old != new
