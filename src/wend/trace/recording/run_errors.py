"""Errors that only some runs raise, or only a run, and the handlers that wait for them (D45)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import FrameType

from wend.base import refusals
from wend.base.errors import StagedRaiseError, WendError, explain
from wend.base.handling.handlers import first_catching
from wend.base.source import PACKAGE, Source, at, frames, is_users_file, raised_at

_CONTROL = os.path.join(PACKAGE, "trace", "control") + os.sep


def refuse_handlers(
    what: str,
    errors: Iterable[type[BaseException]],
    source: Source | None,
    *,
    in_region_only: bool,
) -> None:
    """Refuse an operation that may raise an error in the run for which a handler is active.

    Args:
        what: the operation, as the message names it.
        errors: what it may raise.
        source: its line.
        in_region_only: whether only the handlers inside a region count. Under a tape it is run at
            once, so those around it catch its errors.

    Raises:
        StagedRaiseError: there is a handler.
    """
    caught = first_catching(errors, _frames_of_region() if in_region_only else frames())
    if caught is None:
        return
    handler, error = caught
    name = "any exception" if error is Exception else error.__name__
    raise StagedRaiseError(
        explain(
            f"{what}{at(source)} may raise {name} when the function runs, and "
            f"`{handler.what}`{at(handler.source)} would catch it: such a handler is not recorded.",
            cure="test for the case with `if` in place of the handler; or put the handler around "
            "the call of the traced function.",
        )
    )


def _frames_of_region() -> Iterator[FrameType]:
    """Yield the frames of the code that functional control flow has called."""
    is_inside = False
    for frame in frames():
        file = frame.f_code.co_filename
        if is_inside and file.startswith(_CONTROL):
            return
        is_inside = is_inside or is_users_file(file)
        yield frame


class refuse_escaping_errors:  # noqa: N801
    """Refuse exceptions that escape from a branch or loop that is being recorded."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, Exception) or refusals.is_refusal(error):
            return
        if isinstance(error, RecursionError) or type(error).__module__ == "bdb":
            return  # raised by no operation
        if isinstance(error, NameError):  # the name may be bound on another path
            error.__wend_region__ = self.where  # type: ignore[attr-defined]
            return
        refused = escaped(error, self.where)
        if refused is not error:
            raise refused.with_traceback(error.__traceback__) from error.__cause__


def escaped(error: Exception, where: str) -> WendError:
    """Return the refusal of an error that only the runs that reach it would raise.

    Where the error's class has no state of its own, the refusal is an error of it as well.
    """
    summary = str(error)
    reach = f"raised{at(raised_at(error))} while the {where} is recorded; a run may not get there."
    cure = (
        "mend it; put a `try` for it inside; or test for the case by what Python knows: "
        "`if key in d:`, `if len(a) > 5:`."
    )
    if isinstance(error, WendError):
        if "\n  To fix it: " not in summary:
            error.args = (explain(summary, reach, cure=cure),)
        return refusals.refusal(error)
    refusal_class = _STAGED.get(type(error), StagedRaiseError)
    return refusal_class(explain(f"{type(error).__name__}: {summary}", reach, cure=cure))


_STAGED: dict[type[Exception], type[StagedRaiseError]] = {
    error: type("StagedRaiseError", (StagedRaiseError, error), {"__str__": Exception.__str__})
    for error in (
        *(KeyError, IndexError, LookupError, TypeError, ValueError, RuntimeError, AssertionError),
        *(ArithmeticError, ZeroDivisionError, OverflowError, NotImplementedError),
    )
}
