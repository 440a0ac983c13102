"""Errors of captured code: tracebacks with the user's lines, and wend's explanations."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from wend.base.errors import ConcreteValueError, NestingError, TypeMismatchError, WendError, explain
from wend.base.source import at, is_wend_file, raised_at, user_source
from wend.capture.heap import container_phis
from wend.capture.stage import uncaptured
from wend.capture.state import unbound
from wend.trace.recording.recording import current


class StagedRaiseError(WendError):
    """An exception is raised, or caught, depending on traced values."""


class RecursionWithoutEnd(WendError, RecursionError):
    """A function calls itself endlessly while it is recorded."""


def translate_errors(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a captured function so that its errors refer to the user's code."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        unbound.reset()
        try:
            with container_phis.tracking():
                return fun(*args, **kwargs)
        except NameError as error:
            unbound_error = unbound.explain_error(error)
            if unbound_error is None:
                raise
            raise unbound_error.with_traceback(error.__traceback__) from None
        except ConcreteValueError as error:
            reason = uncaptured.explain_error(error)
            if reason is None:
                raise
            raise reason.with_traceback(error.__traceback__) from None
        except ValueError as error:
            if not isinstance(error.__cause__, ConcreteValueError):
                raise
            raise _array_store_error(error).with_traceback(error.__traceback__) from None
        except RecursionError as error:
            recording = current()
            if recording is not None and recording.parent is not None:
                raise  # the outermost recording sees all calls
            raise _endless_recursion_error(error) from None

    return run


def _array_store_error(error: ValueError) -> TypeMismatchError:
    """Return the error for a traced value that NumPy would store into an array."""
    return TypeMismatchError(
        explain(
            f"a traced number is put{at(raised_at(error))} into a concrete array that is held "
            "elsewhere, or was made outside the function.",
            cure="pass it as an argument, or change a copy: x = x.copy() before.",
        )
    )


def _endless_recursion_error(error: RecursionError) -> RecursionError:
    """Return the error for a function that never stops calling itself, with its name."""
    if isinstance(error, WendError):
        return error
    calls = Counter(
        (tb.tb_frame.f_code.co_name, tb.tb_frame.f_code.co_filename)
        for tb in _traceback_entries(error.__traceback__)
        if uncaptured.is_captured(tb.tb_frame.f_code)
    )
    (name, _), count = calls.most_common(1)[0] if calls else (("", ""), 0)
    if count < 2:
        return error
    if count * 4 < len(calls):
        return NestingError.of(len(calls))
    return RecursionWithoutEnd(
        explain(
            f"`{name}` calls itself endlessly while it is recorded.",
            "both sides of a branch on a traced value are recorded, including the recursive one.",
            cure="write it as a loop, or let the test that ends it depend on Python ints "
            "(static_argnums).",
        )
    )


def _traceback_entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_wend_frame(entry: TracebackType) -> bool:
    return is_wend_file(entry.tb_frame.f_code.co_filename)


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback with the user's lines only, each once."""
    entries = [entry for entry in _traceback_entries(traceback) if not _is_wend_frame(entry)]
    following = [*(entry.tb_frame.f_code for entry in entries), None][1:]
    # An outlined part is called by its own function, from an enclosing statement.
    shown = [
        entry
        for entry, next in zip(entries, following, strict=True)
        if not uncaptured.is_outlined(next)
    ]
    result: TracebackType | None = None
    for entry in reversed(shown):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def without_head(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without wend's lines before the first line of the user's."""
    entries = _traceback_entries(traceback)
    return next((entry for entry in entries if not _is_wend_frame(entry)), traceback)


def check_raise() -> None:
    """Refuse a `raise` that only some runs would reach."""
    recording = current()
    if recording is not None and recording.is_region:
        raise StagedRaiseError(
            explain(
                f"`raise`{at(user_source())} depends on a traced value: whether it happens is "
                "not known while the function is recorded.",
                cure="write `assert test, message`, which is checked when it runs, or return a "
                "flag and raise outside.",
            )
        )


def check_caught() -> None:
    """Refuse to catch an exception that only some runs would raise."""
    error = sys.exc_info()[1]
    if isinstance(error, NameError):
        unbound_error = unbound.explain_error(error)
        if unbound_error is not None:
            raise unbound_error from None
    where = getattr(error, "__wend_region__", None)
    if where is not None:
        raise StagedRaiseError(
            explain(
                f"`except`{at(user_source())} catches {type(error).__name__} from the {where}, "
                "which only some runs reach.",
                cure="put the `try` inside it, or test for the case with `if`.",
            )
        ) from error


@contextmanager
def mark_escaping_errors(where: str) -> Iterator[None]:
    """Mark exceptions that escape from a branch or loop that is being recorded."""
    try:
        yield
    except WendError:
        raise
    except Exception as error:
        with suppress(AttributeError):
            error.__wend_region__ = where  # type: ignore[attr-defined]
        raise
