"""Views of whole arrays in another order or shape: what changes there changes in the array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.eager.dispatch import apply
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import TensorType
from wend.numpy.shaping import reshape, transpose
from wend.ops import shaping


@dataclass(frozen=True, slots=True)
class ViewTransform:
    """How an array is seen, in place of the key of a part of it."""

    op: Op
    attrs: Mapping[str, Any]

    def is_reshape(self) -> bool:
        """Whether the elements are in the array's order."""
        return self.op is shaping.reshape

    def of(self, whole: Any) -> Any:
        """The view."""
        return apply(self.op, whole, **self.attrs)

    def back(self, view: Any, whole: TensorType) -> Any:
        """The array whose view is this."""
        if self.op is shaping.transpose:
            return transpose(view, np.argsort(self.attrs["perm"]))
        return reshape(view, whole.shape)


def view_transform_of(node: Node, *, is_view: bool = False) -> ViewTransform | None:
    """How a node sees its operand, if that is sure to be a view.

    Whether a reshape of several axes copies NumPy decides by their order in memory, which a trace
    does not know.

    Args:
        node: of the graph.
        is_view: whether it is known that NumPy has made no copy.
    """
    if node.op is shaping.transpose:
        return ViewTransform(node.op, node.attrs)
    if node.op is not shaping.reshape or len(node.operands) != 1:
        return None
    old, new = node.operands[0].tensor, node.results[0].tensor
    if not old.is_static:
        return None
    is_view = is_view or _long(old) == _long(new)
    return ViewTransform(node.op, node.attrs) if is_view else None


def _long(type: TensorType) -> list[Any]:
    return [dim for dim in type.dims if dim != 1]
