"""Functions of whole pytrees, with the names of `jax.tree`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a pytree from left to right.

    Raises:
        NestingError: it is a thousand levels deep, or contains itself.

    Example:
        >>> import wend
        >>> wend.tree.leaves({"w": [1.0, 2.0], "b": None, "n": (3,)})
        [1.0, 2.0, 3]
    """
    return trees.flatten_deep(tree, keeps_static=True)[0]


def structure(tree: Any) -> trees.TreeDef:
    """Return the structure of a pytree: all of it but its leaves. Equal structures compare equal.

    Example:
        >>> import wend
        >>> wend.tree.structure((1.0, [2.0])) == wend.tree.structure((3.0, [4.0]))
        True
    """
    return trees.flatten_deep(tree, keeps_static=True)[1]


def flatten(tree: Any) -> tuple[list[Any], trees.TreeDef]:
    """Return the leaves of a pytree, and its structure; `unflatten` is the inverse.

    Example:
        >>> import wend
        >>> leaves, structure = wend.tree.flatten({"b": 1.0, "a": 2.0})
        >>> leaves, wend.tree.unflatten(structure, [10.0, 20.0])
        ([1.0, 2.0], {'b': 10.0, 'a': 20.0})
    """
    return trees.flatten_deep(tree, keeps_static=True)


def unflatten(structure: trees.TreeDef, leaves: Sequence[Any]) -> Any:
    """Put leaves into a structure, from left to right.

    Raises:
        StructureError: the structure has another number of leaves.
    """
    leaves = list(leaves)
    if len(leaves) != structure.num_leaves:
        raise StructureError(
            explain(
                f"{len(leaves)} leaves for {trees.structure_text(structure)}, which has "
                f"{structure.num_leaves}.",
                cure="give a leaf for each *.",
            )
        )
    return trees.unflatten(structure, leaves)


def map(fun: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply a function to each leaf of a pytree and the parts of `others` that stand there.

    Args:
        fun: takes a leaf of `tree` and one part of each of `others`.
        tree: the pytree whose structure the result has.
        others: pytrees of the same structure, or of a deeper one.

    Raises:
        StructureError: one of `others` has another structure.

    Example:
        >>> import wend
        >>> wend.tree.map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": 2.0}, {"w": 4.0, "b": 2.0})
        {'w': -1.0, 'b': 1.0}
    """
    first_leaves, treedef = trees.flatten_deep(tree, keeps_static=True)
    columns = [first_leaves, *(_parts(treedef, tree, other) for other in others)]
    return trees.unflatten(treedef, [fun(*parts) for parts in zip(*columns, strict=True)])


def _parts(treedef: trees.TreeDef, tree: Any, other: Any) -> list[Any]:
    """Return the parts of another pytree at the positions of the leaves."""
    difference: str | None = None
    try:
        parts = trees.flatten_up_to(treedef, other)
    except ValueError:
        difference = trees.first_difference(tree, other, "tree") or "the structures differ"
    else:
        difference = trees.first_reordered(tree, other, "tree")
    if difference is not None:
        raise StructureError(
            explain(
                f"wend.tree.map of {trees.described(tree)} and {trees.described(other)}: "
                f"{difference}.",
                cure="give pytrees of one structure.",
            )
        )
    return parts
