"""Checks what a user's rule returns, leaf by leaf, against what it must be like."""

from __future__ import annotations

from typing import Any

from wend.base import trees
from wend.base.errors import ShapeError, StructureError, TypeMismatchError, explain
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast, tensor_type
from wend.ir.types import TensorType, accepts, is_differentiable
from wend.trace.recording.arguments import LeafType, is_array_leaf, leaf_type
from wend.trace.recording.recording import current
from wend.trace.traced import Traced


def like_out(what: str, callee: Traced, out: Any) -> list[Any]:
    """The leaves of what a rule returns for the function's value.

    Raises:
        StructureError, TypeMismatchError, ShapeError: it is unlike what the function returns.
    """
    like = trees.unflatten(callee.result_tree, list(callee.result_types))
    leaves, treedef = trees.flatten(out)
    if treedef != callee.result_tree:
        raise StructureError(
            explain(
                f"{what} returns another structure than the function.",
                trees.first_difference(like, out, "out"),
                f"the function returns {trees.described(like)}, it returns {trees.described(out)}",
                cure="return just what the function returns.",
            )
        )
    paths = trees.paths(treedef, "out")
    return [
        _fitted(f"{what} returns {path} as", type, leaf)
        for type, leaf, path in zip(callee.result_types, leaves, paths, strict=True)
    ]


def like_tangents(what: str, callee: Traced, tangent: Any) -> dict[int, Any]:
    """The tangents of the function's results that are not None, by the results they belong to."""
    if tangent is None:
        return {}
    like = trees.unflatten(callee.result_tree, list(callee.result_types))
    leaves = same_structure(f"{what}'s tangent", like, callee.result_tree, tangent)
    paths = trees.paths(callee.result_tree, "tangent_out")
    found = {}
    for k, (type, leaf, path) in enumerate(zip(callee.result_types, leaves, paths, strict=True)):
        moved = like_cotangent(f"{what}'s {path}", type, leaf)
        if moved is not None:
            found[k] = moved
    return found


def same_structure(what: str, like: Any, treedef: trees.TreeDef, found: Any) -> list[Any]:
    """The leaves of a pytree like another; None may stand for any of them."""
    try:
        leaves = trees.flatten_up_to(treedef, found)
    except ValueError:
        leaves = None
    if leaves is None or not all(leaf is None or is_array_leaf(leaf) for leaf in leaves):
        raise StructureError(
            explain(
                f"{what} has another structure: it is {trees.described(found)}, "
                f"expected {trees.described(like)}.",
                trees.first_difference(like, found),
                cure="return the same structure, with None for leaves that have none.",
            )
        )
    return leaves


def like_cotangent(what: str, primal: LeafType, leaf: Any) -> Any:
    """A tangent or a cotangent of a primal, or None where there is none."""
    if leaf is None:
        return None
    if not is_differentiable(primal.type):
        raise TypeMismatchError(
            explain(
                f"{what} is {tensor_type(leaf)}, but {primal.type} has no derivative.",
                cure="return None for it.",
            )
        )
    return _fitted(f"{what} is", primal, leaf)


def _fitted(what: str, expected: LeafType, leaf: Any) -> Any:
    """The leaf in the type expected; a Python number takes the dtype."""
    if not is_array_leaf(leaf):
        raise TypeMismatchError(f"{what} {type(leaf).__name__}, expected {expected.type}.")
    leaf = as_array(leaf)
    found = leaf_type(leaf)
    wanted = expected.type
    is_real = found.type.dtype.kind != "c" or wanted.dtype.kind == "c"
    if (found.weak or expected.weak) and is_real:
        leaf = cast(leaf, wanted.dtype)
    given = tensor_type(leaf)
    if given.dtype != wanted.dtype:
        cure = f"cast it, by .astype({wanted.dtype.name!r})."
        raise TypeMismatchError(explain(f"{what} {given}, expected {wanted}.", cure=cure))
    if not accepts(wanted, given):
        cure = "return the shape that it has."
        raise ShapeError(explain(f"{what} {given}, expected {wanted}.", cure=cure))
    return _renamed(leaf, wanted)


def _renamed(leaf: Any, wanted: TensorType) -> Any:
    """The leaf with its sizes called as those of the type expected."""
    recording = current()
    if recording is None or not isinstance(leaf, Staged) or leaf.type == wanted:
        return leaf
    return recording.wrap(recording.b.refine(recording.lift(leaf), wanted))
