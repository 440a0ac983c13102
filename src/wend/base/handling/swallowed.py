"""The exceptions that an `except` clause catches, and those that a context manager swallows."""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import inspect
import os
from collections.abc import Mapping
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, TypeAlias

from wend.base.handling.handler_blocks import blocks_of
from wend.base.source import PACKAGE

ErrorClass: TypeAlias = type[BaseException]
Scopes: TypeAlias = tuple[Mapping[str, Any], ...]  # where names are looked up, in this order
EVERYTHING: tuple[ErrorClass, ...] = (BaseException,)

_MISSING: Any = object()


def scopes_of(frame: FrameType) -> Scopes:
    """Return where the code of a frame looks names up."""
    return frame.f_locals, frame.f_globals, frame.f_builtins


def _value(expression: ast.expr, scopes: Scopes) -> Any:
    """Return what a name, or an attribute of one, is; `_MISSING` for other expressions."""
    match expression:
        case ast.Name(id=name):
            return next((scope[name] for scope in scopes if name in scope), _MISSING)
        case ast.Attribute(value=owner, attr=attribute):
            value = _value(owner, scopes)
            return value if value is _MISSING else getattr(value, attribute, _MISSING)
    return _MISSING


def caught_classes(expression: ast.expr | None, scopes: Scopes) -> tuple[ErrorClass, ...]:
    """Return the exception classes of an `except`; all if only running it could tell."""
    if isinstance(expression, ast.Tuple):
        return tuple(c for item in expression.elts for c in caught_classes(item, scopes))
    if not isinstance(expression, (ast.Name, ast.Attribute)):
        return EVERYTHING
    value = _value(expression, scopes)
    return EVERYTHING if value is _MISSING else _flat_classes(value)


def _flat_classes(value: Any) -> tuple[ErrorClass, ...]:
    if isinstance(value, tuple):
        return tuple(c for item in value for c in _flat_classes(item))
    return (value,) if isinstance(value, type) and issubclass(value, BaseException) else ()


# Managers that swallow the exceptions they are given
_SWALLOWING_FUNCTIONS = ("raises", "assertRaises", "assertRaisesRegex")


def swallowed_by(expression: ast.expr, scopes: Scopes) -> tuple[ErrorClass, ...]:
    """Return the exceptions that the context manager of code that is not captured may swallow."""
    if isinstance(expression, ast.Call):
        function = _value(expression.func, scopes)
        if function is contextlib.suppress or _swallows_its_arguments(function):
            return tuple(c for item in expression.args for c in caught_classes(item, scopes))
        return _swallowed_by_result_of(function)
    value = _value(expression, scopes)
    return EVERYTHING if value is _MISSING else swallowed_by_manager(value)


def _swallowed_by_result_of(function: Any) -> tuple[ErrorClass, ...]:
    """Return what a manager that a function makes may swallow."""
    if isinstance(function, type):
        return _swallowed_by_type(function)
    body = getattr(function, "__wrapped__", None)
    if isinstance(body, FunctionType) and inspect.isgeneratorfunction(body):
        return _swallowed_by_generator(body.__code__, body.__globals__)
    if getattr(function, "__name__", "") == "_recreate_cm":  # of `contextlib.ContextDecorator`
        return swallowed_by_manager(function.__self__)
    code = getattr(function, "__code__", None)
    is_known = code is None or code.co_filename.startswith((PACKAGE, _STANDARD_LIBRARY))
    return () if is_known else EVERYTHING


_STANDARD_LIBRARY = os.path.dirname(os.__file__)  # and what is installed; none of it swallows


def swallowed_by_manager(manager: Any) -> tuple[ErrorClass, ...]:
    """Return the exceptions that a context manager may swallow."""
    if isinstance(manager, contextlib.suppress):
        return _flat_classes(manager._exceptions)  # type: ignore[attr-defined]
    if isinstance(manager, contextlib._GeneratorContextManager):
        generator: Any = manager.gen
        scope = generator.gi_frame.f_globals if generator.gi_frame is not None else {}
        return _swallowed_by_generator(generator.gi_code, scope)
    if type(manager) is contextlib.ExitStack:
        callbacks = manager._exit_callbacks  # type: ignore[attr-defined]
        return tuple(c for _, callback in callbacks for c in _swallowed_by_callback(callback))
    return _swallowed_by_type(type(manager))


def _swallowed_by_callback(callback: Any) -> tuple[ErrorClass, ...]:
    """Return what a callback of an `ExitStack` may swallow."""
    if isinstance(callback, MethodType):
        return swallowed_by_manager(callback.__self__)
    return _swallowed_by_exit(callback)


def _swallows_its_arguments(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    is_of_tests = module.partition(".")[0] in ("_pytest", "pytest", "unittest")
    return is_of_tests and getattr(function, "__name__", "") in _SWALLOWING_FUNCTIONS


def _swallowed_by_type(cls: type) -> tuple[ErrorClass, ...]:
    return _swallowed_by_exit(getattr(cls, "__exit__", None))


def _swallowed_by_exit(leave: Any) -> tuple[ErrorClass, ...]:
    """Return what an `__exit__` may swallow: all, unless it returns None or False and no more."""
    if not isinstance(leave, FunctionType) or leave.__module__.startswith("wend."):
        return ()
    previous: Any = None
    for instruction in dis.get_instructions(leave):
        if instruction.opname == "RAISE_VARARGS" and instruction.arg:
            return EVERYTHING  # it may raise another error in place of the one that it is given
        result = previous if instruction.opname == "RETURN_VALUE" else None
        if instruction.opname == "RETURN_CONST":
            result = instruction
        if result is not None:
            is_constant = result.opname in ("LOAD_CONST", "RETURN_CONST")
            if not is_constant or result.argval:
                return EVERYTHING
        previous = instruction
    return ()


def _swallowed_by_generator(code: CodeType, scope: Mapping[str, Any]) -> tuple[ErrorClass, ...]:
    """Return what the generator of a context manager may swallow around its `yield`."""
    names = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    own_names: dict[str, Any] = dict.fromkeys(names, EVERYTHING)  # only its run knows them
    scopes: Scopes = (own_names, scope, vars(builtins))
    return tuple(
        c
        for block in blocks_of(code.co_filename)
        if block.function[0] == code.co_name
        for _, clause in block.clauses
        if not isinstance(clause, ast.withitem)
        for c in caught_classes(clause, scopes)
    )
