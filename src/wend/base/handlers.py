"""The exception handlers that are active on Python's stack: `except` clauses, and managers.

They are found by the lines of the frames in progress, in captured code and in other, in generators
and in libraries; in code without source text by its exception table. The managers of captured code
are noted when they are entered.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import inspect
import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Protocol, TypeAlias

from wend.base.context_values import scoped
from wend.base.source import PACKAGE, Source, is_users_file

ErrorClass: TypeAlias = type[BaseException]
_Scopes: TypeAlias = tuple[Mapping[str, Any], ...]  # where names are looked up, in this order
_EVERYTHING: tuple[ErrorClass, ...] = (BaseException,)


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler that is active.

    Attributes:
        what: how the user wrote it: `except`, or `with`.
        source: the line where it starts.
        classes: the exceptions that it may catch.
        statement: the `try` of captured code that records it, if it can be recorded.
        passes_on: whether it raises again what it has caught: a `finally`, a bare `raise`.
    """

    what: str
    source: Source
    classes: tuple[ErrorClass, ...]
    statement: Any = None
    passes_on: bool = False

    def catches(self, error: ErrorClass) -> bool:
        """Return whether it may catch an exception of a class; `Exception` stands for any."""
        return error is Exception or any(issubclass(error, c) for c in self.classes)


@dataclass(frozen=True, slots=True)
class Entered:
    """A manager that captured code has entered, the frame that did, and its line there."""

    manager: Any
    frame: FrameType
    line: int


# The managers that are entered, the innermost first
_entered: ContextVar[tuple[Entered, ...]] = ContextVar("wend_entered_managers", default=())


def note_entered(manager: Any, frame: FrameType) -> None:
    """Note that captured code has entered a manager, until `note_left`."""
    _entered.set((Entered(manager, frame, frame.f_lineno), *_entered.get()))


def note_left() -> None:
    """Note that the manager that was entered last is left."""
    _entered.set(_entered.get()[1:])


class RecordedStatement(Protocol):
    """A `try` of captured code whose block is running."""

    def handlers(self) -> Iterable[Handler]:
        """Yield its handlers, the first first; `finally` catches everything."""


# The statements whose blocks are running, each with the frame that calls the block
_statements: ContextVar[tuple[tuple[FrameType, RecordedStatement], ...]]
_statements = ContextVar("wend_recorded_statements", default=())
# Whether the handlers of code are recorded statements; set where code is rewritten
is_rewritten: Callable[[CodeType], bool] = lambda code: False  # noqa: E731


def noted_statement(
    frame: FrameType, statement: RecordedStatement
) -> AbstractContextManager[object]:
    """Note that a frame calls the block of a statement, while it does."""
    return scoped(_statements, ((frame, statement), *_statements.get()))


def entered_count() -> int:
    """Return how many managers captured code has entered."""
    return len(_entered.get())


def entered_managers(count: int) -> tuple[Entered, ...]:
    """Return the managers that captured code has entered since there were so many."""
    managers = _entered.get()
    return managers[: max(0, len(managers) - count)]


def _handlers_in_bytecode(frame: FrameType) -> Iterator[Handler]:
    """Yield the `except` clauses around a frame of code without source; each may catch all."""
    code, offset = frame.f_code, frame.f_lasti
    bytecode: Any = dis.Bytecode(code)  # its stubs lack the entries
    seen: set[int] = set()
    while True:
        targets = [
            entry.target
            for entry in bytecode.exception_entries
            if entry.start <= offset < entry.end
        ]
        if not targets or targets[0] in seen:
            return
        offset = targets[0]
        seen.add(offset)
        handler = itertools.takewhile(
            lambda instruction: instruction.opname != "RERAISE",
            (instruction for instruction in bytecode if instruction.offset >= offset),
        )
        names = [instruction.opname for instruction in handler]
        is_bare = names[:2] == ["PUSH_EXC_INFO", "POP_TOP"]
        if is_bare or not {"CHECK_EXC_MATCH", "CHECK_EG_MATCH"}.isdisjoint(names):
            source = Source(code.co_filename, frame.f_lineno, code.co_name)
            yield Handler("except", source, _EVERYTHING)


@dataclass(frozen=True, slots=True)
class _Block:
    """The body of a `try` that has handlers, or of a `with`.

    Attributes:
        function: the name of the function that it belongs to, and that function's first line.
        first, column, last: its first line and the column where it starts, and its last line.
        is_try: whether it is that of a plain `try`, which captured code replaces.
        takes_groups: whether its handlers are `except*`, which catch groups with what they name.
        clauses: the line of each handler, and what it catches: the class of an `except`, None if
            that has none, or an item of a `with`.
    """

    function: tuple[str, int]
    first: int
    column: int
    last: int
    clauses: tuple[tuple[int, ast.expr | ast.withitem | None], ...]
    is_try: bool
    takes_groups: bool


# File -> its lines, as linecache holds them, and its blocks, the innermost last.
_MAX_INDEXED_FILES = 64
_indexes: dict[str, tuple[list[str], list[_Block]]] = {}


def active_handlers(frames: Iterable[FrameType]) -> Iterator[Handler]:
    """Yield the handlers around the lines at which frames are, the innermost first."""
    for frame in frames:
        code = frame.f_code
        for block_frame, statement in _statements.get():
            if block_frame is frame:
                yield from statement.handlers()
        entered = [entry for entry in _entered.get() if entry.frame is frame]
        for entry in entered:
            if classes := _swallowed_by_manager(entry.manager):
                yield Handler("with", Source(code.co_filename, entry.line, code.co_name), classes)
        if not code.co_exceptiontable or not is_users_file(code.co_filename):
            continue
        # From Python 3.13 on the text of `python -c` is said to be that of all other code as well.
        if code.co_filename == "<string>" or not linecache.getlines(code.co_filename):
            yield from _handlers_in_bytecode(frame)
            continue
        for block in reversed(_enclosing_blocks(frame)):
            if block.is_try and is_rewritten(code):
                continue
            for line, clause in block.clauses:
                if not isinstance(clause, ast.withitem):
                    what, classes = "except", _classes(clause, _scopes(frame))
                    classes += (BaseExceptionGroup,) if block.takes_groups else ()
                elif entered:
                    continue
                else:
                    what, classes = "with", _swallowed_by(clause.context_expr, _scopes(frame))
                if classes:
                    yield Handler(what, Source(code.co_filename, line, code.co_name), classes)


def _enclosing_blocks(frame: FrameType) -> list[_Block]:
    """Return the blocks of a frame's function around the instruction at which it is."""
    code, line = frame.f_code, frame.f_lineno
    blocks = [
        block
        for block in _blocks_of(code.co_filename)
        if block.function[0] == code.co_name
        and block.first <= line <= block.last
        and (line > block.first or _column(frame) >= block.column)
    ]
    innermost = max((block.function[1] for block in blocks), default=0)
    return [block for block in blocks if block.function[1] == innermost]


def _column(frame: FrameType) -> int:
    """Return the column of the instruction at which a frame is."""
    positions = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    _, _, column, _ = next(positions, (None, None, None, None))
    return sys.maxsize if column is None else column


def _blocks_of(file: str) -> list[_Block]:
    """Return the blocks of a file; it is read again if it has changed."""
    lines = linecache.getlines(file)
    if file not in _indexes or _indexes[file][0] is not lines:
        _indexes.pop(file, None)
        if len(_indexes) >= _MAX_INDEXED_FILES:
            del _indexes[next(iter(_indexes))]
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            tree = ast.Module([], [])
        _indexes[file] = lines, [*_blocks_in(tree, ("<module>", 0))]
    return _indexes[file][1]


def _blocks_in(node: ast.AST, function: tuple[str, int]) -> Iterator[_Block]:
    """Yield the blocks inside a node, each before those in it."""
    for child in ast.iter_child_nodes(node):
        inner = function
        clauses: list[tuple[int, Any]] = []
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                inner = child.name, child.lineno
            case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
                clauses = [(h.lineno, h.type) for h in handlers if not only_reraises(h)]
            case ast.With(items=items):
                clauses = [(child.lineno, item) for item in items]
        if clauses:
            assert isinstance(child, (ast.Try, ast.TryStar, ast.With))
            start, last = child.body[0], child.body[-1].end_lineno or child.lineno
            kinds = isinstance(child, ast.Try), isinstance(child, ast.TryStar)
            yield _Block(function, start.lineno, start.col_offset, last, tuple(clauses), *kinds)
        yield from _blocks_in(child, inner)


def only_reraises(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler is a bare `raise`."""
    (stmt, *others) = handler.body
    return isinstance(stmt, ast.Raise) and stmt.exc is None and not others


_MISSING: Any = object()


def _scopes(frame: FrameType) -> _Scopes:
    return frame.f_locals, frame.f_globals, frame.f_builtins


def _value(expression: ast.expr, scopes: _Scopes) -> Any:
    """Return what a name, or an attribute of one, is; `_MISSING` for other expressions."""
    match expression:
        case ast.Name(id=name):
            return next((scope[name] for scope in scopes if name in scope), _MISSING)
        case ast.Attribute(value=owner, attr=attribute):
            value = _value(owner, scopes)
            return value if value is _MISSING else getattr(value, attribute, _MISSING)
    return _MISSING


def _classes(expression: ast.expr | None, scopes: _Scopes) -> tuple[ErrorClass, ...]:
    """Return the exception classes of an `except`; all if only running it could tell."""
    if isinstance(expression, ast.Tuple):
        return tuple(c for item in expression.elts for c in _classes(item, scopes))
    if not isinstance(expression, (ast.Name, ast.Attribute)):
        return _EVERYTHING
    value = _value(expression, scopes)
    return _EVERYTHING if value is _MISSING else _flat_classes(value)


def _flat_classes(value: Any) -> tuple[ErrorClass, ...]:
    if isinstance(value, tuple):
        return tuple(c for item in value for c in _flat_classes(item))
    return (value,) if isinstance(value, type) and issubclass(value, BaseException) else ()


# Managers that swallow the exceptions they are given
_SWALLOWING_FUNCTIONS = ("raises", "assertRaises", "assertRaisesRegex")


def _swallowed_by(expression: ast.expr, scopes: _Scopes) -> tuple[ErrorClass, ...]:
    """Return the exceptions that the context manager of code that is not captured may swallow."""
    if isinstance(expression, ast.Call):
        function = _value(expression.func, scopes)
        if function is contextlib.suppress or _swallows_its_arguments(function):
            return tuple(c for item in expression.args for c in _classes(item, scopes))
        return _swallowed_by_result_of(function)
    value = _value(expression, scopes)
    return _EVERYTHING if value is _MISSING else _swallowed_by_manager(value)


def _swallowed_by_result_of(function: Any) -> tuple[ErrorClass, ...]:
    """Return what a manager that a function makes may swallow."""
    if isinstance(function, type):
        return _swallowed_by_type(function)
    body = getattr(function, "__wrapped__", None)
    if isinstance(body, FunctionType) and inspect.isgeneratorfunction(body):
        return _swallowed_by_generator(body.__code__, body.__globals__)
    if getattr(function, "__name__", "") == "_recreate_cm":  # of `contextlib.ContextDecorator`
        return _swallowed_by_manager(function.__self__)
    code = getattr(function, "__code__", None)
    is_known = code is None or code.co_filename.startswith((PACKAGE, _STANDARD_LIBRARY))
    return () if is_known else _EVERYTHING


_STANDARD_LIBRARY = os.path.dirname(os.__file__)  # and what is installed; none of it swallows


def _swallowed_by_manager(manager: Any) -> tuple[ErrorClass, ...]:
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
        return _swallowed_by_manager(callback.__self__)
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
            return _EVERYTHING  # it may raise another error in place of the one that it is given
        result = previous if instruction.opname == "RETURN_VALUE" else None
        if instruction.opname == "RETURN_CONST":
            result = instruction
        if result is not None:
            is_constant = result.opname in ("LOAD_CONST", "RETURN_CONST")
            if not is_constant or result.argval:
                return _EVERYTHING
        previous = instruction
    return ()


def _swallowed_by_generator(code: CodeType, scope: Mapping[str, Any]) -> tuple[ErrorClass, ...]:
    """Return what the generator of a context manager may swallow around its `yield`."""
    names = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    own_names: dict[str, Any] = dict.fromkeys(names, _EVERYTHING)  # only its run knows them
    scopes: _Scopes = (own_names, scope, vars(builtins))
    return tuple(
        c
        for block in _blocks_of(code.co_filename)
        if block.function[0] == code.co_name
        for _, clause in block.clauses
        if not isinstance(clause, ast.withitem)
        for c in _classes(clause, scopes)
    )


def first_catching(
    errors: Iterable[ErrorClass], frames: Iterable[FrameType], *, or_passes_on: bool = False
) -> tuple[Handler, ErrorClass] | None:
    """Return the innermost active handler that may catch one of these, and which one.

    `or_passes_on`: or one that passes the error on.
    """
    for handler in active_handlers(frames):
        if handler.passes_on and not or_passes_on:
            continue
        for error in errors:
            if handler.catches(error):
                return handler, error
    return None
