"""Operands that decide on shapes, attributes that may be operands, and dtypes by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

import wend.numpy as wnp
from wend.base.errors import UnsupportedError, explain
from wend.eager.dispatch import Staged, recorder


def dtype_of(number: int) -> np.dtype:
    """Return the dtype of an element type of ONNX.

    Raises:
        UnsupportedError: NumPy has none.
    """
    name = onnx.TensorProto.DataType.Name(number)
    if name not in _DTYPES:
        what = f"elements of type {name} are not supported."
        raise UnsupportedError(explain(what, f"types: {', '.join(_DTYPES)}"))
    return np.dtype(_DTYPES[name])


_DTYPES = {
    "BOOL": "bool",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    **{
        f"{sign}INT{bits}": f"{sign.lower()}int{bits}"
        for sign in ("", "U")
        for bits in (8, 16, 32, 64)
    },
}


def known(x: Any, what: str) -> np.ndarray:
    """Return an operand that decides on shapes as an array.

    Raises:
        UnsupportedError: only the run knows it.
    """
    if not isinstance(x, Staged):
        return np.asarray(x)
    recording = recorder.get()
    elements = None if recording is None else recording.known_elements(x)
    if elements is not None:
        return np.asarray(elements)
    reason = f"{what} decides on shapes, and depends on an input of the model."
    cure = "fix that input: load(…, constants={name: value})."
    raise UnsupportedError(explain(reason, cure=cure))


def known_ints(x: Any, what: str) -> list[int]:
    """Return the integers of an operand that decides on shapes."""
    return [int(k) for k in known(x, what).reshape(-1)]


def bounded(sizes: Sequence[Any], what: str) -> Sequence[Any]:
    """Return sizes; known ones are those of an array that fits into memory.

    Raises:
        UnsupportedError: the array would have too many elements.
    """
    count = 1
    for size in sizes:
        count *= size if isinstance(size, int) else 1
    if count > MAX_ELEMENTS:
        raise UnsupportedError(f"{what} makes an array of {count} elements")
    return sizes


MAX_ELEMENTS = 1 << 31


def axes_of(attribute: Sequence[int] | None, operand: Any, rank: int) -> tuple[int, ...] | None:
    """Return axes, which are an attribute in some versions and an operand in others."""
    axes = attribute if operand is None else known_ints(operand, "a list of axes")
    return None if axes is None else tuple(axis % max(rank, 1) for axis in axes)


def at_least(x: Any, dtype: np.dtype) -> Any:
    """Return an array in a dtype, unless it has it."""
    return x if x.dtype == dtype else wnp.astype(x, dtype)
