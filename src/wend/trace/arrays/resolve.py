"""NumPy's protocols for arrays that stand for others, which are read first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.eager.dispatch import read, read_all


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a ufunc, or a method of it, on what its inputs read as."""
    return getattr(ufunc, method)(*read_all(inputs), **options)


def call_function(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a NumPy function on what its arguments read as."""
    return function(*read_all(args), **{name: read(value) for name, value in kwargs.items()})


def are_read(operands: Sequence[Any]) -> bool:
    """Return whether all operands read as themselves."""
    return all(
        value is operand for value, operand in zip(read_all(operands), operands, strict=True)
    )
