"""Run-time values as one block of bytes, and a form that tells what lies where in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.runtime.sequence import Sequence

_ALIGNMENT = 64  # of each array in a block


@dataclass(frozen=True, slots=True)
class _PackedArray:
    """An array in a block: a number has no axes, and `is_list` means a list of numbers."""

    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class _Unpacked:
    """A value that is no array: an absent one, or a Python object."""

    value: Any


Form: TypeAlias = "_PackedArray | _Unpacked | list[Form]"


def pack(
    values: Iterable[Any], new_block: Callable[[int], np.ndarray]
) -> tuple[list[Form], np.ndarray]:
    """Return the form of each value, and the block that holds copies of their arrays.

    Args:
        values: arrays, numbers, and lists of such, nested to any depth.
        new_block: gives a block of so many bytes.
    """
    arrays: list[tuple[int, np.ndarray]] = []
    forms = [_form(value, arrays) for value in values]
    size = 0 if not arrays else arrays[-1][0] + arrays[-1][1].nbytes
    block = new_block(size)
    for offset, array in arrays:
        np.ndarray(array.shape, array.dtype, block.data, offset)[...] = array
    return forms, block


def unpack(form: Form, block: np.ndarray) -> Any:
    """Return a value of a block; its arrays are views."""
    if isinstance(form, _Unpacked):
        return form.value
    if isinstance(form, list):
        return Sequence.of([unpack(item, block) for item in form])
    array = np.ndarray(form.shape, form.dtype, block.data, form.offset)
    if form.is_list:
        return Sequence.of(list(array))
    return array if form.shape else array[()]


def _form(value: Any, arrays: list[tuple[int, np.ndarray]]) -> Form:
    if isinstance(value, (np.ndarray, np.generic)):
        return _placed(np.asarray(value), arrays)
    if not isinstance(value, Sequence):
        return _Unpacked(value)
    items = value.items()
    if items and all(isinstance(item, np.generic) for item in items):
        return _placed(np.array(items), arrays, is_list=True)
    return [_form(item, arrays) for item in items]


def _placed(
    array: np.ndarray, arrays: list[tuple[int, np.ndarray]], *, is_list: bool = False
) -> _PackedArray:
    end = arrays[-1][0] + arrays[-1][1].nbytes if arrays else 0
    offset = -(-end // _ALIGNMENT) * _ALIGNMENT
    arrays.append((offset, array))
    return _PackedArray(array.dtype, array.shape, offset, is_list)
