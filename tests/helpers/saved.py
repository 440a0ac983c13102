"""Round trips through files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

import wend


def saved(*value: Any, **functions: Any) -> bytes:
    """The bytes of a file."""
    file = io.BytesIO()
    wend.save(file, *value, **functions)
    return file.getvalue()


def again(*value: Any, types: Any = (), **functions: Any) -> Any:
    """The same from a file."""
    return wend.load(io.BytesIO(saved(*value, **functions)), types=types)


def is_same(a: Any, b: Any) -> bool:
    """Whether two pytrees have the same structure, dtypes and bits."""
    if wend.tree.structure(a) != wend.tree.structure(b):
        return False
    pairs = zip(wend.tree.leaves(a), wend.tree.leaves(b), strict=True)
    return all(
        getattr(x, "dtype", type(x)) == getattr(y, "dtype", type(y)) and _bits(x) == _bits(y)
        for x, y in pairs
    )


def _bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()
