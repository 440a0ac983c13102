"""A builder for batch rules, which knows the axis that counts the elements.

A rule `(c, node, operands, flags) -> result or results` of an operation computes for all elements
at once what `node` computes for one (`Op.batch`). Flagged operands have the values of all elements
along a new first axis, lists an array of these in each item; so have the results. Other operands
are the same for every element. A rule returns None where it cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ir.types import Dim, ListType, TensorType, Type
from wend.ops import lists, shaping
from wend.ops.build import Build


@dataclass(slots=True)
class BatchBuild:
    """A builder for all elements.

    Attributes:
        b: the builder.
        count: the number of elements.
        size: that number as a dimension.
        shared: results of rules that are the same for every element.
        needed: lists that all elements share, and that a rule needs with the values of each.
    """

    b: Build
    count: Value
    size: Dim
    shared: set[Value] = field(default_factory=set)
    needed: set[Value] = field(default_factory=set)

    def type_of(self, type: Type) -> Type | None:
        """Return the type of the values of all elements; None where there is none."""
        match type:
            case TensorType(shape=shape) if shape is not None:
                return type.with_shape((self.size, *shape))
            case ListType(element=element):
                inner = self.type_of(element)
                return None if inner is None else ListType(inner)
        return None

    def sizes(self, inner: Value) -> Value:
        """Return the number of elements followed by sizes, as a vector."""
        return self.b.concat(self.b.insert_axes(self.count, axes=(0,)), inner, axis=0)

    def expand(self, x: Value) -> Value | None:
        """Return a value that all elements share as the values of all; None if it is no array."""
        if isinstance(x.type, ListType):
            empty = self._empty(x)
            if empty is None:
                self.needed.add(x)
            return empty
        if not isinstance(x.type, TensorType) or x.type.shape is None:
            return None
        shape = (self.size, *x.type.shape)
        if isinstance(self.size, int) and x.type.is_static:
            return self.b.broadcast_to(x, shape)  # type: ignore[arg-type]
        return self.b.spread(x, self.sizes(self.b.shape_of(x)), shape)

    def _empty(self, x: Value) -> Value | None:
        """Return an empty list of the values of all elements; None if `x` may have items."""
        type = self.type_of(x.type)
        while x.node is not None and x.node.op is lists.list_zeros:
            (x,) = x.node.operands
        is_new = x.node is not None and x.node.op is lists.list_new
        return self.b.list_new(type.element) if is_new and isinstance(type, ListType) else None

    def all(self, operands: Sequence[Value], flags: Sequence[bool]) -> list[Value] | None:
        """Return operands as the values of all elements."""
        values = [x if flag else self.expand(x) for x, flag in zip(operands, flags, strict=True)]
        return None if None in values else values  # type: ignore[return-value]

    def emit(self, node: Node, operands: Sequence[Value], **attrs: Any) -> Value:
        """Append an operation with the attributes of a node, some of them changed."""
        (result,) = self.b.emit_node(node.op, operands, **{**node.attrs, **attrs}).results
        return result

    def reshape(self, x: Value, dims: Sequence[Dim], sizes: Value | None = None) -> Value | None:
        """Return the values of all elements, each reshaped; `sizes` where they are not known."""
        shape = (self.size, *dims)
        if all(isinstance(dim, int) for dim in shape):
            return self.b.reshape(x, shape)
        if sizes is None:
            if not all(isinstance(dim, int) for dim in dims):
                return None
            sizes = self.b.constant(dims, np.int64)
        return self.b.emit(shaping.reshape, x, self.sizes(sizes), shape=shape)
