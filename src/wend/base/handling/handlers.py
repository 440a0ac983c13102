"""The exception handlers that are active on Python's stack: `except` clauses, and managers.

They are found by the lines of the frames in progress, in captured code and in other, in generators
and in libraries; in code without source text by its exception table. The managers of captured code
are noted when they are entered.
"""

from __future__ import annotations

import ast
import dis
import itertools
import linecache
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, Protocol

from wend.base.context_values import scoped
from wend.base.handling.handler_blocks import enclosing_blocks
from wend.base.handling.swallowed import (
    EVERYTHING,
    ErrorClass,
    caught_classes,
    scopes_of,
    swallowed_by,
    swallowed_by_manager,
)
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source, is_users_file, line_of


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
    _entered.set((Entered(manager, frame, line_of(frame)), *_entered.get()))


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
            source = Source(code.co_filename, line_of(frame), code.co_name)
            yield Handler("except", source, EVERYTHING)


def active_handlers(frames: Iterable[FrameType]) -> Iterator[Handler]:
    """Yield the handlers around the lines at which frames are, the innermost first."""
    for frame in frames:
        code = frame.f_code
        for block_frame, statement in _statements.get():
            if block_frame is frame:
                yield from statement.handlers()
        entered = [entry for entry in _entered.get() if entry.frame is frame]
        for entry in entered:
            if classes := swallowed_by_manager(entry.manager):
                what = getattr(entry.manager, "what", "with")
                yield Handler(what, Source(code.co_filename, entry.line, code.co_name), classes)
        if not code.co_exceptiontable or not is_users_file(code.co_filename):
            continue
        # From Python 3.13 on the text of `python -c` is said to be that of all other code as well.
        if code.co_filename == "<string>" or not linecache.getlines(code.co_filename):
            yield from _handlers_in_bytecode(frame)
            continue
        for block in reversed(enclosing_blocks(frame)):
            if block.is_try and is_rewritten(code):
                continue
            for line, clause in block.clauses:
                if not isinstance(clause, ast.withitem):
                    what, classes = "except", caught_classes(clause, scopes_of(frame))
                    classes += (BaseExceptionGroup,) if block.takes_groups else ()
                elif entered:
                    continue
                else:
                    what, classes = "with", swallowed_by(clause.context_expr, scopes_of(frame))
                if classes:
                    yield Handler(what, Source(code.co_filename, line, code.co_name), classes)


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
