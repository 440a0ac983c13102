"""Profiling of compiled functions: `wend.profile()`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator
from contextvars import Token
from os import PathLike
from pathlib import Path
from types import TracebackType

from wend.base.config import config
from wend.base.lazy.dataclass import dataclass
from wend.base.reporting.profile import EVENTS, MAX_SPANS, SPANS, Event, ProfilePart, Span
from wend.base.source import Source

_MIN_SHOWN_FRACTION = 1e-3  # of the total time; faster operations are left out of the table


@dataclass(slots=True)
class ProfileLine:
    """The time that one kind of operation took at one source line, summed over all runs.

    Attributes:
        function: the function that was run.
        what: the operation, or `while` for a loop.
        source: the user's line.
        depth: the loop nesting depth.
        count: the number of executions.
        trips: the total number of iterations of a loop; None for other operations.
        seconds: the inclusive time.
        own_seconds: the exclusive time, without nested parts that were measured themselves.
        is_python: whether compiled code calls Python for it.
        bytes: the memory of arrays that it allocated or overwrote as a whole, in native code.
        is_concurrent: whether the operations in it run at once.
    """

    function: str
    what: str
    source: Source | None
    depth: int
    count: int = 0
    trips: int | None = None
    seconds: float = 0.0
    own_seconds: float = 0.0
    is_python: bool = False
    bytes: int = 0
    is_concurrent: bool = False

    @property
    def has_parts(self) -> bool:
        """Whether other lines are of operations in it."""
        return self.trips is not None or self.is_concurrent

    def row(self, total: float) -> tuple[str, ...]:
        """Return the cells of the table; `total` is the time of all runs, in seconds."""
        return (
            "" if self.source is None else self.source.with_scope(),
            "  " * self.depth + self.what + (" (Python)" if self.is_python else ""),
            str(self.count),
            "" if self.trips is None else str(self.trips),
            _ms(self.seconds),
            _ms(self.own_seconds),
            f"{100 * self.own_seconds / total:.1f}" if total else "",
        )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}"


class profile:  # noqa: N801 - used like a function, as a context manager
    """Measure the runs of functions and their compilation: a table, and a timeline for browsers.

    Within the `with` block functions are compiled anew with instrumentation. It measures loops with
    their trips, each operation on arrays or each fused loop of machine code, and calls to Python.
    Operations in registers count towards what is around them. A measurement takes some ten
    nanoseconds, so loops of short operations look longer than they are.

    Attributes:
        events: what happened, in order: `trace`, `passes`, `native`, and each `run`.
        spans: operations that ran at once and overlapping iterations, at their times: the last
            million.

    Example:
        >>> import numpy as np, wend
        >>> @wend.function
        ... def settle(x):
        ...     while x.sum() > 1.0:
        ...         x = x * 0.5
        ...     return x
        >>> with wend.profile() as p:
        ...     _ = settle(np.ones(1024))
        >>> [(line.what, line.trips) for line in p.lines() if line.trips]
        [('while', 10)]
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.spans: deque[Span] = deque(maxlen=MAX_SPANS)
        self._config: config | None = None
        self._token: Token[list[Event] | None] | None = None
        self._span_token: Token[deque[Span] | None] | None = None

    def __enter__(self) -> profile:
        self._config = config(profile=True)
        self._config.__enter__()
        self._token, self._span_token = EVENTS.set(self.events), SPANS.set(self.spans)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None and self._span_token is not None
        assert self._config is not None
        EVENTS.reset(self._token)
        SPANS.reset(self._span_token)
        self._config.__exit__(kind, error, trace)

    def lines(self) -> list[ProfileLine]:
        """Return the parts of all runs in program order, the parts of a loop after the loop."""
        lines_by_key: dict[Hashable, ProfileLine] = {}
        for event in self.events:
            for part, depth, exclusive, key in _exclusive_times(event):
                if not part.count:
                    continue
                line = lines_by_key.get(key)
                if line is None:
                    line = lines_by_key[key] = ProfileLine(
                        event.name,
                        part.what,
                        part.source,
                        depth,
                        is_python=part.is_python,
                        is_concurrent=part.is_concurrent,
                    )
                line.count += part.count
                line.seconds += part.seconds
                line.own_seconds += exclusive
                line.bytes += part.bytes
                if part.trips is not None:
                    line.trips = (line.trips or 0) + part.trips
        return [*lines_by_key.values()]

    def __str__(self) -> str:
        """Return the table.

        Operations that take less than a thousandth of the time are left out, unless they are loops
        or what runs at once.
        """
        runs = [event for event in self.events if event.what == "run"]
        total = sum(event.stop - event.start for event in runs)
        compile_time = sum(event.stop - event.start for event in self.events) - total
        rows: list[tuple[str, ...]] = [("line", "what", "times", "trips", "ms", "own ms", "own %")]
        lines = self.lines()
        for name in dict.fromkeys(event.name for event in runs):
            rows.append((f"{name}:", "", "", "", "", "", ""))
            for line in lines:
                is_shown = line.has_parts or line.own_seconds > _MIN_SHOWN_FRACTION * total
                if line.function == name and is_shown:
                    rows.append(line.row(total))
        remainder = total - sum(line.own_seconds for line in lines)
        share = f"{100 * remainder / total:.1f}" if total else ""
        rows.append(("the calls, and the rest", "", str(len(runs)), "", "", _ms(remainder), share))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        texts = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        count = f"{len(runs)} run{'s' * (len(runs) != 1)}"
        return "\n".join([f"{count}: {_ms(total)} ms; made in {_ms(compile_time)} ms", *texts])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a timeline as JSON, which `chrome://tracing` and ui.perfetto.dev show.

        Compilation steps and runs are at their actual times. Within a run each operation is one bar
        of its total time, one after the other, and a counter that grows from run to run.
        Operations that ran at once are at their actual times, in a row for each thread, and so are
        the iterations of loops that overlap.
        """
        rows = [*self._bars(), *self._counters(), *self._span_bars()]
        timeline = {"traceEvents": rows, "displayTimeUnit": "ms"}
        Path(path).write_text(json.dumps(timeline), encoding="utf-8")

    @property
    def _zero(self) -> float:
        return min((event.start for event in self.events), default=0.0)

    def _counters(self) -> Iterator[dict[str, object]]:
        """Yield how many milliseconds each operation has taken, before and after each run."""
        totals: defaultdict[str, float] = defaultdict(float)
        for event in self.events:
            before = totals.copy()
            for part in event.parts:
                if part.count and part.trips is None and not part.is_concurrent:
                    totals[_named(part.what, part.source)] += 1e3 * part.seconds
            for name, total in totals.items():
                if total != before[name]:
                    for time, value in ((event.start, before[name]), (event.stop, total)):
                        at = {"ts": 1e6 * (time - self._zero), "pid": 0}
                        yield {"name": name, "ph": "C", **at, "args": {"ms": value}}

    def _span_bars(self) -> Iterator[dict[str, object]]:
        for thread in sorted({x.thread for x in self.spans if x.thread is not None}):
            row = {"name": "thread_name", "ph": "M", "pid": 0, "tid": thread + 1}
            yield {**row, "args": {"name": f"thread {thread}"}}
        for number, span in enumerate(self.spans):
            name, start = _named(span.what, span.source), span.start - self._zero
            details: dict[str, object] = {"line": str(span.source or "")}
            if span.trip is not None:
                details["trip"] = span.trip
            if span.thread is not None:
                seconds = span.stop - span.start
                yield _timeline_event(name, start, seconds, details, row=span.thread + 1)
                continue
            # Iterations may overlap, so they are no bars of one row
            for phase, time in (("b", start), ("e", span.stop - self._zero)):
                at = {"ph": phase, "ts": 1e6 * time, "pid": 0, "cat": "iteration", "id": number}
                yield {"name": f"{name} trip {span.trip}", **at, "args": details}

    def _bars(self) -> Iterator[dict[str, object]]:
        zero = self._zero
        for event in self.events:
            yield _timeline_event(
                f"{event.what} {event.name}", event.start - zero, event.stop - event.start
            )
            ends: dict[int | None, float] = {None: event.start - zero}
            for number, part in enumerate(event.parts):
                if not part.count:
                    continue
                start = ends[part.loop]
                ends[part.loop] = start + part.seconds
                ends[number] = start
                details = {"times": part.count, "line": str(part.source or "")}
                if part.trips is not None:
                    details["trips"] = part.trips
                name = _named(part.what, part.source)
                yield _timeline_event(name, start, part.seconds, details)


def _named(what: str, source: Source | None) -> str:
    return what if source is None else f"{what} {source.with_scope()}"


def _timeline_event(
    name: str,
    start: float,
    seconds: float,
    details: dict[str, object] | None = None,
    row: int = 0,
) -> dict[str, object]:
    times = {"ts": 1e6 * start, "dur": 1e6 * seconds}
    return {"name": name, "ph": "X", "pid": 0, "tid": row, **times, "args": details or {}}


def _exclusive_times(event: Event) -> Iterator[tuple[ProfilePart, int, float, Hashable]]:
    """Yield each part of a run with its loop depth, its exclusive time, and its key.

    Parts that ran at once have taken longer together than what they are part of: they share its
    time.
    """
    parts = event.parts
    inside = [0.0] * len(parts)
    for part in parts:
        if part.loop is not None:
            inside[part.loop] += part.seconds
    shares: list[float] = []
    for part in parts:
        share = 1.0
        if part.loop is not None:
            share, outer = shares[part.loop], parts[part.loop]
            if outer.is_concurrent and inside[part.loop] > outer.seconds:
                share *= outer.seconds / inside[part.loop]
        shares.append(share)
    exclusive = [part.seconds * share for part, share in zip(parts, shares, strict=True)]
    for k, part in enumerate(parts):
        if part.loop is not None:
            exclusive[part.loop] -= part.seconds * shares[k]
    for k, part in enumerate(parts):
        if part.is_concurrent and inside[k] > part.seconds:
            exclusive[k] = 0.0  # and not what rounding leaves
    keys: list[tuple[Hashable, ...]] = []
    depths: list[int] = []
    seen: Counter[Hashable] = Counter()
    for part, seconds in zip(parts, exclusive, strict=True):
        parent_key = (event.name,) if part.loop is None else keys[part.loop]
        depths.append(0 if part.loop is None else depths[part.loop] + 1)
        key = (*parent_key, part.what, part.source)
        if part.trips is not None:  # a forward and a backward loop may share a line
            seen[key] += 1
            key = (*key, seen[key])
        keys.append(key)
        yield part, depths[-1], seconds, keys[-1]
