"""Operations with visible effects: they take and give the world token, which orders them (D16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import AssertionFailed, TypeMismatchError
from wend.ir.dtypes import BOOL
from wend.ir.op import Effect, Op, no_gradient
from wend.ir.types import TOKEN, TensorType, TokenType, Type


def _check_token(type: Type) -> None:
    if type != TOKEN:
        raise TypeMismatchError(f"the first operand must be a token, not {type}")


class _Elementwise:
    """An array to be formatted elementwise: a format spec applies to its elements."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self.array)
        return np.array2string(self.array, formatter={"all": lambda x: format(x, spec)})

    def __str__(self) -> str:
        return str(self.array)

    def __repr__(self) -> str:
        return repr(self.array)


def format_values(format: str, values: Sequence[Any]) -> str:
    """Return a format string with values filled in; a spec for an array applies to its elements."""
    formattable = [_Elementwise(x) if isinstance(x, np.ndarray) and x.ndim else x for x in values]
    return format.format(*formattable)


def _infer_print(token: Type, *values: Type, format: str, **how: Any) -> TokenType:
    _check_token(token)
    return TOKEN


def _kernel_print(token: Any, *values: Any, format: str, **how: Any) -> Any:
    print(format_values(format, values), **how)  # noqa: T201 - what it is for
    return token


# Prints the values by a format; `end`, `file` and `flush` are as in Python's `print`
print_ = Op("print", _infer_print, _kernel_print, no_gradient(), effect=Effect.WORLD)


def _infer_assert(token: Type, condition: Type, *values: Type, message: str) -> TokenType:
    _check_token(token)
    if condition != TensorType(BOOL, ()):
        raise TypeMismatchError(f"the condition must be a bool scalar, not {condition}")
    return TOKEN


def _kernel_assert(token: Any, condition: Any, *values: Any, message: str) -> Any:
    if not condition:
        raise AssertionFailed(format_values(message, values))
    return token


assert_ = Op("assert", _infer_assert, _kernel_assert, no_gradient(), effect=Effect.WORLD)
