"""Operations seen outside: they take and give the world's token, which keeps their order (D16)."""

from __future__ import annotations

from typing import Any

from wend.base.errors import AssertionFailed, TypeMismatchError
from wend.ir.dtypes import BOOL
from wend.ir.op import Effect, Op, no_gradient
from wend.ir.types import TOKEN, TensorType, TokenType, Type


def _check_token(type: Type) -> None:
    if type != TOKEN:
        raise TypeMismatchError(f"the first operand must be a token, not {type}")


def _infer_print(token: Type, *values: Type, format: str) -> TokenType:
    _check_token(token)
    return TOKEN


def _kernel_print(token: Any, *values: Any, format: str) -> Any:
    print(format.format(*values))  # noqa: T201 - what it is for
    return token


# Writes `format.format(*values)` and a new line
print_ = Op("print", _infer_print, _kernel_print, no_gradient(), effect=Effect.WORLD)


def _infer_assert(token: Type, condition: Type, *values: Type, message: str) -> TokenType:
    _check_token(token)
    if condition != TensorType(BOOL, ()):
        raise TypeMismatchError(f"the condition must be a bool scalar, not {condition}")
    return TOKEN


def _kernel_assert(token: Any, condition: Any, *values: Any, message: str) -> Any:
    if not condition:
        raise AssertionFailed(message.format(*values))
    return token


assert_ = Op("assert", _infer_assert, _kernel_assert, no_gradient(), effect=Effect.WORLD)
