"""Arrays of outside that the functions of an eager loop or branch change while they are traced.

Python runs them once, whatever the run will do. So what they may change is looked at before and
after.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import is_wend_file
from wend.ir.types import TensorType
from wend.trace.aliasing.referrers import bound_cells
from wend.trace.arrays.concrete_array import CHANGE_THE_FIRST, CHANGING_METHODS

_DEEPEST = 8
_STORE = dis.opmap["STORE_SUBSCR"]
_OPERATE, _FIRST_IN_PLACE = dis.opmap["BINARY_OP"], 13
_NAMES = {*CHANGING_METHODS, *(fun.__name__ for fun in CHANGE_THE_FIRST), "at"}


@contextmanager
def unchanged(fun: Callable[..., Any]) -> Iterator[None]:
    """Trace in this block a function that Python would run more often, or not at all.

    Raises:
        TypeMismatchError: it has changed an array of outside; that is as it was again.
    """
    before = [(array, array.copy()) for array in _changeable(fun)]
    yield
    for array, held in before:
        if array.tobytes() != held.tobytes():
            array[...] = held
            raise TypeMismatchError(
                explain(
                    f"{TensorType(array.dtype, array.shape)}, an array of outside, is changed in "
                    "place by a function that is recorded once, however often it runs.",
                    cure="let it be one of the values that it is given and returns.",
                )
            )


def _changeable(fun: Any) -> list[np.ndarray]:
    """The arrays that a function may change, and those that it calls."""
    functions: dict[int, FunctionType] = {}
    values: list[Any] = []
    _reach(fun, _DEEPEST, functions, values)
    if not any(_may_change(one.__code__) for one in functions.values()):
        return []
    found = {id(array): array for value in values for array in _arrays_in(value)}
    return list(found.values())


def _reach(fun: Any, depth: int, functions: dict[int, FunctionType], values: list[Any]) -> None:
    """Collect the functions that one may call, and what their names stand for."""
    if isinstance(fun, MethodType):
        values.append(fun.__self__)
        fun = fun.__func__
    if not isinstance(fun, FunctionType) or id(fun) in functions or depth == 0:
        return
    functions[id(fun)] = fun
    is_users = not is_wend_file(fun.__code__.co_filename)
    names = _names(fun.__code__) if is_users else set()
    held = [*bound_cells(fun), *(fun.__globals__[n] for n in names if n in fun.__globals__)]
    values += held
    for value in held:
        _reach(value, depth - 1, functions, values)


def _arrays_in(value: Any) -> Iterator[np.ndarray]:
    parts = [value]
    if isinstance(value, (list, tuple)):
        parts += value
    elif isinstance(value, dict):
        parts += value.values()
    elif hasattr(value, "__dict__") and not isinstance(value, (type, FunctionType)):
        parts += vars(value).values()
    for part in parts:
        if type(part) is np.ndarray and part.flags.writeable:
            yield part


def _names(code: CodeType) -> set[str]:
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _may_change(code: CodeType) -> bool:
    """Whether code stores into parts, or calls what changes arrays."""
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    if _STORE in operations or not _NAMES.isdisjoint(code.co_names):
        return True
    pairs = zip(operations, arguments, strict=True)
    if any(one == _OPERATE and which >= _FIRST_IN_PLACE for one, which in pairs):
        return True
    return any(
        _may_change(one) if isinstance(one, CodeType) else isinstance(one, tuple) and "out" in one
        for one in code.co_consts
    )
