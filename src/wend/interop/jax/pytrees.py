"""Pytrees of JAX's nodes and wend's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from wend.base import trees
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Structure:
    """A pytree without its leaves: JAX's nodes, then wend's in what JAX takes for leaves."""

    outer: Any
    inner: tuple[trees.TreeDef, ...]

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Put leaves back."""
        remaining = iter(leaves)
        parts = [
            trees.unflatten(treedef, [next(remaining) for _ in range(treedef.num_leaves)])
            for treedef in self.inner
        ]
        return jax.tree_util.tree_unflatten(self.outer, parts)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a pytree and its structure."""
    parts, outer = jax.tree_util.tree_flatten(tree)
    leaves: list[Any] = []
    inner = []
    for part in parts:
        some, treedef = trees.flatten(part)
        leaves += some
        inner.append(treedef)
    return leaves, Structure(outer, tuple(inner))


def is_array(leaf: Any) -> bool:
    """Return whether a leaf is an array or a number, of which there are derivatives and batches."""
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex))
