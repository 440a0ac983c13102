"""Log of the steps from a function to its executable, for `config(debug=True)` and `profile()`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from wend.base.config import settings
from wend.base.reporting.profile import Event, note


@contextmanager
def step(what: str, name: str) -> Iterator[Callable[[Callable[[], str]], None]]:
    """Time a step, and report it to stderr and to a profile if enabled.

    Args:
        what: the step, in one word.
        name: the name of the function or graph.

    Yields:
        A function that takes a callable for a text about the result, its size for example; the
        callable runs only if the text is needed.
    """
    facts: list[Callable[[], str]] = []
    if not (settings().debug or settings().profile):
        yield facts.append
        return
    began = perf_counter()
    try:
        yield facts.append
    except BaseException as error:
        _write(what, perf_counter() - began, name, type(error).__name__)
        raise
    ended = perf_counter()
    note(Event(what, name, began, ended))
    _write(what, ended - began, name, *(fact() for fact in facts))


def tell(what: str, text: str) -> None:
    """Log a line to stderr under `config(debug=True)`."""
    if settings().debug:
        sys.stderr.write(f"wend: {what:7} {text}\n")


def _write(what: str, seconds: float, name: str, *facts: str) -> None:
    if not settings().debug:
        return
    line = f"wend: {what:7} {1e3 * seconds:8.1f} ms  {name}: {', '.join(facts)}"
    sys.stderr.write(line + "\n")
