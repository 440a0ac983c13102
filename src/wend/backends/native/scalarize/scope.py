"""A graph under construction in which small arrays may be represented by their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from wend.backends.native.analysis.list_uses import is_new_list
from wend.backends.native.target.small_arrays import (
    constant_of,
    element_type,
    innermost,
    is_complex_number,
    is_small,
    size,
)
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Node, Value
from wend.ops.build import Build

ScalarElements: TypeAlias = tuple[Value, ...]


class ScalarScope:
    """The values of the new graph that represent those of the old one.

    An array is represented as a whole, by its elements in C order, or both; a missing form is
    created once, on request. The elements of a complex number are its parts. A list of small arrays
    is represented by one list per element.
    """

    def __init__(self, name: str) -> None:
        self.b = Build(name)
        self._whole: dict[Value, Value] = {}
        self._elements: dict[Value, ScalarElements] = {}

    def put_whole(self, value: Value, whole: Value) -> None:
        """Set the whole that represents a value."""
        self._whole[value] = whole

    def put_elements(self, value: Value, elements: Sequence[Value]) -> None:
        """Set the elements that represent a value; a scalar or large array is its only element."""
        if not is_small(innermost(value.type)):
            (self._whole[value],) = elements
        else:
            self._elements[value] = tuple(elements)

    def whole(self, value: Value) -> Value:
        """Return a value as an array."""
        if value not in self._whole:
            self._whole[value] = self._assemble(value)
        return self._whole[value]

    def elements(self, value: Value) -> ScalarElements:
        """Return the elements of an array; a scalar is its only element."""
        if is_scalar(value.type):
            return (self.whole(value),)
        if value not in self._elements:
            self._elements[value] = self._disassemble(value)
        return self._elements[value]

    def whole_or_elements(self, value: Value, is_split: bool) -> ScalarElements:
        """Return the elements of a split value, or the whole as the only one."""
        return self.elements(value) if is_split else (self.whole(value),)

    def present(self, value: Value) -> tuple[ScalarElements, bool]:
        """Return a value in a form that it has, and whether that is its elements."""
        has_elements = value not in self._whole and value in self._elements
        return self.whole_or_elements(value, has_elements), has_elements

    def is_materialized_lazily(self, node: Node) -> bool:
        """Return whether the result of a node is created at each use, in the form requested."""
        (result, *others) = node.results
        return not others and (is_new_list(result) or constant_of(result) is not None)

    def _assemble(self, value: Value) -> Value:
        if is_new_list(value):
            return self.b.emit(value.node.op, **value.node.attrs)  # type: ignore[union-attr]
        constant = constant_of(value)
        if constant is not None:
            return self.b.constant(constant)
        if is_complex_number(value.type):
            return self.b.complex(*self._elements[value])
        shape = value.tensor.dims
        return self.b.from_elements(self._elements[value], shape)  # type: ignore[arg-type]

    def _disassemble(self, value: Value) -> ScalarElements:
        if is_new_list(value):
            list_type = element_type(value.type)
            count = size(innermost(value.type))
            return tuple(self.b.list_new(list_type.element) for _ in range(count))  # type: ignore[union-attr]
        constant = constant_of(value)
        if constant is not None and is_complex_number(value.type):
            return self.b.constant(constant.real), self.b.constant(constant.imag)
        if constant is not None:
            return tuple(self.b.constant(x, constant.dtype) for x in constant.ravel())
        whole = self.whole(value)
        if is_complex_number(value.type):
            return self.b.real(whole), self.b.imag(whole)
        return tuple(
            self.b.gather(whole, *map(self.b.integer, position))
            for position in np.ndindex(*value.tensor.dims)  # type: ignore[arg-type]
        )
