"""Values that are never read, for paths that have none."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, explain
from wend.eager.promotion import tensor_type
from wend.trace.recording.arguments import LeafType


def placeholders(like: Any) -> Any:
    """Return zeros of the structure and types of a value."""
    return trees.tree_map(_placeholder, like)


def _placeholder(like: Any) -> Any:
    return zeros_of(LeafType(tensor_type(like)))


def zeros_of(leaf: LeafType) -> Any:
    """Return zeros of a type.

    Raises:
        CarryError: its size is only known when the function runs.
    """
    type = leaf.type
    if not type.is_static:
        raise CarryError(
            explain(
                f"a value of rank {type.rank} is first bound or returned on some paths only, "
                "and its size is only known when it runs.",
                cure="give the variable a value of that size before.",
            )
        )
    zeros = np.zeros([int(dim) for dim in type.dims if isinstance(dim, int)], type.dtype)
    if leaf.weak:
        return zeros.item()
    return zeros if zeros.ndim or leaf.zero_dim else zeros[()]
