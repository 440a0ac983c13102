"""Errors that only some runs raise, or only a run, and the handlers that wait for them (D45)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from wend.base import refusals
from wend.base.errors import StagedRaiseError, explain
from wend.base.handlers import first_catching
from wend.base.source import PACKAGE, at, frames, is_users_file, user_source

_CONTROL = os.path.join(PACKAGE, "trace", "control") + os.sep


def refuse_handlers(
    what: str, errors: Iterable[type[BaseException]], *, in_region_only: bool
) -> None:
    """Refuse an operation that may raise an error in the run for which a handler is active.

    Args:
        what: the operation, as the message names it.
        errors: what it may raise.
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
            f"{what}{at(user_source())} may raise {name} when the function runs, and "
            f"`{handler.what}`{at(handler.source)} would catch it: handlers are not recorded.",
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


def caught_error(what: str, error: Any) -> StagedRaiseError:
    """Return the error for a handler of an exception that escapes from a branch or loop."""
    return StagedRaiseError(
        explain(
            f"{what} {type(error).__name__} from the {error.__wend_region__}, which only some "
            "runs reach.",
            cure="put the `try` inside it, or test for the case with `if`.",
        )
    )


@contextmanager
def mark_escaping_errors(where: str) -> Iterator[None]:
    """Mark exceptions that escape from a branch or loop that is being recorded."""
    try:
        yield
    except Exception as error:
        if not refusals.is_refusal(error):
            with suppress(AttributeError):
                error.__wend_region__ = where  # type: ignore[attr-defined]
                caught = caught_error("code that is not captured catches", error)
                refusals.refuse_if_caught(error, caught)
        raise
