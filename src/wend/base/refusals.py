"""Refusals: errors about what wend does not record, which no handler may swallow (D45).

Python would not raise them, so a program that catches one would take a path that Python does not
take. While a function is traced each is noted where it is made, and raised again where the trace
ends. What wend itself tries, and then does in another way, forgets its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

E = TypeVar("E", bound=BaseException)

# The refusals of the trace that is under way, in order
_noted: ContextVar[list[BaseException] | None] = ContextVar("wend_refusals", default=None)


def noted() -> list[BaseException] | None:
    """Return the refusals of the trace that is under way in this thread, if there is one."""
    return _noted.get()


def note(error: BaseException) -> None:
    """Note a refusal on the trace that is under way, if there is one."""
    noted = _noted.get()
    if noted is not None:
        noted.append(error)


def refusal(error: E) -> E:
    """Return a built-in error as a refusal: one that neither Python nor NumPy would raise."""
    error.is_refusal = True  # type: ignore[attr-defined]
    note(error)
    return error


def forget(error: BaseException) -> None:
    """Forget a refusal that wend itself has caught."""
    noted = _noted.get()
    if noted is not None and error in noted:
        noted.remove(error)


def noted_again(error: E) -> E:
    """Return an error that was forgotten, to be raised after all."""
    if is_refusal(error):
        note(error)
    return error


def is_refusal(error: BaseException | None) -> bool:
    """Return whether an error is a refusal, or a group that holds one."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_refusal, error.exceptions))
    return bool(getattr(error, "is_refusal", False))


@contextmanager
def final() -> Iterator[None]:
    """Raise what was refused in a `with` block at its end, if a handler in it has caught it."""
    noted = _noted.get()
    token = None
    if noted is None:
        noted = []
        token = _noted.set(noted)
    start = len(noted)
    try:
        yield
    except Exception as error:
        if len(noted) == start or getattr(error, "is_refusal", False):
            raise
        raise noted[start] from None
    else:
        if len(noted) > start:
            raise noted[start]
    finally:
        if token is not None:
            _noted.reset(token)


@contextmanager
def tentative() -> Iterator[None]:
    """Forget what was refused in a `with` block that fails: something else is tried then."""
    noted = _noted.get()
    start = 0 if noted is None else len(noted)
    try:
        yield
    except BaseException:
        if noted is not None:
            del noted[start:]
        raise
