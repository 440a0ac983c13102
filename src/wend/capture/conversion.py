"""Conversion of functions to their captured form, cached per code object."""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import gc
import inspect
import os
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wend.backends.fastcall import MISSING
from wend.base.errors import NestingError, WendError, explain
from wend.base.source import Source, at, is_wend_file
from wend.capture.builtins import grown_lists
from wend.capture.builtins.draws import sequence_draws
from wend.capture.builtins.library import bisection, heap_functions
from wend.capture.builtins.world import check_callback, check_effects
from wend.capture.guards.active import operand_reads
from wend.capture.guards.guards import (
    guard_captured,
    guard_partial,
    guard_uncaptured,
)
from wend.capture.guards.outside import (
    entered_parts,
    read_method,
)
from wend.capture.heap.trace_log import is_trace_logged
from wend.capture.heap.unseen_code import codes_in, note_uncaptured
from wend.capture.heap.user_operators import note_operands
from wend.capture.libraries import is_library
from wend.capture.replacements import is_plain_function
from wend.capture.rewrite.handlers import suppress_by_handlers
from wend.capture.rewrite.jumps import exit_of_finally
from wend.capture.rewrite.scope import Enclosing, mangled
from wend.capture.rewrite.statements import rewrite_function, rewrite_generator
from wend.capture.rewrite.syntax import THUNK, definition, fill_positions
from wend.capture.source import FunctionNode, function_node
from wend.capture.stage import operators
from wend.capture.syntax.names import PREFIX, RUNTIME
from wend.capture.uncaptured import (
    MARKED,
    NOT_CAPTURED,
    OUTLINED_PART,
    PLAIN_PART,
    WHOLE_FUNCTION,
    WITHOUT_SOURCE,
    is_captured,
    is_part_of_captured,
)
from wend.trace.state import templates

_FACTORY = f"{PREFIX}factory"
_FUNCTION = f"{PREFIX}function"  # cannot clash with a user's name: the function may call itself
# The functions that rewritten code calls; `convert.py` sets them, since they capture functions
RUNTIME_FUNCTIONS = types.SimpleNamespace()
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CaptureError(WendError, TypeError):
    """Code that cannot be captured."""


class _CapturedCode(NamedTuple):
    """The captured form of a code object, and its rewritten syntax tree."""

    code: types.CodeType
    tree: ast.FunctionDef


# By file too: equal code objects of two files are one key, but tracebacks must name the file.
_captured_code: weakref.WeakKeyDictionary[types.CodeType, dict[str, _CapturedCode | None]]
_captured_code = weakref.WeakKeyDictionary()


def captured(fun: Any) -> Any:
    """Return the captured form of a function; other objects are returned unchanged."""
    if isinstance(fun, types.MethodType):
        function = captured(fun.__func__)
        if function is fun.__func__:
            guard_uncaptured(function, fun.__self__)
        return types.MethodType(function, fun.__self__)
    if isinstance(fun, functools.partial):
        guard_partial(fun)
        arguments, keywords = entered_parts(fun.args), entered_parts(fun.keywords)
        return functools.partial(captured(fun.func), *arguments, **keywords)
    if not is_plain_function(fun):
        return _capture_object(fun)
    if is_captured(fun.__code__):
        return fun
    if is_trace_logged():
        note_operands(fun)
    is_marked = getattr(fun, "__wend_do_not_capture__", False)
    if is_marked:
        NOT_CAPTURED[fun.__code__] = MARKED
    elif is_library(fun.__code__.co_filename) and fun.__code__ not in _CAPTURED_CODES:
        if not is_wend_file(fun.__code__.co_filename):
            note_plain(fun.__dict__.get("__wrapped__"), "is called by a library")
            for value in _closed_over(fun):
                note_callback(value)
        return fun
    is_converted = is_marked or is_part_of_captured(fun.__code__)
    conversion = None if is_converted else _captured_code_of(fun)
    if conversion is None:
        if NOT_CAPTURED.get(fun.__code__) is WITHOUT_SOURCE:
            check_effects(fun, WITHOUT_SOURCE)
        guard_uncaptured(fun)
        return fun
    if fun.__code__.co_flags & inspect.CO_GENERATOR:
        guard_uncaptured(fun)
    else:
        guard_captured(fun)
    return _rebind(fun, conversion.code)


# Library code that is captured: heaps, and loops over keys or items; comparisons that
# `functools.total_ordering` adds to a class and operators that a mixin of NumPy adds, which call
# methods of the user's
_CAPTURED_CODES = frozenset().union(
    *(
        module.CODES
        for module in (bisection, heap_functions, grown_lists, operators, sequence_draws)
    ),
    [
        method.__code__
        for method in (
            *(m for methods in getattr(functools, "_convert", {}).values() for _, m in methods),
            *vars(np.lib.mixins.NDArrayOperatorsMixin).values(),
        )
        if isinstance(method, types.FunctionType)
    ],
)


def note_plain(fun: Any, why: str, owner: Any = MISSING) -> None:
    """Note that a function, if it is the user's, runs as plain Python; `owner`: its class.

    `contextlib.contextmanager` calls such functions, and so do class statements.
    """
    if isinstance(fun, types.FunctionType) and not is_library(fun.__code__.co_filename):
        check_effects(fun, why)
        guard_uncaptured(fun, owner)
        note_uncaptured(fun)


def note_callback(value: Any) -> None:
    """Note that code which is not captured may call a value, if the user's code is in it."""
    while isinstance(value, functools.partial):
        guard_partial(value)
        value = value.func
    check_callback(value)
    functions, owner = [value], MISSING
    if isinstance(value, types.MethodType):
        functions, owner = [value.__func__], value.__self__
    elif not isinstance(value, types.FunctionType):
        functions, owner = _called_methods(value), value
    for fun in functions:
        if isinstance(fun, types.FunctionType) and not is_captured(fun.__code__):
            note_plain(fun, "is called by a library", owner)


_CALLED_METHODS = (
    *("__call__", "__enter__", "__exit__", "close"),  # by NumPy, by `contextlib`
    *("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"),
)


def _called_methods(value: Any) -> list[Any]:
    """Return the methods of an object that libraries call, if they are the user's; guard them."""
    functions = []
    for name in _CALLED_METHODS:
        fun: Any = getattr(type(value), name, None)
        if is_plain_function(fun) and not is_library(fun.__code__.co_filename):
            read_method(value, name)
            functions.append(fun)
    return functions


def _closed_over(fun: types.FunctionType) -> Iterator[Any]:
    """Yield what the closure of a library's function holds: a decorator calls what it wraps."""
    for cell in fun.__closure__ or ():
        with contextlib.suppress(ValueError):  # empty
            value = cell.cell_contents
            yield value
            if isinstance(value, contextlib._GeneratorContextManager):
                yield value.func


def _capture_object(fun: Any) -> Any:
    """Return the captured `__call__` of a user's object; builtins and classes unchanged."""
    method = getattr(type(fun), "__call__", None)  # noqa: B004  # it returns the function itself
    if isinstance(fun, type) or not is_plain_function(method):
        return fun
    if is_library(method.__code__.co_filename):  # type: ignore[union-attr]
        return fun
    read_method(fun, "__call__")
    return types.MethodType(captured(method), fun)


def is_captured_function(fun: Any) -> bool:
    """Return whether a function is captured."""
    code = getattr(getattr(fun, "__func__", fun), "__code__", None)
    return isinstance(code, types.CodeType) and is_captured(code)


templates.capture_method = captured


def _captured_code_of(fun: types.FunctionType) -> _CapturedCode | None:
    code = fun.__code__
    by_file = _captured_code.setdefault(code, {})
    if code.co_filename not in by_file:
        is_plain = not code.co_flags & (_RESUMABLE & ~inspect.CO_GENERATOR)
        with _gc_disabled(), _deep_syntax(fun):
            by_file[code.co_filename] = _compile(fun) if is_plain else None
    return by_file[code.co_filename]


@contextlib.contextmanager
def _gc_disabled() -> Iterator[None]:
    """Disable garbage collection: a tree has many nodes and no garbage, and scans are slow."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# An expression of a thousand terms is a tree of that depth, which takes some frames a level.
_SYNTAX_FRAMES = 4000


@contextlib.contextmanager
def _deep_syntax(fun: types.FunctionType) -> Iterator[None]:
    """Give the rewriting of deep trees room for its Python frames.

    Raises:
        NestingError: it is not enough.
    """
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(limit + _SYNTAX_FRAMES)
        yield
    except RecursionError:
        where = Source(fun.__code__.co_filename, fun.__code__.co_firstlineno, fun.__name__)
        raise NestingError.of_statements(fun.__name__, at(where)) from None
    finally:
        sys.setrecursionlimit(limit)


def _compile(fun: types.FunctionType) -> _CapturedCode | None:
    node = function_node(fun.__code__)
    if node is None:
        NOT_CAPTURED[fun.__code__] = WITHOUT_SOURCE
        return None
    if fun.__code__.co_flags & inspect.CO_GENERATOR:
        if not isinstance(node, ast.FunctionDef):
            return None
        enclosing = Enclosing(closure=frozenset(fun.__code__.co_freevars))
        generator = rewrite_generator(_as_definition(node, fun), [0], enclosing)
        if generator is None:
            return None
        rewritten = generator
    else:
        _check_finally(node, fun)
        whole = _as_definition(node, fun)
        if any(code.co_exceptiontable for code in codes_in(fun.__code__)):
            whole = suppress_by_handlers(whole, _outside_names(fun))
        rewritten = rewrite_function(whole, fun.__code__.co_freevars)
    user_name, rewritten.name = rewritten.name, _FUNCTION
    factory_parameters = [ast.arg(name) for name in (*fun.__code__.co_freevars, RUNTIME)]
    body: list[ast.stmt] = [rewritten, ast.Return(ast.Name(rewritten.name, ast.Load()))]
    factory = definition(
        _FACTORY, ast.arguments([], factory_parameters, None, [], [], None, []), body
    )
    fill_positions(factory, rewritten)
    module = ast.Module([factory], [])
    flags = fun.__code__.co_flags & __future__.annotations.compiler_flag
    compiled = compile(module, fun.__code__.co_filename, "exec", flags, dont_inherit=True)
    outer = _code_in(compiled, _FACTORY)
    names = fun.__code__.co_name, fun.__code__.co_qualname
    generators = {
        (code.co_name, code.co_firstlineno): code
        for code in codes_in(fun.__code__)
        if code.co_flags & inspect.CO_GENERATOR and not code.co_name.startswith("<")
    }
    code = _with_user_names(_code_in(outer, rewritten.name), *names, WHOLE_FUNCTION, generators)
    rewritten.name = user_name
    return _CapturedCode(code, rewritten)


def _outside_names(fun: types.FunctionType) -> dict[str, Any]:
    """Return what the names stand for that a function finds outside."""
    cells = zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True)
    names = dict(fun.__globals__)
    for name, cell in cells:
        names[name] = None
        with contextlib.suppress(ValueError):  # empty
            names[name] = cell.cell_contents
    return names


def _check_finally(node: FunctionNode, fun: types.FunctionType) -> None:
    """Refuse exits from a `finally`, which discard the pending `return` or error."""
    exit_of = exit_of_finally(node)
    if exit_of is None:
        return
    what = f"`{type(exit_of).__name__.lower()}`"
    where = f"{os.path.basename(fun.__code__.co_filename)}:{exit_of.lineno}"
    raise CaptureError(
        explain(
            f"`{fun.__name__}` leaves a `finally` by {what} at {where}, which would undo the "
            "`return` or error before it.",
            cure="let the `finally` end, and leave after the whole `try`.",
        )
    )


def _as_definition(node: FunctionNode, fun: types.FunctionType) -> ast.FunctionDef:
    if isinstance(node, ast.Lambda):
        returned = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(definition(f"{PREFIX}lambda", node.args, [returned]), node)
    parts = fun.__qualname__.split(".")
    if len(parts) > 1 and parts[-2] != "<locals>":
        node = mangled(node, parts[-2])
    # The values of defaults are taken from the function object.
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    return node


def _code_in(code: types.CodeType, name: str) -> types.CodeType:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    raise WendError(explain(f"captured code of {name} is missing"))


_Generators: TypeAlias = dict[tuple[str, int], types.CodeType]


def _with_user_names(
    code: types.CodeType, name: str, qualified_name: str, mark: object, generators: _Generators
) -> types.CodeType:
    """Return the code, marked, with the user's names for it, and for what is defined in it.

    `generators`: the code of generators as the user wrote it, by name and first line.
    """
    is_class_body = not code.co_flags & inspect.CO_OPTIMIZED
    scope = qualified_name if is_class_body else f"{qualified_name}.<locals>"
    constants: list[Any] = []
    for constant in code.co_consts:
        if not isinstance(constant, types.CodeType):
            is_own_name = is_class_body and constant == code.co_qualname
            constants.append(qualified_name if is_own_name else constant)
        elif constant.co_name.startswith(PREFIX) or THUNK in constant.co_varnames:
            names = name, qualified_name
            constants.append(_with_user_names(constant, *names, OUTLINED_PART, generators))
        else:
            inner = f"{scope}.{constant.co_name}"
            names = constant.co_name, inner
            constants.append(_with_user_names(constant, *names, WHOLE_FUNCTION, generators))
    if code.co_flags & _RESUMABLE:  # it runs as plain Python
        constants.append(generators.get((name, code.co_firstlineno)))
        mark = PLAIN_PART
    return code.replace(
        co_consts=(*constants, mark),
        co_name=name,
        co_qualname=qualified_name,
    )


def _rebind(fun: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """Return the function on its captured code, with its own globals, closure and defaults."""
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    operands = operand_reads()
    if operands is not None:
        cells = {name: operands.cell(fun, name, cell) for name, cell in cells.items()}
    cells[RUNTIME] = types.CellType(RUNTIME_FUNCTIONS)
    closure = tuple(cells[name] for name in code.co_freevars)
    defaults = entered_parts(fun.__defaults__)
    new = types.FunctionType(code, fun.__globals__, fun.__name__, defaults, closure)
    new.__kwdefaults__ = entered_parts(fun.__kwdefaults__)
    new.__qualname__, new.__module__ = fun.__qualname__, fun.__module__
    return new


def rewritten_tree(fun: types.FunctionType) -> ast.FunctionDef | None:
    """Return the rewritten syntax tree of a function, or None if it was not captured."""
    conversion = _captured_code.get(fun.__code__, {}).get(fun.__code__.co_filename)
    return None if conversion is None else conversion.tree
