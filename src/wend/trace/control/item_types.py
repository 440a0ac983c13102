"""The types of the items of lists that grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wend.eager.promotion import result_dtype
from wend.trace.recording.arguments import LeafType, promotion_example


def common_type(types: Sequence[LeafType]) -> LeafType:
    """Return the type of a part of all items: numbers take the dtype of arrays that they meet."""
    dtype = result_dtype(*map(promotion_example, types))
    weak = all(type.weak for type in types)
    return replace(types[-1], type=types[-1].type.with_dtype(dtype), weak=weak)


def as_kind(leaf: Any, type: LeafType) -> Any:
    """Return a number as one of Python, or a 0-d array, where the items of the list are."""
    if type.weak:
        return leaf.as_weak()
    return leaf.as_zero_dim() if type.zero_dim else leaf


def takes(type: LeafType, item: LeafType) -> bool:
    """Return whether a list of one type takes an item, whose value stays what it is."""
    if not item.weak:
        return item.type.dtype == type.type.dtype
    return result_dtype(promotion_example(type), promotion_example(item)) == type.type.dtype
