"""The events recorded under `wend.profile()`: steps of compilation, and runs with their parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from wend.base.source import Source


@dataclass(frozen=True, slots=True)
class ProfilePart:
    """The time of one operation, or of several fused into one native loop, in a run.

    Attributes:
        what: the operation.
        source: the user's line.
        loop: the index of the enclosing loop among the parts of the run, or None.
        count: the number of executions.
        trips: the total number of trips of a loop; None for other operations.
        seconds: the total time, including nested parts.
        is_python: whether compiled code left it to Python.
        bytes: how much memory of arrays it allocated or overwrote as a whole, in native code.
    """

    what: str
    source: Source | None
    loop: int | None
    count: int
    trips: int | None
    seconds: float
    is_python: bool = False
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """A compilation step, or a run.

    Attributes:
        what: the step: trace, passes, native, numpy; or run.
        name: the name of the function or graph.
        start: the start time, in seconds of `time.perf_counter`.
        stop: the end time.
        parts: the parts of a run.
    """

    what: str
    name: str
    start: float
    stop: float
    parts: Sequence[ProfilePart] = ()


# The sink of events in this context; None: no profile is active
EVENTS: ContextVar[list[Event] | None] = ContextVar("wend_events", default=None)


def note(event: Event) -> None:
    """Record an event if a profile is active."""
    events = EVENTS.get()
    if events is not None:
        events.append(event)
