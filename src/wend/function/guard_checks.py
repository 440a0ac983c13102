"""When the guards of traces are checked, and the warnings about stale traces."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from wend.base.errors import StaleTraceWarning, explain
from wend.base.source import user_source
from wend.capture.guards.guards import Change, GuardSet

# A check of the guards takes a microsecond or two, a call five. So every call is checked at
# first; after each 16 checks their interval doubles, up to 64 calls.
_CHECKS_PER_DOUBLING, _MAX_CHECK_INTERVAL = 16, 64
# A trace without guards needs no checks; its calls are still counted, this many at a time.
_MAX_UNGUARDED_CALLS = 1024


class GuardSchedule:
    """The calls of a trace at which its guards are checked.

    Attributes:
        guards: the Python values that the trace read.
    """

    __slots__ = ("_calls_until_check", "_check_count", "_next_allowance", "guards")

    def __init__(self, guards: GuardSet) -> None:
        self.guards = guards
        self._check_count = self._calls_until_check = 0
        self._next_allowance = 0

    def is_due(self) -> bool:
        """Return whether to check the guards at this call."""
        if self._calls_until_check:
            self._calls_until_check -= 1
            return False
        self._check_count += 1
        self._calls_until_check = (
            min(_MAX_CHECK_INTERVAL, 2 ** (self._check_count // _CHECKS_PER_DOUBLING)) - 1
        )
        return True

    def allow_calls(self) -> int:
        """Return how many calls may run unchecked, and take them off the schedule.

        Without guards these are twice as many each time.
        """
        if self.guards.groups:
            allowance, self._calls_until_check = self._calls_until_check, 0
            return allowance
        allowance, self._next_allowance = (
            self._next_allowance,
            min(_MAX_UNGUARDED_CALLS, 2 * self._next_allowance or 1),
        )
        return allowance


def warn(category: type[Warning], text: str) -> None:
    """Warn at the user's line."""
    where = user_source()
    file, line = (where.file, where.line) if where is not None else (__file__, 1)
    warnings.warn_explicit(text, category, file, line)


class StaleTraceWarnings:
    """The warnings about changed values that one function has issued, one per name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._reported_names: set[str] = set()

    def warn_once(self, changes: Iterable[Change]) -> None:
        """Warn about the changes not reported yet."""
        new = [change for change in changes if change.name not in self._reported_names]
        if not new:
            return
        self._reported_names.update(change.name for change in new)
        headline = f"{self._name} still uses the values of its trace: {'; '.join(map(str, new))}."
        warn(
            StaleTraceWarning,
            explain(
                headline,
                cure="pass it as an argument, hold it in a wend.Variable, or let the function be "
                "traced anew: wend.config(watch_globals=True).",
            ),
        )
