"""The table of operators: functions of arrays, by the names of ONNX."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from wend.interop.onnx.operators import (
    elementwise,
    products,
    recurrent,
    reducing,
    sequences,
    shaping,
    windows,
)

OPERATORS: Mapping[str, Callable[..., Any]] = {
    name: fun
    for module in (elementwise, products, recurrent, reducing, sequences, shaping, windows)
    for name, fun in module.FUNCTIONS.items()
}
CONTROL = ("Constant", "If", "Loop", "Scan", "SequenceMap")
"""Operators that the translation writes itself."""


def extra_arguments(name: str) -> frozenset[str]:
    """Return which of `opset` and `outputs` a function takes besides attributes."""
    names = inspect.signature(OPERATORS[name]).parameters
    return frozenset({"opset", "outputs"} & {*names})
