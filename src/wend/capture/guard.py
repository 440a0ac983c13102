"""What a user sees when captured code fails: their own lines, and wend's reasons."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from wend.base.errors import WendError, explain
from wend.base.source import PACKAGE
from wend.capture import unbound


class RecursionWithoutEnd(WendError, RecursionError):
    """A function calls itself while it is recorded, without end."""


def guarded(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A captured function whose errors are those of the user's code."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        unbound.start()
        try:
            return fun(*args, **kwargs)
        except NameError as error:
            found = unbound.explained(error)
            if found is None:
                raise
            raise found.with_traceback(error.__traceback__) from None
        except RecursionError as error:
            raise _without_end(error) from None

    return run


def _without_end(error: RecursionError) -> RecursionError:
    """The error for a function that never stops calling itself, by its name."""
    if isinstance(error, RecursionWithoutEnd):
        return error
    calls = Counter(
        (tb.tb_frame.f_code.co_name, tb.tb_frame.f_code.co_filename)
        for tb in _entries(error.__traceback__)
        if not _is_own(tb)
    )
    if not calls:
        return error
    (name, _), count = calls.most_common(1)[0]
    if count < 2:
        return error
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
    return entry.tb_frame.f_code.co_filename.startswith(PACKAGE)


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without wend's own lines; as it is where it has no other."""
    kept = [entry for entry in _entries(traceback) if not _is_own(entry)]
    found: TracebackType | None = None
    for entry in reversed(kept):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found
