"""Makes what a user gives as a tangent or cotangent fit what it belongs to."""

from __future__ import annotations

from typing import Any

from wend.base import trees
from wend.base.errors import ShapeError, StructureError, TypeMismatchError, explain
from wend.eager.promotion import as_array, cast, tensor_type
from wend.ir.types import TensorType, accepts
from wend.trace.recording.arguments import is_array_leaf, leaf_type


def subtrees(what: str, of: str, expected: trees.TreeDef, given: Any) -> list[Any]:
    """What stands in a pytree where another has its leaves.

    Raises:
        StructureError: it has another structure, and where.
    """
    try:
        return trees.flatten_up_to(expected, given)
    except ValueError:
        numbered = trees.unflatten(expected, list(range(expected.num_leaves)))
        where = trees.first_difference(numbered, given)
        raise StructureError(
            explain(
                f"{what} is {trees.described(given)}, {of} is {trees.described(numbered)}",
                where and f"{where}.",
                cure=f"give it the structure of {of}.",
            )
        ) from None


def fitted(what: str, of: str, wanted: TensorType, leaf: Any) -> Any:
    """A tangent or cotangent cast to what it belongs to, as NumPy would cast a Python number.

    Raises:
        StructureError: it is no array or number.
        TypeMismatchError: it is of another dtype.
        ShapeError: it has another shape.
    """
    if not is_array_leaf(leaf):
        found = "None" if leaf is None else f"a {type(leaf).__name__}"
        cure = f"pass an array of {wanted}, of zeros where nothing moves."
        raise StructureError(explain(f"{what} is {found}, {of} is {wanted}", cure=cure))
    leaf = as_array(leaf)
    given = leaf_type(leaf)
    narrows = given.type.dtype.kind == "c" and wanted.dtype.kind != "c"
    if given.type.dtype == wanted.dtype or (given.weak and not narrows):
        leaf = cast(leaf, wanted.dtype)
    found_type = tensor_type(leaf)
    if found_type.dtype != wanted.dtype:
        cure = f"cast it: .astype({wanted.dtype.name!r})."
        raise TypeMismatchError(explain(f"{what} is {found_type}, {of} is {wanted}", cure=cure))
    if not accepts(wanted, found_type):
        cure = "give it that shape."
        raise ShapeError(explain(f"{what} is {found_type}, {of} is {wanted}", cure=cure))
    return leaf
