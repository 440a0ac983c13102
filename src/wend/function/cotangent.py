"""Makes what a user gives as a cotangent fit the value that it belongs to."""

from __future__ import annotations

from typing import Any

from wend.base.errors import ShapeError, TypeMismatchError
from wend.eager.promotion import cast, tensor_type
from wend.ir.types import TensorType, accepts
from wend.trace.arguments import leaf_type


def fitting(leaf: Any, wanted: TensorType, what: str) -> Any:
    """The cotangent, cast if it is a plain number.

    Raises:
        TypeMismatchError: it has another dtype than the value.
        ShapeError: it has another shape.
    """
    given = leaf_type(leaf)
    if given.weak or given.type.dtype == wanted.dtype:
        leaf = cast(leaf, wanted.dtype)
    found = tensor_type(leaf)
    if found.dtype != wanted.dtype:
        raise TypeMismatchError(f"{what}: the cotangent is {found}, the value is {wanted}")
    if not accepts(wanted, found):
        raise ShapeError(f"{what}: the cotangent is {found}, the value is {wanted}")
    return leaf
