"""Outer arrays that the functions of a loop or branch change when they are traced eagerly.

Python runs such a function once, however often it will run. The arrays that it may change are
therefore compared before and after the trace.
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
from wend.trace.arrays.concrete_array import MUTATE_FIRST_ARGUMENT, MUTATING_METHODS

_MAX_CALL_DEPTH = 8
_STORE_SUBSCR = dis.opmap["STORE_SUBSCR"]
_BINARY_OP, _FIRST_IN_PLACE_OP = dis.opmap["BINARY_OP"], 13
_MUTATING_NAMES = {*MUTATING_METHODS, *(fun.__name__ for fun in MUTATE_FIRST_ARGUMENT), "at"}


@contextmanager
def unchanged(fun: Callable[..., Any]) -> Iterator[None]:
    """Trace in this block a function that Python would run more often, or not at all.

    Raises:
        TypeMismatchError: it has changed an outer array, which is restored.
    """
    before = [(array, array.copy()) for array in _mutable_arrays(fun)]
    yield
    for array, contents in before:
        if array.tobytes() != contents.tobytes():
            array[...] = contents
            raise TypeMismatchError(
                explain(
                    f"{TensorType(array.dtype, array.shape)}, an array of outside, is changed in "
                    "place by a function that is recorded once, however often it runs.",
                    cure="make it one of the values that it is given and returns.",
                )
            )


def _mutable_arrays(fun: Any) -> list[np.ndarray]:
    """Return the arrays that a function and its callees may change."""
    functions: dict[int, FunctionType] = {}
    values: list[Any] = []
    _collect_callees(fun, _MAX_CALL_DEPTH, functions, values)
    if not any(_may_change(callee.__code__) for callee in functions.values()):
        return []
    arrays = {id(array): array for value in values for array in _arrays_in(value)}
    return list(arrays.values())


def _collect_callees(
    fun: Any, depth: int, functions: dict[int, FunctionType], values: list[Any]
) -> None:
    """Collect the functions that a function may call, and the values of their free names."""
    if isinstance(fun, MethodType):
        values.append(fun.__self__)
        fun = fun.__func__
    if not isinstance(fun, FunctionType) or id(fun) in functions or depth == 0:
        return
    functions[id(fun)] = fun
    is_user_code = not is_wend_file(fun.__code__.co_filename)
    names = _names(fun.__code__) if is_user_code else set()
    bound = [*bound_cells(fun), *(fun.__globals__[n] for n in names if n in fun.__globals__)]
    values += bound
    for value in bound:
        _collect_callees(value, depth - 1, functions, values)


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
    inner = (_names(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inner)


def _may_change(code: CodeType) -> bool:
    """Return whether code assigns to items, or calls functions that change arrays."""
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    if _STORE_SUBSCR in operations or not _MUTATING_NAMES.isdisjoint(code.co_names):
        return True
    pairs = zip(operations, arguments, strict=True)
    if any(
        operation == _BINARY_OP and argument >= _FIRST_IN_PLACE_OP for operation, argument in pairs
    ):
        return True
    return any(
        _may_change(const)
        if isinstance(const, CodeType)
        else isinstance(const, tuple) and "out" in const
        for const in code.co_consts
    )
