"""Matches a user's tangents and cotangents to the structure and types of their primals."""

from __future__ import annotations

from typing import Any

from wend.base import trees
from wend.base.errors import ShapeError, StructureError, TypeMismatchError, explain
from wend.eager.promotion import as_array, cast, tensor_type
from wend.ir.types import TensorType, accepts
from wend.trace.recording.arguments import is_array_leaf, leaf_type


def flatten_like(what: str, of: str, expected: trees.TreeDef, tree: Any) -> list[Any]:
    """Return the parts of a pytree at the positions of the leaves of another structure.

    Raises:
        StructureError: its structure differs; the message says where.
    """
    try:
        return trees.flatten_up_to(expected, tree)
    except ValueError:
        numbered = trees.unflatten(expected, list(range(expected.num_leaves)))
        difference = trees.first_difference(numbered, tree)
        raise StructureError(
            explain(
                f"{what} is {trees.described(tree)}, {of} is {trees.described(numbered)}",
                difference and f"{difference}.",
                cure=f"give it the structure of {of}.",
            )
        ) from None


def coerce(what: str, of: str, expected: TensorType, leaf: Any) -> Any:
    """Cast a tangent or cotangent to the type of its primal, as NumPy casts a Python number.

    Raises:
        StructureError: it is not an array or a number.
        TypeMismatchError: it has another dtype.
        ShapeError: it has another shape.
    """
    if not is_array_leaf(leaf):
        actual_name = "None" if leaf is None else f"a {type(leaf).__name__}"
        cure = f"pass an array of {expected}, of zeros where nothing moves."
        raise StructureError(explain(f"{what} is {actual_name}, {of} is {expected}", cure=cure))
    leaf = as_array(leaf)
    given_type = leaf_type(leaf)
    narrows = given_type.type.dtype.kind == "c" and expected.dtype.kind != "c"
    if given_type.type.dtype == expected.dtype or (given_type.weak and not narrows):
        leaf = cast(leaf, expected.dtype)
    actual = tensor_type(leaf)
    if actual.dtype != expected.dtype:
        cure = f"cast it: .astype({expected.dtype.name!r})."
        raise TypeMismatchError(explain(f"{what} is {actual}, {of} is {expected}", cure=cure))
    if not accepts(expected, actual):
        cure = "give it that shape."
        raise ShapeError(explain(f"{what} is {actual}, {of} is {expected}", cure=cure))
    return leaf
