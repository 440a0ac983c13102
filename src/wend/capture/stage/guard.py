"""What a user sees when captured code fails: their own lines, and wend's reasons."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from wend.base.errors import (
    ConcreteValueError,
    NestingError,
    TypeMismatchError,
    WendError,
    explain,
)
from wend.base.source import at, is_own, raised_at, user_source
from wend.capture.heap import container_phis
from wend.capture.stage import uncaptured
from wend.capture.state import unbound
from wend.trace.recording.recording import current


class StagedRaiseError(WendError):
    """An exception is raised, or caught, depending on traced values."""


class RecursionWithoutEnd(WendError, RecursionError):
    """A function calls itself while it is recorded, without end."""


def guarded(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A captured function whose errors are those of the user's code."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        unbound.start()
        try:
            with container_phis.traced():
                return fun(*args, **kwargs)
        except NameError as error:
            found = unbound.explained(error)
            if found is None:
                raise
            raise found.with_traceback(error.__traceback__) from None
        except ConcreteValueError as error:
            reason = uncaptured.explained(error)
            if reason is None:
                raise
            raise reason.with_traceback(error.__traceback__) from None
        except ValueError as error:
            if not isinstance(error.__cause__, ConcreteValueError):
                raise
            raise _put_by_numpy(error).with_traceback(error.__traceback__) from None
        except RecursionError as error:
            recording = current()
            if recording is not None and recording.parent is not None:
                raise  # whoever is further out sees all the calls
            raise _without_end(error) from None

    return run


def _put_by_numpy(error: ValueError) -> TypeMismatchError:
    """The error where NumPy asks a traced value for its number, to put it into an array."""
    return TypeMismatchError(
        explain(
            f"a traced number is put{at(raised_at(error))} into an array that Python knows, and "
            "that is held elsewhere, or was made outside the function.",
            cure="pass it as an argument, or change a copy: x = x.copy() before.",
        )
    )


def _without_end(error: RecursionError) -> RecursionError:
    """The error for a function that never stops calling itself, by its name."""
    if isinstance(error, WendError):
        return error
    calls = Counter(
        (tb.tb_frame.f_code.co_name, tb.tb_frame.f_code.co_filename)
        for tb in _entries(error.__traceback__)
        if uncaptured.is_captured(tb.tb_frame.f_code)
    )
    (name, _), count = calls.most_common(1)[0] if calls else (("", ""), 0)
    if count < 2:
        return error
    if count * 4 < len(calls):
        return NestingError.of(len(calls))
    return RecursionWithoutEnd(
        explain(
            f"`{name}` calls itself without end while it is recorded.",
            "both sides of a branch on a traced value are recorded, the one that goes on too.",
            cure="write it as a loop, or let the test that ends it be on Python ints "
            "(static_argnums).",
        )
    )


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_own(entry: TracebackType) -> bool:
    return is_own(entry.tb_frame.f_code.co_filename)


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback with the user's lines only, each once."""
    entries = [entry for entry in _entries(traceback) if not _is_own(entry)]
    following = [*(entry.tb_frame.f_code for entry in entries), None][1:]
    # A part of a function is called by the function itself, from a line further out.
    kept = [
        entry
        for entry, next in zip(entries, following, strict=True)
        if not uncaptured.is_part(next)
    ]
    found: TracebackType | None = None
    for entry in reversed(kept):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found


def without_head(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the lines of wend's that the first line of the user's comes after."""
    entries = _entries(traceback)
    return next((entry for entry in entries if not _is_own(entry)), traceback)


def check_raise() -> None:
    """Refuse a `raise` that only some runs would come to."""
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
    """Refuse to catch what only some runs would raise."""
    error = sys.exc_info()[1]
    if isinstance(error, NameError):
        unsure = unbound.explained(error)
        if unsure is not None:
            raise unsure from None
    where = getattr(error, "__wend_region__", None)
    if where is not None:
        raise StagedRaiseError(
            explain(
                f"`except`{at(user_source())} catches {type(error).__name__} from the {where}, "
                "which only some runs come to.",
                cure="put the `try` inside it, or test for the case with `if`.",
            )
        ) from error


@contextmanager
def region(where: str) -> Iterator[None]:
    """Mark exceptions that leave a branch or a loop that is being recorded."""
    try:
        yield
    except WendError:
        raise
    except Exception as error:
        with suppress(AttributeError):
            error.__wend_region__ = where  # type: ignore[attr-defined]
        raise
