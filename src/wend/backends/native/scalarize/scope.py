"""A graph under construction in which some arrays are only there as their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from wend.backends.native.analysis.list_uses import is_new_list
from wend.backends.native.target.small_arrays import (
    constant_of,
    element_type,
    innermost,
    is_small,
    size,
)
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Node, Value
from wend.ops.build import Build

Elements: TypeAlias = tuple[Value, ...]


class Scope:
    """What stands for the values of a graph in the new one.

    An array is there as a whole, as its elements in C order, or both: what is asked for and not
    there is made once. A list of small arrays is a list for each element.
    """

    def __init__(self, name: str) -> None:
        self.b = Build(name)
        self._whole: dict[Value, Value] = {}
        self._elements: dict[Value, Elements] = {}

    def put(self, value: Value, whole: Value) -> None:
        """Say what stands for a value."""
        self._whole[value] = whole

    def take_apart(self, value: Value, elements: Sequence[Value]) -> None:
        """Say what the elements of a value are; a scalar, or a large array, is its own."""
        if not is_small(innermost(value.type)):
            (self._whole[value],) = elements
        else:
            self._elements[value] = tuple(elements)

    def whole(self, value: Value) -> Value:
        """A value as an array."""
        if value not in self._whole:
            self._whole[value] = self._made_whole(value)
        return self._whole[value]

    def elements(self, value: Value) -> Elements:
        """The elements of an array; a scalar is its own."""
        if is_scalar(value.type):
            return (self.whole(value),)
        if value not in self._elements:
            self._elements[value] = self._read(value)
        return self._elements[value]

    def either(self, value: Value, is_apart: bool) -> Elements:
        """The elements, or the whole as the only one."""
        return self.elements(value) if is_apart else (self.whole(value),)

    def is_made_on_demand(self, node: Node) -> bool:
        """Whether what a node gives is made where it is asked for, in the form asked for."""
        (result, *others) = node.results
        return not others and (is_new_list(result) or constant_of(result) is not None)

    def _made_whole(self, value: Value) -> Value:
        if is_new_list(value):
            return self.b.emit(value.node.op, **value.node.attrs)  # type: ignore[union-attr]
        known = constant_of(value)
        if known is not None:
            return self.b.constant(known)
        shape = value.tensor.dims
        return self.b.from_elements(self._elements[value], shape)  # type: ignore[arg-type]

    def _read(self, value: Value) -> Elements:
        if is_new_list(value):
            made = element_type(value.type)
            count = size(innermost(value.type))
            return tuple(self.b.list_new(made.element) for _ in range(count))  # type: ignore[union-attr]
        known = constant_of(value)
        if known is not None:
            return tuple(self.b.constant(x, known.dtype) for x in known.ravel())
        whole = self.whole(value)
        return tuple(
            self.b.gather(whole, *map(self.b.integer, place))
            for place in np.ndindex(*value.tensor.dims)  # type: ignore[arg-type]
        )
