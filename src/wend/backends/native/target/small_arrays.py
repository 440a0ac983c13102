"""Small arrays and complex numbers: those whose real numbers fit into registers."""

from __future__ import annotations

import math
from typing import Any

from wend.backends.native.target.kinds import REGISTERS
from wend.ir.dtypes import real_of
from wend.ir.graph import Value
from wend.ir.types import ListType, TensorType, Type
from wend.ops import creating

MAX_SCALARIZED_ELEMENTS = 16


def is_small(type: Type, max_elements: int = MAX_SCALARIZED_ELEMENTS) -> bool:
    """Return whether a type is an array of 1 to `max_elements` numbers, or a complex number.

    Real scalars are not.
    """
    if not isinstance(type, TensorType) or not type.is_static:
        return False
    if not type.dims:
        return is_complex_number(type)
    return type.dtype in REGISTERS and 1 <= size(type) <= max_elements


def is_complex_number(type: Type) -> bool:
    """Return whether a type is a complex scalar; its elements are its real and imaginary parts."""
    return isinstance(type, TensorType) and type.shape == () and type.dtype.kind == "c"


def size(type: Type) -> int:
    """Return the number of elements of an array of known sizes, or of a complex number."""
    assert isinstance(type, TensorType)
    return 2 if is_complex_number(type) else math.prod(type.dims)  # type: ignore[arg-type]


def innermost(type: Type) -> Type:
    """Return the type of the elements at the bottom of nested lists."""
    while isinstance(type, ListType):
        type = type.element
    return type


def element_type(type: Type) -> Type:
    """Return the type of the elements of an array, or of the list of each for a list of arrays."""
    if isinstance(type, ListType):
        return ListType(element_type(type.element))
    assert isinstance(type, TensorType)
    return type.with_dtype(real_of(type.dtype)) if is_complex_number(type) else type.with_shape(())


def constant_of(value: Value) -> Any:
    """Return the array that a value is known to be, or None."""
    node = value.node
    return None if node is None or node.op is not creating.constant else node.attrs["value"]
