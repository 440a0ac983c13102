"""Pytrees: optree with None as an empty node and sorted dict keys (D18), and paths for messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree

Tree = Any
TreeDef = optree.PyTreeSpec


def flatten(tree: Tree) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a pytree from left to right, and its structure."""
    leaves, treedef = optree.tree_flatten(tree)
    return leaves, treedef


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Tree:
    """Put leaves back into a structure."""
    return optree.tree_unflatten(treedef, leaves)


def flatten_up_to(treedef: TreeDef, tree: Tree) -> list[Any]:
    """Return the subtrees of `tree` that stand where `treedef` has its leaves.

    Raises:
        ValueError: `tree` is not as deep as `treedef` somewhere.
    """
    return treedef.flatten_up_to(tree)


def numbered(treedef: TreeDef) -> Tree:
    """Return the structure with its leaves numbered from 0, for `pytree_codegen`."""
    return unflatten(treedef, range(treedef.num_leaves))


def tree_map(fun: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Apply `fun` to each leaf of `tree`, and the matching leaves of `others`."""
    return optree.tree_map(fun, tree, *others)


def paths(treedef: TreeDef, root: str = "") -> list[str]:
    """Return the path of every leaf as Python would write it: `carry['h'][0]`."""
    return [root + accessor.codify("") for accessor in treedef.accessors()]


def described(tree: Tree) -> str:
    """Return the structure of a pytree for messages: `{'h': *, 'n': (*, *)}`."""
    return str(flatten(tree)[1]).removeprefix("PyTreeSpec(").removesuffix(")")


def first_difference(expected: Tree, actual: Tree, root: str = "") -> str | None:
    """Return where two pytrees first differ in structure, by path; None if they do not."""
    expected_node, actual_node = _one_level(expected), _one_level(actual)
    if expected_node is None and actual_node is None:
        return None
    if expected_node is None or actual_node is None or type(expected) is not type(actual):
        return f"{root or 'the value'}: {_kind(expected)} against {_kind(actual)}"
    expected_children, actual_children = dict(expected_node), dict(actual_node)
    for entry, child in expected_children.items():
        if entry not in actual_children:
            return f"{root}{entry} is missing"
        inner = first_difference(child, actual_children[entry], root + entry)
        if inner:
            return inner
    for entry in actual_children:
        if entry not in expected_children:
            return f"{root}{entry} is not expected"
    return None


def _one_level(tree: Tree) -> list[tuple[str, Tree]] | None:
    """Return the children of a node with their path entries, or None for a leaf."""
    children, treedef = optree.tree_flatten(tree, is_leaf=lambda node: node is not tree)
    if treedef.is_leaf():
        return None
    return list(zip(paths(treedef), children, strict=True))


def _kind(tree: Tree) -> str:
    if tree is None:
        return "None"
    if _one_level(tree) is None:
        return "an array or number"
    return f"a {type(tree).__name__}"
