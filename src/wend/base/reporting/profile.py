"""The events, parts of runs and spans that are recorded under `wend.profile()`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import NamedTuple

from wend.base.lazy.dataclass import dataclass
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
        is_concurrent: whether the parts in it run at once, so that they may take longer together.
    """

    what: str
    source: Source | None
    loop: int | None
    count: int
    trips: int | None
    seconds: float
    is_python: bool = False
    bytes: int = 0
    is_concurrent: bool = False


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


class Span(NamedTuple):
    """An operation that ran beside others, or an iteration of a loop that overlaps with others.

    Attributes:
        what: the operation or the loop.
        source: the user's line.
        start: the start time, in seconds of `time.perf_counter`.
        stop: the end time.
        thread: the number of the thread, 0 for that of the call; None for an iteration.
        trip: the number of the iteration, from 0 on; None outside of loops.
    """

    what: str
    source: Source | None
    start: float
    stop: float
    thread: int | None
    trip: int | None


MAX_SPANS = 10**6  # that are kept, of a profile and of a run: the last ones

# The sinks of events and spans in this context; None: no profile is active
EVENTS: ContextVar[list[Event] | None] = ContextVar("wend_events", default=None)
SPANS: ContextVar[deque[Span] | None] = ContextVar("wend_spans", default=None)


def note(event: Event) -> None:
    """Record an event if a profile is active."""
    events = EVENTS.get()
    if events is not None:
        events.append(event)


def note_spans(spans: Iterable[Span]) -> None:
    """Record spans if a profile is active."""
    ring = SPANS.get()
    if ring is not None:
        ring.extend(spans)
