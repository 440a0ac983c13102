"""Which arrays are small: those whose elements fit into registers."""

from __future__ import annotations

import math
from typing import Any

from wend.backends.native.target.kinds import REGISTERS
from wend.ir.graph import Value
from wend.ir.types import ListType, TensorType, Type
from wend.ops import creating

MOST = 16  # elements


def is_small(type: Type, most: int = MOST) -> bool:
    """Whether a type is that of arrays of 1 to `most` numbers; scalars are none."""
    if not isinstance(type, TensorType) or not type.is_static or not type.dims:
        return False
    return type.dtype in REGISTERS and 1 <= size(type) <= most


def size(type: Type) -> int:
    """The number of elements of an array of known sizes."""
    assert isinstance(type, TensorType)
    return math.prod(type.dims)  # type: ignore[arg-type]


def innermost(type: Type) -> Type:
    """What a list, or a list of lists, holds in the end."""
    while isinstance(type, ListType):
        type = type.element
    return type


def element_type(type: Type) -> Type:
    """The type of one element of an array; of a list of arrays, the list of one element each."""
    if isinstance(type, ListType):
        return ListType(element_type(type.element))
    assert isinstance(type, TensorType)
    return type.with_shape(())


def constant_of(value: Value) -> Any:
    """The array that a value is known to be, or None."""
    node = value.node
    return None if node is None or node.op is not creating.constant else node.attrs["value"]
