"""Pytrees that others begin with: an entry stands for all leaves of the part at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain


def spread(
    prefix: Any,
    tree: Any,
    what: str,
    root: str,
    of: str,
    kind: str,
    is_entry: Callable[[Any, str], bool],
) -> list[Any]:
    """Return the entry of a prefix for each leaf of a pytree.

    Args:
        prefix: an entry for all of it, or containers of entries that `tree` begins with.
        tree: the pytree.
        what: the transform, for messages.
        root: the name of `prefix` for messages.
        of: that of `tree`.
        kind: what an entry is, for messages.
        is_entry: returns whether a part of the prefix, with its path, is an entry; raises an error
            for what is neither an entry nor a container.

    Raises:
        StructureError: `tree` does not begin with the containers of `prefix`.
    """
    if is_entry(prefix, root):
        return [prefix] * len(trees.flatten_deep(tree, with_objects=True)[0])
    inner_entries, inner_trees = trees.children_of(prefix), trees.children_of(tree)
    assert inner_entries is not None
    if (
        inner_trees is None
        or type(prefix) is not type(tree)
        or sorted(end for end, _ in inner_entries) != sorted(end for end, _ in inner_trees)
    ):
        raise StructureError(
            explain(
                f"{what}: {root} does not fit {of}: {trees.described(prefix)} against "
                f"{trees.described(tree)}.",
                cure=f"give {root} the containers of {of}, or one {kind} for all of it.",
            )
        )
    by_end = dict(inner_entries)
    return [
        entry
        for end, inner in inner_trees
        for entry in spread(by_end[end], inner, what, root + end, of + end, kind, is_entry)
    ]
