"""Small arrays: those whose elements fit into registers."""

from __future__ import annotations

import math
from typing import Any

from wend.backends.native.target.kinds import REGISTERS
from wend.ir.graph import Value
from wend.ir.types import ListType, TensorType, Type
from wend.ops import creating

MAX_SCALARIZED_ELEMENTS = 16


def is_small(type: Type, max_elements: int = MAX_SCALARIZED_ELEMENTS) -> bool:
    """Return whether a type is an array of 1 to `max_elements` numbers; scalars are not."""
    if not isinstance(type, TensorType) or not type.is_static or not type.dims:
        return False
    return type.dtype in REGISTERS and 1 <= size(type) <= max_elements


def size(type: Type) -> int:
    """Return the number of elements of an array of known sizes."""
    assert isinstance(type, TensorType)
    return math.prod(type.dims)  # type: ignore[arg-type]


def innermost(type: Type) -> Type:
    """Return the type of the elements at the bottom of nested lists."""
    while isinstance(type, ListType):
        type = type.element
    return type


def element_type(type: Type) -> Type:
    """Return the scalar type of an array, or the list of scalars of a list of arrays."""
    if isinstance(type, ListType):
        return ListType(element_type(type.element))
    assert isinstance(type, TensorType)
    return type.with_shape(())


def constant_of(value: Value) -> Any:
    """Return the array that a value is known to be, or None."""
    node = value.node
    return None if node is None or node.op is not creating.constant else node.attrs["value"]
