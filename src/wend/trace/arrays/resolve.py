"""Arrays that stand for others: NumPy's protocols on what they read as here and now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.eager.dispatch import read, read_all


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A ufunc, or a method of it, on what its inputs read as."""
    return getattr(ufunc, method)(*read_all(inputs), **options)


def call_function(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy's on what its arguments read as."""
    return function(*read_all(args), **{name: read(value) for name, value in kwargs.items()})


def are_read(things: Sequence[Any]) -> bool:
    """Whether every thing reads as itself."""
    return all(found is thing for found, thing in zip(read_all(things), things, strict=True))
