"""Traces in pickles: the bytes of `wend.save`."""

from __future__ import annotations

import io
from typing import Any

from wend.function.concrete import ConcreteFunction
from wend.function.function import Function
from wend.saving.load import load
from wend.saving.save import save


def reduce_concrete(concrete: ConcreteFunction) -> tuple[Any, ...]:
    """Return how `pickle` rebuilds a concrete function."""
    return concrete_from_bytes, (_to_bytes(concrete),)


def reduce_function(function: Function) -> tuple[Any, ...]:
    """Return how `pickle` rebuilds a function that was loaded from a file."""
    return function_from_bytes, (_to_bytes(function),)


def concrete_from_bytes(data: bytes) -> ConcreteFunction:
    """Return the concrete function of a pickle."""
    function = function_from_bytes(data)
    (concrete,) = function.concrete_functions()
    concrete.owner = function  # which keeps the variables
    return concrete


def function_from_bytes(data: bytes) -> Function:
    """Return the function of a pickle."""
    function: Function = load(io.BytesIO(data)).function
    return function


def _to_bytes(fun: ConcreteFunction | Function) -> bytes:
    file = io.BytesIO()
    save(file, function=fun)
    return file.getvalue()
