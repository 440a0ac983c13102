"""The traces of one function: which serves a call, and why each was made."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wend.base.config import settings
from wend.base.source import Source, user_source
from wend.capture.guards.reads import Change, GuardSet, record_guards
from wend.function.concrete import ConcreteFunction
from wend.function.fast_path import FastPaths, LeafPlan
from wend.function.guard_checks import ChangeWarnings, GuardCheck
from wend.function.report import ArgumentSummary, given, nearest
from wend.function.retraces import Retraces
from wend.function.signature.keys import held_weakly, plain_key
from wend.function.signature.shape_relaxation import (
    Storage,
    all_unknown,
    merged,
    serves,
    unknown_places,
)
from wend.function.signature.signature import Arguments
from wend.function.tracing import Nested
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.recording import Recording, current

# One lock for all: functions that call each other are traced by one thread at a time, in any order.
TRACING = threading.RLock()

_REMEMBERED = 1024  # which trace serves a call: of that many signatures


@dataclass
class Trace:
    """One trace.

    Attributes:
        concrete: what was traced.
        given: what it was made for.
        family: equal for traces that differ in sizes only.
        reason: why it was made.
        where: the user's line that called.
        special: whether its unknown sizes may be 0 or 1: where the user asked for them.
        notes: what else there is to tell of it.
        is_used: whether it has served a call.
        needs_python: the backends for which no shortcut can be made.
        held: weak references to objects without which it is of no use.
        watch: looks whether the Python values that it read have changed.
    """

    concrete: ConcreteFunction
    given: ArgumentSummary
    family: Hashable
    reason: str
    where: Source | None
    special: bool = True
    notes: tuple[str, ...] = ()
    is_used: bool = False
    needs_python: set[str] = field(default_factory=set)
    held: list[Any] = field(default_factory=list)
    watch: GuardCheck = field(default_factory=lambda: GuardCheck(GuardSet()))

    def lines(self, number: int) -> list[str]:
        """The lines about it of `explain`."""
        at = f", at {self.where.short}" if self.where is not None else ""
        read, changes = self.watch.reads.texts(), self.watch.reads.changes()
        more = [f"reads {', '.join(read)}"] if read else []
        more += [f"goes on with what was: {change}" for change in changes]
        more += self.concrete.costs()
        return [f"{number}. {self.given}", *_indented(self.reason + at, *self.notes, *more)]


def _indented(*lines: str) -> list[str]:
    return [f"   {line}" for line in lines]


class TraceCache:
    """The traces of one function.

    Args:
        name: the function's, for messages.
        make: traces the function for arguments.
        policy: `reduce_retracing`: False: a trace for each shape; "auto": sizes that have differed
            become unknown; True: sizes are unknown from the first.
        fun: the Python function, if it is the user's.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[Arguments], ConcreteFunction],
        policy: bool | str = "auto",
        fun: Callable[..., Any] | None = None,
    ) -> None:
        self.name, self.make, self.policy = name, make, policy
        self.traces: dict[Hashable, Trace] = {}
        self.gone = 0  # traces whose objects are gone
        self.outdated = 0  # traces that read what has changed
        self._changes: list[Change] = []  # what had changed of the last of those
        self._told = ChangeWarnings(name)
        self.retraces = Retraces(name, fun)
        self._calls = self.retraces.calls
        self._serving: dict[Hashable, Trace] = {}  # calls that a more general trace serves
        self._plain: dict[Hashable, Trace] = {}  # those of arrays and numbers only
        self.fast_paths = FastPaths()
        self._refused: dict[Hashable, list[frozenset[Storage]]] = {}  # unknown sizes that fail
        self._last_gone: ArgumentSummary | None = None
        self._depth = 0  # how many traces are under way

    def count(self) -> int:
        """How many traces have been made."""
        return len(self.traces) + self.gone + self.outdated

    def find(self, key: Hashable) -> Trace | None:
        """The trace that is known to serve a key."""
        self._calls.count += 1
        found = self.traces.get(key) or self._serving.get(key)
        return found if found is not None and _is_alive(found.concrete) else None

    def find_by_shape(self, arguments: Sequence[Any]) -> Trace | None:
        """The trace that is known to serve arguments which are arrays and numbers, by position.

        Outside of other traces only.
        """
        found = self._plain.get(plain_key(arguments))
        if found is None or self.is_outdated(found):
            return None
        self._calls.count += 1
        return found

    def install_fast_path(self, trace: Trace, taken: LeafPlan, backend: str) -> None:
        """Let a trace that was found serve calls without being looked for; they count now."""
        here = settings()
        if not here.watch_globals:
            self._calls.count += self.fast_paths.renew(trace, taken, backend, here)

    def refresh_budget(self) -> bool:
        """Let shortcuts that have served as many calls as they may serve more, after a look."""
        spent = [x for x in self.fast_paths.spent() if not self.is_outdated(x.trace)]
        self._calls.count += sum(shortcut.allow_calls(1) for shortcut in spent)
        return bool(spent)

    def remember_plain(self, arguments: Sequence[Any], trace: Trace) -> None:
        """Note which trace serves such arguments."""
        key = plain_key(arguments)
        if key is not None and trace.concrete.traced.is_closed():
            if len(self._plain) >= _REMEMBERED:
                self._plain.clear()
            self._plain[key] = trace

    def is_outdated(self, trace: Trace, *, look: bool = False) -> bool:
        """Whether a trace was dropped, for Python values that it read have changed.

        Without `config(watch_globals=True)` it is kept, and a warning tells of them.

        Args:
            trace: the trace.
            look: whether to look at this call whatever happened at earlier ones.
        """
        drops = settings().watch_globals
        if not (drops or look or trace.watch.is_due()):
            return False
        changes = trace.watch.reads.changes()
        if not changes:
            return False
        if not drops:
            self._told.tell(changes)
            return False
        with TRACING:
            for key, found in self.traces.copy().items():
                if found is trace:
                    del self.traces[key]
                    self.outdated += 1
                    self._changes = changes
            self._serving.clear()
            self._plain.clear()
            self.fast_paths.clear()
        return True

    def tell_of_changes(self) -> None:
        """Look at all traces: a new one was made, so that looking costs nothing beside."""
        for trace in self.traces.copy().values():
            self.is_outdated(trace, look=True)

    def find_or_make(self, key: Hashable, arguments: Arguments) -> tuple[Trace, str | None]:
        """The trace that serves these arguments, and a warning if there are too many."""
        with TRACING:
            self._calls.count -= 1  # counted already
            found = self.find(key) or self._more_general(arguments)
            if found is not None:
                if key not in self.traces:
                    if len(self._serving) >= _REMEMBERED:
                        self._serving.clear()
                    self._serving[key] = found
                return found, None
            self._depth += 1
            try:
                with Nested(self):
                    made = self._make_general(key, arguments) or self._make(key, arguments, ())
            finally:
                self._depth -= 1
            if self._depth:
                return made, None  # it calls itself: that is one call of the user's
            return made, self.retraces.traced(made.reason)

    def _more_general(self, arguments: Arguments) -> Trace | None:
        """The trace with the fewest unknown sizes that takes the arguments."""
        found = [trace for trace in self._relatives(arguments) if _takes(trace, arguments)]
        return min(found, key=_unknowns, default=None)

    def _relatives(self, arguments: Arguments) -> list[Trace]:
        """Traces that differ in sizes only."""
        family = arguments.family
        return [
            trace
            for trace in self.traces.copy().values()
            if trace.family == family and trace.concrete.traced.is_closed()
        ]

    def _make_general(self, key: Hashable, arguments: Arguments) -> Trace | None:
        """A trace with unknown sizes for the arguments, if there can be one."""
        if key is None or not self.policy:
            return None
        refused = self._refused.setdefault(arguments.family, [])
        options = [
            types
            for types in self._generalised(arguments)
            if not any(places <= unknown_places(types) for places in refused)
        ]
        types = min(options, key=lambda types: len(unknown_places(types)), default=None)
        if types is None:
            return None
        general = arguments.with_types(types)
        try:
            return self._make(general.key, general, (), asked=arguments)
        except Exception as error:  # noqa: BLE001  # with known sizes it may do, or tell better
            refused.append(unknown_places(types))
            first = str(error).partition("\n")[0] or type(error).__name__
            note = f"its sizes stay known: with unknown ones, {type(error).__name__}: {first}"
            return self._make(key, arguments, (note,))

    def _generalised(self, arguments: Arguments) -> list[list[LeafType]]:
        relatives = self._relatives(arguments)
        if self.policy is True and not relatives:
            found = all_unknown(arguments.types)
            return [] if found is None else [found]
        merges = [merged(trace.concrete.input_types, arguments.types) for trace in relatives]
        return [types for types in merges if types is not None]

    def _make(
        self,
        key: Hashable,
        arguments: Arguments,
        notes: Sequence[str],
        *,
        asked: Arguments | None = None,
    ) -> Trace:
        """A new trace; `asked`: what was called with, where more than that is traced for."""
        where = user_source()
        with record_guards() as found:
            concrete = self.make(arguments)
        own = given(arguments)
        reason = self._reason(own if asked is None else given(asked))
        special = asked is None and current() is None  # within a trace sizes are not the user's
        trace = Trace(concrete, own, arguments.family, reason, where, special, (*notes,))
        trace.watch = GuardCheck(found.finished())
        if asked is not None:
            trace.notes += ("its unknown sizes may be any but 0 and 1: no new trace for those",)
        trace.notes += concrete.traced.notes
        this = weakref.ref(self)

        def forget(_: Any) -> None:
            cache = this()
            if cache is not None:
                cache._forget(key)

        trace.held = [held.when_gone(forget) for held in held_weakly(key)]
        self.traces[key] = trace
        return trace

    def _forget(self, key: Hashable) -> None:
        """Drop a trace whose objects are gone."""
        found = self.traces.pop(key, None)
        if found is not None:
            self.gone += 1
            self._last_gone = found.given
        self._serving.clear()
        self._plain.clear()
        self.fast_paths.clear()

    def _reason(self, own: ArgumentSummary) -> str:
        changes, self._changes = self._changes, []
        if changes:
            return f"what an earlier trace read has changed: {'; '.join(map(str, changes))}"
        earlier = [trace.given for trace in self.traces.copy().values()]
        gone = [] if self._last_gone is None else [self._last_gone]
        found = nearest(own, [*earlier, *gone])
        if found is None:
            return "the first trace"
        number, differences = found
        if not differences:
            return f"what trace {number + 1} captures belongs to an outer trace that has ended"
        which = f"trace {number + 1}" if number < len(earlier) else "one whose arguments are gone"
        return f"unlike {which}: {'; '.join(differences)}"

    def lines(self) -> list[str]:
        """What `explain` tells of the traces."""
        found = []
        for number, trace in enumerate(self.traces.copy().values(), 1):
            found += trace.lines(number)
        if self.gone:
            found.append(f"and {self.gone} whose arguments are gone")
        if self.outdated:
            found.append(f"and {self.outdated} that read what has changed")
        return found


def _takes(trace: Trace, arguments: Arguments) -> bool:
    types = trace.concrete.input_types
    return bool(unknown_places(types)) and serves(types, arguments.types, special=trace.special)


def _unknowns(trace: Trace) -> int:
    return len(unknown_places(trace.concrete.input_types))


def _is_alive(concrete: ConcreteFunction) -> bool:
    """Whether what a trace captures of outer traces can still be reached from here."""
    recording = current()
    for binding in concrete.traced.captured:
        if isinstance(binding, Tracer):
            if recording is None or binding.read() is not binding:
                return False
            outer: Recording | None = recording
            while outer is not None and outer is not binding.recording:
                outer = outer.parent
            if outer is None or not outer.is_open:
                return False
    return True
