"""What takes the time: `wend.profile()`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator
from contextvars import Token
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType

from wend.base.config import config
from wend.base.profile import EVENTS, Event, Part
from wend.base.source import Source

_LEAST = 1e-3  # of all time: what the table shows


@dataclass(slots=True)
class Line:
    """What one kind of operation at one line of the user's took, in all runs.

    Attributes:
        function: what was run.
        what: the operation, or `while` for a loop.
        source: the user's line.
        depth: how many loops it is in.
        count: how often it ran.
        trips: of a loop, how many it made in all; None of what is no loop.
        seconds: how long it took in all, with what is in it.
        own_seconds: the same without what is in it and was measured itself.
        is_python: whether compiled code left it to Python.
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

    def row(self, total: float) -> tuple[str, ...]:
        """The cells of the table; `total`: all time, in seconds."""
        return (
            "" if self.source is None else self.source.short,
            "  " * self.depth + self.what + (" (Python)" if self.is_python else ""),
            str(self.count),
            "" if self.trips is None else str(self.trips),
            _ms(self.seconds),
            _ms(self.own_seconds),
            f"{100 * self.own_seconds / total:.1f}" if total else "",
        )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}"


class profile:  # noqa: N801 - used like a function, and as a context manager
    """Measure what runs of functions take, and their making: a table, and a timeline for browsers.

    Within the `with` block functions are compiled once more, so that they measure themselves:
    loops with their trips, each operation on arrays or each loop of machine code that does several,
    and what Python runs in between. What is in registers counts to what is around it. A measurement
    takes some ten nanoseconds, so that loops of short operations look longer than they are.

    Attributes:
        events: what happened, in order: `trace`, `passes`, `native`, and each `run`.

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
        self._config: config | None = None
        self._token: Token[list[Event] | None] | None = None

    def __enter__(self) -> profile:
        self._config = config(profile=True)
        self._config.__enter__()
        self._token = EVENTS.set(self.events)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None
        assert self._config is not None
        EVENTS.reset(self._token)
        self._config.__exit__(kind, error, trace)

    def lines(self) -> list[Line]:
        """What runs consisted of: in order of the program, what is in a loop behind it."""
        found: dict[Hashable, Line] = {}
        for event in self.events:
            for part, depth, own, key in _own_times(event):
                if not part.count:
                    continue
                line = found.get(key)
                if line is None:
                    line = found[key] = Line(
                        event.name, part.what, part.source, depth, is_python=part.is_python
                    )
                line.count += part.count
                line.seconds += part.seconds
                line.own_seconds += own
                if part.trips is not None:
                    line.trips = (line.trips or 0) + part.trips
        return [*found.values()]

    def __str__(self) -> str:
        """The table. What takes less than a thousandth of the time, and is no loop, is left out."""
        runs = [event for event in self.events if event.what == "run"]
        total = sum(event.stop - event.start for event in runs)
        made = sum(event.stop - event.start for event in self.events) - total
        rows: list[tuple[str, ...]] = [("line", "what", "times", "trips", "ms", "own ms", "own %")]
        lines = self.lines()
        for name in dict.fromkeys(event.name for event in runs):
            rows.append((f"{name}:", "", "", "", "", "", ""))
            for line in lines:
                is_shown = line.trips is not None or line.own_seconds > _LEAST * total
                if line.function == name and is_shown:
                    rows.append(line.row(total))
        rest = total - sum(line.own_seconds for line in lines)
        share = f"{100 * rest / total:.1f}" if total else ""
        rows.append(("the calls, and the rest", "", str(len(runs)), "", "", _ms(rest), share))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        texts = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        count = f"{len(runs)} run{'s' * (len(runs) != 1)}"
        return "\n".join([f"{count}: {_ms(total)} ms; made in {_ms(made)} ms", *texts])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a timeline as JSON, which `chrome://tracing` and ui.perfetto.dev show.

        Steps and runs are where they were in time. What is in a run is one bar for each operation,
        as long as it took in all, one after the other.
        """
        found = {"traceEvents": [*self._bars()], "displayTimeUnit": "ms"}
        Path(path).write_text(json.dumps(found), encoding="utf-8")

    def _bars(self) -> Iterator[dict[str, object]]:
        zero = min((event.start for event in self.events), default=0.0)
        for event in self.events:
            yield _bar(f"{event.what} {event.name}", event.start - zero, event.stop - event.start)
            ends: dict[int | None, float] = {None: event.start - zero}
            for number, part in enumerate(event.parts):
                if not part.count:
                    continue
                start = ends[part.loop]
                ends[part.loop] = start + part.seconds
                ends[number] = start
                where = "" if part.source is None else f" {part.source.short}"
                more = {"times": part.count, "line": str(part.source or "")}
                if part.trips is not None:
                    more["trips"] = part.trips
                yield _bar(part.what + where, start, part.seconds, more)


def _bar(
    name: str, start: float, seconds: float, more: dict[str, object] | None = None
) -> dict[str, object]:
    times = {"ts": 1e6 * start, "dur": 1e6 * seconds}
    return {"name": name, "ph": "X", "pid": 0, "tid": 0, **times, "args": more or {}}


def _own_times(event: Event) -> Iterator[tuple[Part, int, float, Hashable]]:
    """Each part of a run, how many loops it is in, its own time, and what it is known by."""
    parts = event.parts
    own = [part.seconds for part in parts]
    for part in parts:
        if part.loop is not None:
            own[part.loop] -= part.seconds
    keys: list[tuple[Hashable, ...]] = []
    depths: list[int] = []
    seen: Counter[Hashable] = Counter()
    for part, seconds in zip(parts, own, strict=True):
        around = (event.name,) if part.loop is None else keys[part.loop]
        depths.append(0 if part.loop is None else depths[part.loop] + 1)
        key = (*around, part.what, part.source)
        if part.trips is not None:  # there may be one there and one back
            seen[key] += 1
            key = (*key, seen[key])
        keys.append(key)
        yield part, depths[-1], seconds, keys[-1]
