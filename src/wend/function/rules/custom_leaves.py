"""Checks the leaves of what custom rules return against the types they must have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import ShapeError, StructureError, TypeMismatchError, explain
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast, tensor_type
from wend.ir.types import TensorType, accepts, is_differentiable
from wend.trace.recording.arguments import LeafType, is_array_leaf, leaf_type
from wend.trace.recording.recording import current
from wend.trace.traced import Traced


def as_pair(what: str, result: Any, second: str, no_second: str) -> Sequence[Any]:
    """Return what a part of a rule returned, which must be a pair of `out` and `second`.

    Raises:
        StructureError: it is no pair; `no_second` tells when its second part is None.
    """
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise StructureError(
            explain(
                f"{what} must return a pair (out, {second}), it returns {trees.described(result)}.",
                cure=f"return (out, {second}); (out, None) where {no_second}.",
            )
        )
    return result


def coerce_value(what: str, callee: Traced, out: Any) -> list[Any]:
    """Return the leaves of a rule's value, which must be like the function's.

    Raises:
        StructureError, TypeMismatchError, ShapeError: it differs from the value of the function.
    """
    expected = trees.unflatten(callee.result_tree, list(callee.result_types))
    leaves, treedef = trees.flatten_deep(out)
    if not trees.is_same_structure(treedef, callee.result_tree):
        raise StructureError(
            explain(
                f"{what} returns another structure than the function.",
                trees.first_difference(expected, out, "out"),
                f"the function returns {trees.described(expected)}, "
                f"it returns {trees.described(out)}",
                cure="return just what the function returns.",
            )
        )
    paths = trees.paths(treedef, "out")
    return [
        _coerce_leaf(f"{what} returns {path} as", type, leaf)
        for type, leaf, path in zip(callee.result_types, leaves, paths, strict=True)
    ]


def coerce_tangents(what: str, callee: Traced, tangent: Any) -> dict[int, Any]:
    """Return the tangents of the function's results that are not None, by result index."""
    if tangent is None:
        return {}
    expected = trees.unflatten(callee.result_tree, list(callee.result_types))
    leaves = flatten_like(f"{what}'s tangent", expected, callee.result_tree, tangent)
    paths = trees.paths(callee.result_tree, "tangent_out")
    tangents = {}
    for k, (type, leaf, path) in enumerate(zip(callee.result_types, leaves, paths, strict=True)):
        leaf_tangent = coerce_cotangent(f"{what}'s {path}", type, leaf)
        if leaf_tangent is not None:
            tangents[k] = leaf_tangent
    return tangents


def flatten_like(what: str, expected: Any, treedef: trees.TreeDef, tree: Any) -> list[Any]:
    """Return the leaves of a pytree with a given structure; None may stand for any leaf."""
    try:
        leaves = trees.flatten_up_to(treedef, tree)
    except ValueError:
        leaves = None
    if leaves is None or not all(leaf is None or is_array_leaf(leaf) for leaf in leaves):
        raise StructureError(
            explain(
                f"{what} has another structure: it is {trees.described(tree)}, "
                f"expected {trees.described(expected)}.",
                trees.first_difference(expected, tree),
                cure="return the same structure, with None for leaves that have none.",
            )
        )
    return leaves


def coerce_cotangent(what: str, primal: LeafType, leaf: Any) -> Any:
    """Return a tangent or cotangent with the type of its primal, or None if there is none."""
    if leaf is None:
        return None
    if not is_differentiable(primal.type):
        raise TypeMismatchError(
            explain(
                f"{what} is {tensor_type(leaf)}, but {primal.type} has no derivative.",
                cure="return None for it.",
            )
        )
    return _coerce_leaf(f"{what} is", primal, leaf)


def _coerce_leaf(what: str, expected: LeafType, leaf: Any) -> Any:
    """Return the leaf with the expected type; a Python number takes the expected dtype."""
    if not is_array_leaf(leaf):
        raise TypeMismatchError(f"{what} {type(leaf).__name__}, expected {expected.type}.")
    leaf = as_array(leaf)
    given_type = leaf_type(leaf)
    expected_type = expected.type
    is_real = given_type.type.dtype.kind != "c" or expected_type.dtype.kind == "c"
    if (given_type.weak or expected.weak) and is_real:
        leaf = cast(leaf, expected_type.dtype)
    actual = tensor_type(leaf)
    if actual.dtype != expected_type.dtype:
        cure = f"cast it, by .astype({expected_type.dtype.name!r})."
        raise TypeMismatchError(explain(f"{what} {actual}, expected {expected_type}.", cure=cure))
    if not accepts(expected_type, actual):
        cure = "return the shape that it has."
        raise ShapeError(explain(f"{what} {actual}, expected {expected_type}.", cure=cure))
    return _refine(leaf, expected_type)


def _refine(leaf: Any, expected: TensorType) -> Any:
    """Return the leaf with the symbolic sizes of the expected type."""
    recording = current()
    if recording is None or not isinstance(leaf, Staged) or leaf.type == expected:
        return leaf
    return recording.wrap(recording.b.refine(recording.lift(leaf), expected))
