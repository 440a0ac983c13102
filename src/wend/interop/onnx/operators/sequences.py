"""Sequences, which are lists, and optionals, which are None or a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import wend.numpy as wnp
from wend.interop.onnx.operators.operands import known, known_ints


def split_to_sequence(x: Any, split: Any = None, axis: int = 0, keepdims: int = 1) -> list[Any]:
    """Return parts along an axis: of some sizes, of one size, or single elements."""
    size = x.shape[axis]
    if split is None:
        parts = [wnp.take(x, [k], axis=axis) for k in range(size)]
        return parts if keepdims else [wnp.squeeze(part, axis) for part in parts]
    sizes = known_ints(split, "the sizes of SplitToSequence")
    if np.ndim(known(split, "")) == 0:
        sizes = [sizes[0]] * (size // sizes[0]) + [size % sizes[0]] * (size % sizes[0] > 0)
    bounds = [int(k) for k in np.cumsum(sizes)[:-1]]
    return list(wnp.split(x, bounds, axis=axis))


def concat_from_sequence(parts: Any, axis: int, new_axis: int = 0) -> Any:
    """Return the elements of a sequence as one array."""
    return wnp.stack(parts, axis=axis) if new_axis else wnp.concatenate(parts, axis=axis)


def insert(sequence: Any, x: Any, position: Any = None) -> Any:
    """Return a sequence with one more element."""
    copy = list(sequence)
    if position is None:
        return [*copy, x]
    (place,) = known_ints(position, "the position of SequenceInsert")
    copy.insert(place + len(copy) if place < 0 else place, x)
    return copy


def erase(sequence: Any, position: Any = None) -> Any:
    """Return a sequence without an element; the last one, unless told which."""
    copy = list(sequence)
    (place,) = [-1] if position is None else known_ints(position, "the position of SequenceErase")
    del copy[place]
    return copy


def element(sequence: Any, position: Any) -> Any:
    """Return an element of a sequence."""
    place = position.reshape(())
    return sequence[int(place) if isinstance(place, np.ndarray | np.generic) else place]


def length(sequence: Any) -> Any:
    """Return the length of a sequence."""
    size = len(sequence)
    return np.asarray(size, np.int64) if isinstance(size, int) else size


def optional(x: Any = None, type: Any = None) -> Any:
    """Return a value, or None for an optional that is empty."""
    return x


def has_element(x: Any = None) -> Any:
    """Return whether an optional has a value."""
    return np.bool_(x is not None)


def get_element(x: Any) -> Any:
    """Return the value of an optional."""
    if x is None:
        raise ValueError("OptionalGetElement of an optional that is empty")
    return x


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ConcatFromSequence": concat_from_sequence,
    "Optional": optional,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
    "SequenceAt": element,
    "SequenceConstruct": lambda *elements: list(elements),
    "SequenceEmpty": lambda dtype=1: [],
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SplitToSequence": split_to_sequence,
}
