"""Errors of captured code: tracebacks with the user's lines, and wend's explanations."""

from __future__ import annotations

import dis
import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from wend.base import refusals
from wend.base.errors import (
    CURE_OF_OUTSIDE,
    ConcreteValueError,
    NestingError,
    StagedRaiseError,
    TypeMismatchError,
    WendError,
    explain,
)
from wend.base.source import Source, at, is_wend_file, raised_at, user_source
from wend.capture import uncaptured
from wend.capture.guards.outside import read_missing_global
from wend.capture.heap import container_phis
from wend.capture.libraries import is_library
from wend.capture.state import unbound, unbound_attributes
from wend.capture.state.optional_value import settle
from wend.capture.state.paths import keep_deciding_test
from wend.eager.dispatch import Staged
from wend.trace.recording.recording import current
from wend.trace.recording.run_errors import escaped
from wend.trace.state.raised_errors import carried_errors, is_noted


class RecursionWithoutEnd(WendError, RecursionError):
    """A function calls itself endlessly while it is recorded."""


def translate_errors(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a captured function so that its errors refer to the user's code."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        unbound.reset()
        try:
            with (
                container_phis.tracking(),
                unbound_attributes.tracking(),
                carried_errors(),
                refusals.final(),
                _translated_array_stores(),
            ):
                result = fun(*args, **kwargs)
                result, *_ = settle(result, args, kwargs)
                unbound_attributes.check_whole([result, args, kwargs], "what outlives the call")
                return result
        except NameError as error:
            explained = _explained_name_error(error)
            if explained is None:
                raise
            raise explained.with_traceback(error.__traceback__) from None
        except ConcreteValueError as error:
            reason = uncaptured.explain_error(error)
            if reason is None:
                raise
            raise reason.with_traceback(error.__traceback__) from None
        except RecursionError as error:
            recording = current()
            if recording is not None and recording.parent is not None:
                raise  # the outermost recording sees all calls
            endless = _endless_recursion_error(error)
            keep_deciding_test(error, endless)
            raise endless from None

    return run


def _explained_name_error(error: NameError) -> WendError | None:
    """Return the refusal for a name that is bound in some runs only, or that only some reach."""
    explained: WendError | None = unbound.explain_error(error)
    if explained is None and (where := getattr(error, "__wend_region__", None)) is not None:
        explained = escaped(error, where)
    return explained


@contextmanager
def _translated_array_stores() -> Iterator[None]:
    """Translate NumPy's error for a traced value that it cannot store."""
    try:
        yield
    except ValueError as error:
        if not isinstance(error.__cause__, ConcreteValueError):
            raise
        raise _array_store_error(error).with_traceback(error.__traceback__) from None


def _array_store_error(error: ValueError) -> TypeMismatchError:
    """Return the error for a traced value that NumPy would store into an array."""
    return TypeMismatchError(
        explain(
            f"a traced number is put{at(raised_at(error))} into a concrete array that is held "
            "elsewhere, or was made outside the function.",
            cure=CURE_OF_OUTSIDE,
        )
    )


_MIN_DEEP_PARTS = 50  # nested in one function: its text is deep, not its calls


def _endless_recursion_error(error: RecursionError) -> RecursionError:
    """Return the error for a function that never stops calling itself, with its name."""
    if isinstance(error, WendError):
        return error
    entries = _traceback_entries(error.__traceback__)
    codes = [c for tb in entries if uncaptured.is_captured(c := tb.tb_frame.f_code)]
    wholes = [code for code in codes if not uncaptured.is_outlined(code)]
    if not wholes:
        return error
    calls = Counter((code.co_name, code.co_filename) for code in codes)
    (name, _), count = calls.most_common(1)[0]
    if count < 2 or len(codes) > _MIN_DEEP_PARTS * len(wholes):
        (deepest, times) = Counter(wholes).most_common(1)[0]
        deepest = deepest if times > 1 else wholes[-1]
        source = Source(deepest.co_filename, deepest.co_firstlineno, deepest.co_name)
        return NestingError.of_statements(deepest.co_name, at(source))
    if count * 4 < len(calls):
        return NestingError.of(len(calls))
    return RecursionWithoutEnd(
        explain(
            f"`{name}` calls itself endlessly while it is recorded.",
            "both sides of a branch on a traced value are recorded, including the recursive one.",
            cure="write it as a loop, with a list of the calls that remain where it calls itself "
            "twice; or let the test that ends it depend on Python ints (static_argnums).",
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


def is_raised(error: BaseException, handled: BaseException | None) -> bool:
    """Return whether a `raise` statement of captured code has raised an error, or `sys.exit`.

    `handled`: the error that was being handled before, which `raise` alone raises again.
    """
    return (
        isinstance(error, SystemExit)
        or error is handled
        or is_noted(error)
        or any(
            _raises_at(entry) and uncaptured.is_captured(entry.tb_frame.f_code)
            for entry in _traceback_entries(error.__traceback__)
        )
    )


def _raises_at(entry: TracebackType) -> bool:
    code = entry.tb_frame.f_code
    return code.co_code[entry.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def refuse_foreign_error(error: Exception, callers: Container[CodeType]) -> None:
    """Make an error a refusal if a library has raised it, or a function in C that `callers` call.

    Given the number that a traced value stands for, it might not have raised it.
    """
    *_, entry = _traceback_entries(error.__traceback__)
    code = entry.tb_frame.f_code
    is_foreign = is_library(code.co_filename) and not is_wend_file(code.co_filename)
    if (is_foreign or code in callers) and not refusals.is_refusal(error):
        refusals.refusal(error)
        if type(error) in (TypeError, ValueError) and "\n  To fix it: " not in str(error):
            reason = (
                f"raised{at(user_source())} for a traced value; the number that it stands for "
                "might not raise it."
            )
            error.args = (explain(str(error), reason, cure=_FOREIGN_CURE),)


_FOREIGN_CURE = "do it before the call and pass the result, or make the argument static."

# How messages of others name what stands for a value
_STAND_IN = re.compile(r"\b(Tracer|TracedNumber|TensorList|TracedRange|ZippedIterable)\b|<traced ")


def _is_about_traced(error: BaseException) -> bool:
    """Return whether Python or a library has raised an error about what stands for a value."""
    if is_noted(error) or error.__traceback__ is None:  # made, and put into a group
        return False
    if isinstance(error, AttributeError):
        name = error.name or ""
        return isinstance(error.obj, Staged) and hasattr(_value_class(error.obj), name)
    if _STAND_IN.search(str(error)) is None:
        return False
    *_, entry = _traceback_entries(error.__traceback__)
    code = entry.tb_frame.f_code
    is_told = is_wend_file(code.co_filename) and "<traced " not in str(error)
    return not (_raises_at(entry) and (is_told or uncaptured.is_captured(code)))


def _value_class(x: Staged) -> type:
    kinds = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
    return kinds[x.type.dtype.kind] if x.weak else np.ndarray


def check_caught() -> None:
    """Refuse to catch a refusal, or an exception that only some runs would raise."""
    error = sys.exc_info()[1]
    if refusals.is_refusal(error):
        assert error is not None
        raise error
    if any(map(_is_about_traced, filter(None, _ungrouped(error)))):
        raise StagedRaiseError(
            explain(
                f"`except`{at(user_source())} catches {type(error).__name__}, which is raised for "
                "a traced value; the number that it stands for might not raise it.",
                str(error),
                cure=_FOREIGN_CURE,
            )
        ) from error
    if isinstance(error, NameError):
        if error.name is not None:
            read_missing_global(error.name, sys._getframe(1).f_globals)
        explained = _explained_name_error(error)
        if explained is not None:
            raise explained from None
    if error is not None:
        error.__traceback__ = user_traceback(error.__traceback__)


def _ungrouped(error: BaseException | None) -> Iterator[BaseException | None]:
    """Yield an error, or those of a group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _ungrouped(inner)
    else:
        yield error
