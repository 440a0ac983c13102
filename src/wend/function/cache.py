"""The traces of one function: which one serves a call, and why each was made."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from wend.backends.protocol import ChecksGuards, choose
from wend.base import refusals
from wend.base.config import settings, traced_settings
from wend.base.keys import shape_key, weak_parts
from wend.base.lazy.dataclass import dataclass
from wend.base.locks import Rank, lock_of
from wend.base.source import Source, user_source
from wend.capture.builtins.world import check_call
from wend.capture.guards.guards import record_guards
from wend.capture.guards.operand_reads import OperandReads
from wend.capture.guards.reads import Change, GuardSet
from wend.function.closures.closure_key import closure_key_of
from wend.function.closures.shared_traces import find_shared, keep_values, operands_for, share
from wend.function.concrete import ConcreteFunction
from wend.function.fast_path import FastPaths, LeafPlan
from wend.function.report import ArgumentSummary, nearest, summarize
from wend.function.retraces import Retraces
from wend.function.signature.shape_relaxation import (
    ANY_RANK,
    Axis,
    fully_symbolic,
    merge_shapes,
    ranks_apart,
    subsumes,
    symbolic_axes,
    without_ranks,
)
from wend.function.signature.signature import Arguments
from wend.function.tracing import Tracing, trace_nested
from wend.runtime.array_boundary import foreign_boundaries
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.recording import current

# One lock for all functions, since they may call each other in any order: one thread traces at
# a time.
TRACING = lock_of(Rank.TRACING)

_MAX_RANKS = 2  # with traces of their own, where `reduce_retracing` is True
_MAX_LOOKUP_ENTRIES = 1024  # bounds the tables from signatures to traces
# For each key, traces whose guards fail are kept in case that what they read returns.
_MAX_STALE_TRACES = 8
_MAX_COMPARED_TRACES = 64  # of which the one most like a new one is named
# Most traces get a fast path first; for others it pays to check in compiled code.
_MIN_PYTHON_CHECKS = 9


@dataclass(eq=False)
class Trace:
    """One trace.

    Attributes:
        concrete: the concrete function.
        arguments: a summary of the arguments it was made for.
        family: equal for traces that differ in sizes only.
        reason: why it was made.
        call_site: the user's line that called the function.
        accepts_zero_one: whether its symbolic sizes may be 0 or 1, as those that the user declared.
        notes: further lines for `explain`.
        is_used: whether it has served a call.
        slow_calls: how many calls after the first it has served by way of Python.
        slow_backends: the backends for which no fast path can be built.
        weak_references: references to the objects that its key holds weakly.
        guards: the Python values that it read.
        key: the key that it was made for.
        checker: tells whether its guards hold, in compiled code.
        python_check_count: how often Python has checked the guards since that was made.
        is_counted: whether it was made; False: it stands for another one, with other objects.
        graphs: what it shares with traces of other functions, which it keeps alive.
        has_operands: whether it takes floats of closures and globals as operands.
        is_general: whether it leaves sizes or ranks unknown.
    """

    concrete: ConcreteFunction
    arguments: ArgumentSummary
    family: Hashable
    reason: str
    call_site: Source | None
    accepts_zero_one: bool = True
    notes: tuple[str, ...] = ()
    is_used: bool = False
    slow_calls: int = 0
    slow_backends: set[str] = field(default_factory=set)
    weak_references: list[Any] = field(default_factory=list)
    guards: GuardSet = field(default_factory=GuardSet)
    key: Hashable = None
    checker: Callable[[], bool] | None = None
    python_check_count: int = 0
    is_counted: bool = True
    graphs: Any = None
    has_operands: bool = False
    is_general: bool = field(init=False)
    _family_hash: int = field(init=False)

    def __post_init__(self) -> None:
        # A new signature is compared with all traces.
        types = self.concrete.input_types
        has_unknown_rank = any(type.type.shape is None for type in types)
        self.is_general = has_unknown_rank or bool(symbolic_axes(types))
        self._family_hash = hash(self.family)

    def is_of(self, family: Hashable) -> bool:
        """Return whether it differs from arguments of a family in sizes only."""
        return self._family_hash == hash(family) and self.family == family

    def holds(self) -> bool:
        """Return whether its guards hold."""
        if self.checker is not None and self.checker():
            return True
        if not self.guards.hold():
            return False
        self.python_check_count += 1
        if self.python_check_count >= _MIN_PYTHON_CHECKS:
            self.python_check_count = 0
            backend = choose(self.concrete.backend or settings().backend)
            checks = self.guards.checks() if isinstance(backend, ChecksGuards) else None
            if checks and isinstance(backend, ChecksGuards):
                self.checker = backend.guard_checker(checks)
        return True

    def lines(self, number: int) -> list[str]:
        """Return its lines in `explain`."""
        site_text = f", at {self.call_site.short}" if self.call_site is not None else ""
        guard_texts = self.guards.texts()
        details = [f"reads {', '.join(guard_texts)}"] if guard_texts else []
        details += [f"has read what has changed: {change}" for change in self.guards.changes()]
        details += self.concrete.costs()
        return [
            f"{number}. {self.arguments}",
            *_indented(self.reason + site_text, *self.notes, *details),
        ]


def _indented(*lines: str) -> list[str]:
    return [f"   {line}" for line in lines]


class TraceCache:
    """The traces of one function.

    Args:
        name: the name of the function, for messages.
        build: traces the function for arguments.
        policy: `reduce_retracing`. False: one trace per shape; "auto": sizes that have differed
            become symbolic; True: sizes are symbolic from the first trace, ranks from the third.
        fun: the Python function, if it is the user's.

    Attributes:
        traces: the traces by the key of their arguments.
        expired_count: the number of traces dropped because an object in their key was collected.
        invalidated_count: the number of traces dropped because a guard failed, and others since.
        retraces: the counter of calls and traces.
        fast_paths: the fast paths of the traces.
    """

    def __init__(
        self,
        name: str,
        build: Tracing,
        policy: bool | str = "auto",
        fun: Callable[..., Any] | None = None,
    ) -> None:
        self.name, self.build, self.policy = name, build, policy
        self.traces: dict[Hashable, Trace] = {}
        self._stale_traces: dict[Hashable, deque[Trace]] = {}  # by key, the oldest first
        self.expired_count = 0
        self.invalidated_count = 0
        self._invalidating_changes: list[Change] = []  # for the reason of the next trace
        self.retraces = Retraces(name, fun)
        self._calls = self.retraces.calls
        self._general_traces: dict[Hashable, Trace] = {}  # keys that a more general trace accepts
        self._by_shape: dict[Hashable, Trace] = {}  # for calls with arrays and numbers only
        self.fast_paths = FastPaths()
        # By family: the sets of axes that could not be made symbolic
        self._unrelaxable: dict[Hashable, list[frozenset[Axis]]] = {}
        self._last_expired: ArgumentSummary | None = None
        self._trace_depth = 0  # how deeply this function is being traced

    def count(self) -> int:
        """Return how many traces have been made."""
        return _counted(self.traces.values()) + self.expired_count + self._outdated_count()

    def _outdated_count(self) -> int:
        return self.invalidated_count + sum(map(_counted, self._stale_traces.copy().values()))

    def find(self, key: Hashable) -> Trace | None:
        """Return the trace that is known to accept a key, if its guards hold."""
        self._calls.in_python += 1
        trace = self.traces.get(key) or self._general_traces.get(key)
        return self._valid(trace) if trace is not None and trace.concrete.is_alive() else None

    def knows(self, key: Hashable) -> bool:
        """Return whether a trace is known for a key, whether or not its guards hold."""
        return key in self.traces or key in self._general_traces

    def find_by_shape(self, arguments: Sequence[Any]) -> Trace | None:
        """Return the trace known to accept positional arguments that are all arrays and numbers.

        Only for calls outside of other traces.
        """
        key = _shape_key(arguments)
        trace = self._by_shape.get(key)
        if trace is None:
            return None
        valid = self._valid(trace)
        if valid is None:
            return None
        if valid is not trace:
            self._by_shape[key] = valid
        self._calls.in_python += 1
        return valid

    def traces_of(self, key: Hashable) -> list[Trace]:
        """Return the traces for a key, the one that serves it now last."""
        return [*self._stale_traces.get(key, ()), *filter(None, [self.traces.get(key)])]

    def install_fast_path(self, trace: Trace, plan: LeafPlan, backend: str) -> None:
        """Allow direct calls into the code of a trace, whose guards hold."""
        self.fast_paths.install(trace, plan, backend, self._calls.compiled)

    def remember_by_shape(self, arguments: Sequence[Any], trace: Trace) -> None:
        """Record which trace serves such arguments."""
        key = _shape_key(arguments)
        if key is not None and trace.concrete.traced.is_closed():
            if len(self._by_shape) >= _MAX_LOOKUP_ENTRIES:
                self._by_shape.clear()
            self._by_shape[key] = trace

    def _valid(self, trace: Trace) -> Trace | None:
        """Return the trace, or another one for its key, whose guards hold; None if none has some.

        `config(guards=False)` takes the trace as it is.
        """
        if not settings().guards or trace.holds():
            return trace
        with TRACING:
            stale_traces = self._stale_traces.get(trace.key, ())
            for other in (self.traces.get(trace.key), *reversed(stale_traces)):
                if other is None or other is trace or not other.concrete.is_alive():
                    continue
                if other.holds():
                    self._make_current(other)
                    return other
            self._invalidating_changes = trace.guards.changes()
        return None

    def _make_current(self, trace: Trace) -> None:
        """Make a trace serve its key, in place of one whose guards fail."""
        earlier = self.traces.get(trace.key)
        if earlier is trace:
            return
        stale_traces = self._stale_traces.setdefault(trace.key, deque())
        if trace in stale_traces:
            stale_traces.remove(trace)
        self.traces[trace.key] = trace
        if earlier is not None and not earlier.holds():
            stale_traces.append(earlier)
        if len(stale_traces) > _MAX_STALE_TRACES:
            oldest = stale_traces.popleft()
            self._forget(oldest)
            self.invalidated_count += oldest.is_counted

    def _forget(self, trace: Trace) -> None:
        """Remove a trace from the tables of traces that serve calls."""
        for table in (self._general_traces, self._by_shape):
            for key, other in table.copy().items():
                if other is trace:
                    table.pop(key, None)
        self.fast_paths.remove(trace)

    def _all_traces(self) -> Iterator[Trace]:
        """Yield all traces, those whose guards fail too."""
        yield from self.traces.copy().values()
        for stale_traces in self._stale_traces.copy().values():
            yield from stale_traces.copy()

    def find_or_trace(
        self, key: Hashable, arguments: Arguments, function: Any = None
    ) -> tuple[Trace, str | None]:
        """Return the trace for these arguments, and a warning if there are too many.

        `function`: the `wend.function`, if others may share its traces.
        """
        with TRACING:
            self._calls.in_python -= 1  # `find` counts the call again
            self._invalidating_changes = []
            trace = self.find(key) or self._find_general(arguments)
            if trace is None and function is not None:
                trace = self._find_shared(function, key, arguments)
            if trace is not None:
                if key not in self.traces:
                    if len(self._general_traces) >= _MAX_LOOKUP_ENTRIES:
                        self._general_traces.clear()
                    self._general_traces[key] = trace
                return trace, None
            self._trace_depth += 1
            try:
                new_trace = trace_nested(
                    self,
                    lambda: (
                        self._trace_with_operands(function, key, arguments)
                        or self._trace_general(key, arguments, function)
                        or self._add_trace(key, arguments, (), function)
                    ),
                )
            finally:
                self._trace_depth -= 1
            if self._trace_depth or arguments.path:
                return new_trace, None  # no call of the user's, or one path of several
            return new_trace, self.retraces.traced(new_trace.reason)

    def _find_shared(self, function: Any, key: Hashable, arguments: Arguments) -> Trace | None:
        """Return the trace of another function of the same code, for the objects of this one."""
        closure_key = closure_key_of(function, arguments)
        bound = None if closure_key is None else find_shared(closure_key, arguments)
        if bound is None:
            return None
        shared = bound.shared
        if shared.types != arguments.types:
            arguments = arguments.with_types(shared.types)
            key = None if key is None else arguments.key
        concrete = self.build.concrete(bound.traced, arguments, bound.graphs.compiled)
        trace = Trace(
            concrete,
            summarize(arguments),
            arguments.family,
            "the trace of another function with the same code",
            user_source(),
            shared.accepts_zero_one,
            shared.notes,
        )
        trace.guards, trace.graphs, trace.key = bound.guards, bound.graphs, key
        trace.has_operands, trace.is_counted = True, shared.origin() is not self
        self._add(trace)
        return trace

    def _trace_with_operands(
        self, function: Any, key: Hashable, arguments: Arguments
    ) -> Trace | None:
        """Return a new trace in which floats that differ from earlier ones are operands."""
        closure_key = None if function is None else closure_key_of(function, arguments)
        operands = None if closure_key is None else operands_for(closure_key, arguments)
        if closure_key is None or operands is None:
            return None
        try:
            with refusals.tentative():
                return self._trace_general(key, arguments, function, operands) or self._add_trace(
                    key, arguments, (), function, operands
                )
        except Exception:  # noqa: BLE001  # their values may work, or give a better error
            keep_values(closure_key, operands.places())
            return None

    def _find_general(self, arguments: Arguments) -> Trace | None:
        """Return the trace with the fewest symbolic sizes that accepts the arguments."""
        family = arguments.family
        candidates = [
            trace
            for trace in self._all_traces()
            if trace.is_general
            and _is_of_family(trace, family)
            and trace.concrete.traced.is_closed()
            and _accepts(trace, arguments)
        ]
        for trace in sorted(candidates, key=_symbol_count):
            if not settings().guards or trace.holds():
                self._make_current(trace)
                return trace
        return None

    def _same_family(self, arguments: Arguments) -> list[Trace]:
        """Return the traces that differ from the arguments in sizes only."""
        family = arguments.family
        return [
            trace
            for trace in self._all_traces()
            if trace.is_of(family) and trace.concrete.traced.is_closed()
        ]

    def _trace_general(
        self,
        key: Hashable,
        arguments: Arguments,
        function: Any,
        operands: OperandReads | None = None,
    ) -> Trace | None:
        """Return a new trace with symbolic sizes for the arguments, if there can be one."""
        if key is None or not self.policy:
            return None
        unrelaxable = self._unrelaxable.setdefault(arguments.family, [])
        candidates = [
            types
            for types in self._relaxed_types(arguments)
            if not any(axes <= symbolic_axes(types) for axes in unrelaxable)
        ]
        types = min(candidates, key=lambda types: len(symbolic_axes(types)), default=None)
        types = self._types_of_any_rank(arguments) or types
        if types is None:
            return None
        general_arguments = arguments.with_types(types)
        try:
            with refusals.tentative():
                return self._add_trace(
                    general_arguments.key,
                    general_arguments,
                    (),
                    function,
                    operands,
                    requested=arguments,
                )
        except Exception as error:  # noqa: BLE001  # known sizes may work, or give a better error
            if any(type.type.shape is None for type in types):
                unrelaxable.append(ANY_RANK)
                return self._trace_general(key, arguments, function, operands)
            unrelaxable.append(symbolic_axes(types))
            first_line = str(error).partition("\n")[0] or type(error).__name__
            note = f"its sizes stay known: with unknown ones, {type(error).__name__}: {first_line}"
            return self._add_trace(key, arguments, (note,), function, operands)

    def _types_of_any_rank(self, arguments: Arguments) -> list[LeafType] | None:
        """Return the types with unknown ranks for those that differ, from the third rank on."""
        if self.policy is not True or ANY_RANK in self._unrelaxable.get(arguments.family, ()):
            return None
        others = {trace.family for trace in self._all_traces()}
        apart = [leaves for family in others if (leaves := ranks_apart(family, arguments.family))]
        if len(apart) < _MAX_RANKS:
            return None
        return without_ranks(arguments.types, {leaf for leaves in apart for leaf in leaves})

    def _relaxed_types(self, arguments: Arguments) -> list[list[LeafType]]:
        """Return candidates for the types of a more general trace."""
        relatives = [trace.concrete.input_types for trace in self._same_family(arguments)]
        merged_types = [merge_shapes(types, arguments.types) for types in relatives]
        if self.policy is True and not any(merged_types):
            merged_types = [fully_symbolic(arguments.types, *relatives[-1:])]
        return [types for types in merged_types if types is not None]

    def _add_trace(
        self,
        key: Hashable,
        arguments: Arguments,
        notes: Sequence[str],
        function: Any = None,
        operands: OperandReads | None = None,
        *,
        requested: Arguments | None = None,
    ) -> Trace:
        """Make a trace.

        `function` is the `wend.function`, if others may share the trace; `operands` are floats of
        outside that are operands; `requested` are the arguments of the call if `arguments` are
        more general.
        """
        call_site = user_source()
        closure_key = None if function is None else closure_key_of(function, arguments)
        dropped_count = self.build.dropped
        with record_guards(check_call, operands) as guards:
            concrete = self.build(arguments)
        summary = summarize(arguments)
        reason = self._reason(summary if requested is None else summarize(requested))
        if arguments.path:
            reason = "another path through the function, whose result may have another structure"
        # Within another trace symbolic sizes come from that trace, not from the user.
        accepts_zero_one = requested is None and current() is None
        trace = Trace(
            concrete, summary, arguments.family, reason, call_site, accepts_zero_one, (*notes,)
        )
        trace.guards, trace.key, trace.has_operands = guards.finished(), key, operands is not None
        if any(type.type.shape is None for type in concrete.input_types) and requested is not None:
            trace.notes += ("unknown ranks may be any: no new trace for those",)
        elif requested is not None:
            trace.notes += ("its unknown sizes may be any but 0 and 1: no new trace for those",)
        trace.notes += concrete.traced.notes
        self._add(trace)
        if closure_key is not None and self.build.dropped == dropped_count:
            after = closure_key_of(function, arguments)
            if after is not None and after.value == closure_key.value:
                share(trace, guards, closure_key, origin=self)
        return trace

    def _add(self, trace: Trace) -> None:
        """Make a trace serve its key until an object in that is collected."""
        key, cache_reference = trace.key, weakref.ref(self)

        def expire(_: Any) -> None:
            cache = cache_reference()
            if cache is not None:
                cache._expire(key)

        trace.weak_references = [part.on_collection(expire) for part in weak_parts(key)]
        self._make_current(trace)

    def include(
        self,
        concrete: ConcreteFunction,
        arguments: Arguments,
        *,
        keyed: bool,
        reason: str,
        accepts_zero_one: bool,
    ) -> None:
        """Add a trace that was made before, by another process perhaps.

        Args:
            concrete: the concrete function.
            arguments: the arguments that it was made for.
            keyed: whether the function has a trace for each signature.
            reason: where it comes from.
            accepts_zero_one: whether its symbolic sizes may be 0 or 1.
        """
        summary, notes = summarize(arguments), concrete.traced.notes
        trace = Trace(concrete, summary, arguments.family, reason, None, accepts_zero_one, notes)
        trace.key = arguments.key if keyed else None
        self._make_current(trace)

    def valid_traces(self) -> list[Trace]:
        """Return the traces whose guards hold and that depend on no other trace."""
        return [
            trace
            for trace in self.traces.copy().values()
            if trace.concrete.traced.is_closed() and trace.holds()
        ]

    def _expire(self, key: Hashable) -> None:
        """Drop the traces of a key after an object in it was collected."""
        expired = [*self._stale_traces.pop(key, ())]
        trace = self.traces.pop(key, None)
        if trace is not None:
            expired.append(trace)
            self._last_expired = trace.arguments
        self.expired_count += _counted(expired)
        for trace in expired:
            self._forget(trace)

    def _reason(self, summary: ArgumentSummary) -> str:
        changes, self._invalidating_changes = self._invalidating_changes, []
        if changes:
            return f"what an earlier trace read has changed: {'; '.join(map(str, changes))}"
        earlier = [trace.arguments for trace in self.traces.copy().values()]
        expired = [] if self._last_expired is None else [self._last_expired]
        first = max(0, len(earlier) - _MAX_COMPARED_TRACES)
        nearest_trace = nearest(summary, [*earlier[first:], *expired])
        if nearest_trace is None:
            return "the first trace"
        number, differences = first + nearest_trace[0], nearest_trace[1]
        if not differences:
            return f"what trace {number + 1} captures belongs to an outer trace that has ended"
        other = f"trace {number + 1}" if number < len(earlier) else "one whose arguments are gone"
        return f"unlike {other}: {'; '.join(differences)}"

    def lines(self) -> list[str]:
        """Return the lines of `explain` about the traces."""
        output = []
        traces = [trace for trace in self.traces.copy().values() if trace.is_counted]
        for number, trace in enumerate(traces, 1):
            output += trace.lines(number)
        if self.expired_count:
            output.append(f"and {self.expired_count} whose arguments are gone")
        if outdated_count := self._outdated_count():
            output.append(f"and {outdated_count} that read what has changed")
        return output


def _counted(traces: Iterable[Trace]) -> int:
    """Return how many of the traces were made by their function, or as its first."""
    return sum(trace.is_counted for trace in [*traces])


def _is_of_family(trace: Trace, family: Hashable) -> bool:
    """Return whether a trace differs from arguments in sizes, or in ranks it leaves unknown."""
    if trace.is_of(family):
        return True
    leaves = ranks_apart(trace.family, family)
    types = trace.concrete.input_types
    return bool(leaves) and all(types[leaf].type.shape is None for leaf in leaves)


def _accepts(trace: Trace, arguments: Arguments) -> bool:
    types = trace.concrete.input_types
    return subsumes(types, arguments.types, accepts_zero_one=trace.accepts_zero_one)


def _symbol_count(trace: Trace) -> int:
    return len(symbolic_axes(trace.concrete.input_types))


def _shape_key(arguments: Sequence[Any]) -> Hashable:
    """Return a key of the arguments and of the settings that a trace reads, or None."""
    key, in_force = shape_key(arguments, foreign_boundaries()), settings()
    is_plain = in_force.memory == "keep" and in_force.tape_limit is None
    return key if key is None or is_plain else (key, traced_settings())
