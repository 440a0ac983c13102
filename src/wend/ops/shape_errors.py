"""The errors of shapes that do not fit, in NumPy's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import CarryError, ShapeError
from wend.ir.types import Shape, shape_as_tuple_text, shape_text

_MISMATCH = "could not be broadcast together with shapes"


def broadcast_shapes(*vectors: Any, error: str = "value") -> Any:
    """Return the shape, as a vector, to which arrays of some shapes are broadcast.

    Raises:
        IndexError: there is none, and `error` is "index".
        ShapeError: there is none otherwise.
    """
    shapes = [tuple(vector.tolist()) for vector in vectors]
    try:
        return np.array(np.broadcast_shapes(*shapes), np.int64)
    except ValueError:
        texts = " ".join(map(shape_as_tuple_text, shapes))
        if error == "index":
            text = f"shape mismatch: indexing arrays {_MISMATCH} {texts}"
            raise IndexError(text) from None
        raise ShapeError(f"operands {_MISMATCH} {texts}") from None


def filled_in(message: str, shape: Shape, target: Shape) -> str:
    """Return the message of a `broadcast_to` of one shape to another."""
    part, text = shape, message.replace("{operand}", shape_as_tuple_text(shape))
    for k in range(len(target) + 1):
        text = text.replace(f"{{shape[{k}:]}}", shape_as_tuple_text(target[k:]))
        text = text.replace(f"{{part[{k}:]}}", shape_as_tuple_text(part))
        part = part[1:] if part[:1] == (1,) else part
    return text


# Of `keep_shape`
SHAPE_ERRORS = {
    "carry": CarryError,
    "index": IndexError,
    "type": TypeError,
    "value": ValueError,
}


def keep_shape(x: Any, sizes: Any, *, shape: Shape, message: str, error: str) -> Any:
    """Return an array that has the sizes of a vector; negative ones match any."""
    pairs = [
        (actual_size if expected_size < 0 else expected_size, actual_size)
        for expected_size, actual_size in zip(sizes, x.shape, strict=True)
    ]
    if all(expected_size == actual_size for expected_size, actual_size in pairs):
        return x
    expected, actual = zip(*pairs, strict=True)
    expected_size, actual_size = next(pair for pair in pairs if pair[0] != pair[1])
    texts = {
        "shape": shape_text(expected),
        "its": shape_text(actual),
        "size": expected_size,
        "actual": actual_size,
    }
    for name, text in texts.items():
        message = message.replace(f"{{{name}}}", str(text))
    raise SHAPE_ERRORS[error](message)
