"""What happened while `wend.profile()` was on: steps of compiling, and runs with their parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from wend.base.source import Source


@dataclass(frozen=True, slots=True)
class Part:
    """What one operation, or several in one loop of machine code, took in a run.

    Attributes:
        what: what was computed.
        source: the user's line.
        loop: the number of the loop that it is in, among the parts of the run; None: of none.
        count: how often it ran.
        trips: of a loop, how many it made in all; None of what is no loop.
        seconds: how long it took in all, with what is in it.
        is_python: whether compiled code left it to Python.
    """

    what: str
    source: Source | None
    loop: int | None
    count: int
    trips: int | None
    seconds: float
    is_python: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """A step from a function to what runs it, or a run.

    Attributes:
        what: which step: trace, passes, native, numpy; or run.
        name: what of.
        start: when it began, in seconds of `time.perf_counter`.
        stop: when it ended.
        parts: what a run consisted of.
    """

    what: str
    name: str
    start: float
    stop: float
    parts: Sequence[Part] = ()


# Where events go here; None: nobody looks
EVENTS: ContextVar[list[Event] | None] = ContextVar("wend_events", default=None)


def note(event: Event) -> None:
    """Keep an event if somebody looks."""
    events = EVENTS.get()
    if events is not None:
        events.append(event)
