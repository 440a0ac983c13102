"""Traces that go on with Python values which have changed since."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from wend.base.errors import StaleTraceWarning, explain
from wend.base.source import user_source
from wend.capture.guards.reads import Change, GuardSet

# Looking takes a microsecond or two, a call five. So every call looks at first, later few do.
_OFTEN, _AT_LEAST = 16, 64
_AT_MOST = 1024  # calls that are counted at a time, where nothing was read


class GuardCheck:
    """Says at which calls of a trace one looks whether what it read has changed."""

    __slots__ = ("_granted", "_looks", "_waits", "reads")

    def __init__(self, reads: GuardSet) -> None:
        self.reads = reads
        self._looks = self._waits = 0
        self._granted = 0

    def is_due(self) -> bool:
        """Whether to look at this call."""
        if self._waits:
            self._waits -= 1
            return False
        self._looks += 1
        self._waits = min(_AT_LEAST, 2 ** (self._looks // _OFTEN)) - 1
        return True

    def allow_calls(self) -> int:
        """How many calls may go by without asking: where there is no look, each time more."""
        if self.reads.groups:
            waits, self._waits = self._waits, 0
            return waits
        granted, self._granted = self._granted, min(_AT_MOST, 2 * self._granted or 1)
        return granted


def warn(category: type[Warning], text: str) -> None:
    """Warn at the user's line."""
    where = user_source()
    file, line = (where.file, where.line) if where is not None else (__file__, 1)
    warnings.warn_explicit(text, category, file, line)


class ChangeWarnings:
    """What one function has warned of: each name once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._names: set[str] = set()

    def tell(self, changes: Iterable[Change]) -> None:
        """Warn of what is new."""
        new = [change for change in changes if change.name not in self._names]
        if not new:
            return
        self._names.update(change.name for change in new)
        first = (
            f"{self._name} goes on with what Python held when it was traced: "
            f"{'; '.join(map(str, new))}."
        )
        warn(
            StaleTraceWarning,
            explain(
                first,
                cure="pass it as an argument, hold it in a wend.Variable, or let the function be "
                "traced anew: wend.config(watch_globals=True).",
            ),
        )
