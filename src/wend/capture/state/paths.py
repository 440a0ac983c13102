"""Tests and integers whose values are part of a trace, since structure depends on them.

A branch is refused if its paths leave values of different structures. The refusal tells which test
decides. A trace for one outcome of it records the path that is taken
then, with a check that the test has this outcome; where it has not, the call needs another trace.

An integer that Python needs, as the length of a list, is refused likewise. A trace that ends there
returns the number; the next one is for this number, and checks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from wend.base import refusals
from wend.base.context_values import scoped
from wend.base.source import at, user_source
from wend.ir.graph import Value
from wend.numpy.elementwise import logical_not, not_equal
from wend.trace.arrays.decided_integers import deciding_integers
from wend.trace.arrays.provenance import source_arguments
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, current

T = TypeVar("T")


class Site(NamedTuple):
    """A test, or an integer that Python needs.

    Attributes:
        where: the line.
        number: how many tests of the line the trace has met, with this one; of an integer, its
            position among the values of the trace.
        is_integer: whether it is an integer.
    """

    where: str
    number: int
    is_integer: bool = False


# What a trace is for: outcomes of tests and values of integers; None where it ends, and returns one
Decision = bool | int | None


class PathChanged(BaseException):
    """A test or integer of a trace for one path has another value.

    The text is its number in the path, and for an integer its value. What the run has changed of
    the arguments so far is dropped: the run for another path starts from what was passed.
    """

    drops_contents = True


class IntegerReached(BaseException):
    """A trace has reached the integer that it is to return."""

    def __init__(self, integer: Tracer) -> None:
        super().__init__()
        self.integer = integer


class TracedPath:
    """The tests and integers of one trace.

    Attributes:
        decisions: the values that the trace is for.
    """

    def __init__(self, decisions: Mapping[Site, Decision]) -> None:
        self.decisions = dict(decisions)
        self._counts: Counter[str] = Counter()
        self._positions = {
            site.number: number
            for number, site in enumerate(self.decisions)
            if len(site) > 2 and site.is_integer
        }
        self._checked: set[Value] = set()

    def next_site(self) -> Site:
        """Return the site of the test that the trace meets now."""
        where = at(user_source())
        self._counts[where] += 1
        return Site(where, self._counts[where])

    # The integers that Python needs
    def value_of(self, integer: Tracer) -> int | None:
        """Return the value of an integer that is part of the trace; None of others."""
        if not self._positions:
            return None
        value, recording = _outermost(integer)
        position = None if recording is None else _position(value, recording)
        if recording is None or position not in self._positions or _has_effects(recording):
            return None
        number = self._positions[position]
        decision = [*self.decisions.values()][number]
        if decision is None:
            raise IntegerReached(recording.wrap(value, weak=True))
        if value not in self._checked:
            self._checked.add(value)
            with recording.active():
                x = recording.wrap(value, weak=True)
                text = f"{number} {{}}"
                recording.emit_raise(PathChanged, text, not_equal(x, int(decision)), [x])
        return int(decision)

    def mark(self, error: Exception, integer: Tracer) -> None:
        """Note on the refusal of an integer that a trace for its value may help.

        One that was computed from integer arguments alone is not marked: they can be static.
        """
        value, recording = _outermost(integer)
        if recording is None or source_arguments(value, recording):
            return
        if not _has_effects(recording):
            site = Site(at(user_source()), _position(value, recording), is_integer=True)
            error.deciding_test = site  # type: ignore[attr-defined]


def _outermost(integer: Tracer) -> tuple[Value, Recording | None]:
    """Return a value with its recording, if it is computed once, outside loops and branches."""
    value = integer.value
    recording: Any = integer.recording
    while recording.is_region:
        outer = recording.outer_value(value)
        if outer is None or recording.parent is None:
            return value, None
        value, recording = outer, recording.parent
    return value, recording if _runs_once(recording) and _is_current(recording) else None


def _is_current(recording: Recording) -> bool:
    """Return whether a function's recording goes on, perhaps in its loops and branches."""
    innermost = current()
    while innermost is not None and innermost.is_region:
        innermost = innermost.parent
    return innermost is recording


def _position(value: Value, recording: Recording) -> int:
    """Return the position of a value among those of a recording."""
    if value.node is None:
        params = recording.b.params
        return -1 - next(k for k, param in enumerate(params) if param is value)
    return next(k for k, node in enumerate(recording.b.nodes) if node is value.node)


_path: ContextVar[TracedPath | None] = ContextVar("wend_path", default=None)


@contextmanager
def traced_path(path: TracedPath | None) -> Iterator[None]:
    """Trace with the outcomes of a path in a block."""
    with scoped(_path, path), deciding_integers(path):
        yield


_is_mapped: ContextVar[bool] = ContextVar("wend_is_mapped", default=False)


def tracing_element() -> AbstractContextManager[object]:
    """Trace what each element of a `vmap` does in a block."""
    return scoped(_is_mapped, True)


# In each of the traces for one path that follow, since one for all paths has had no end
_MAX_RECURSION = 24


def check_recursion(role: str, recording: Recording | None) -> None:
    """Check that a recording for one path is not nested too deeply in others of the same role.

    Raises:
        RecursionError: it is.
    """
    path, depth = _path.get(), 0
    if path is None or not path.decisions:
        return  # Python's limit holds
    while recording is not None and recording.is_region:
        depth += recording.role == role
        recording = recording.parent
    if depth >= _MAX_RECURSION:
        raise RecursionError(role)


def is_mapped() -> bool:
    """Return whether each element of a `vmap` does what is traced: tests may differ in outcome."""
    return _is_mapped.get()


def decided(
    holds: Callable[[], Any],
    then: Callable[[], T],
    other: Callable[[], T],
    record: Callable[[], T],
) -> T:
    """Run one arm of a branch on a traced test if its outcome is part of the trace; else record it.

    `holds` gives the truth of the test.
    A refusal of what is recorded tells the test, if its outcome may become part of a trace.
    """
    path, recording = _path.get(), current()
    if path is None or recording is None or not _runs_once(recording):
        return record()
    site = path.next_site()
    outcome = path.decisions.get(site)
    is_eligible = not _has_effects(recording)
    if outcome is not None and is_eligible:  # outside may have changed since it was decided
        number = [*path.decisions].index(site)
        is_other = logical_not(holds()) if outcome else holds()
        recording.emit_raise(PathChanged, str(number), is_other, [])
        return (then if outcome else other)()
    try:
        return record()
    except Exception as error:
        may_help = refusals.is_refusal(error) or isinstance(error, RecursionError)
        if may_help and is_eligible and deciding_test(error) is None:
            error.deciding_test = site  # type: ignore[attr-defined]
        raise


def decided_truth(test: Any) -> tuple[bool | None, Site | None]:
    """Return the outcome of a traced test that Python needs, if it is part of the trace.

    Otherwise the site of the test, if its outcome may become part of a trace.
    """
    path, recording = _path.get(), current()
    if path is None or recording is None or not _runs_once(recording):
        return None, None
    site = path.next_site()
    if _has_effects(recording):
        return None, None
    outcome = path.decisions.get(site)
    if outcome is None:
        return None, site
    number = [*path.decisions].index(site)
    recording.emit_raise(PathChanged, str(number), logical_not(test) if outcome else test, [])
    return bool(outcome), None


def may_decide() -> bool:
    """Return whether the outcome of a test that is met now may become part of the trace."""
    recording = current()
    if _path.get() is None or _is_mapped.get():
        return False
    return _runs_once(recording) and not _has_effects(recording)


def ends_without_path() -> bool:
    """Return whether no trace of another path can go on for a run that stops at the end of this.

    It is one of a function that another calls, or its runs have had effects.
    """
    recording = current()
    if recording is None or _is_mapped.get():
        return False
    return _path.get() is None or _has_effects(recording)


def deciding_test(error: BaseException) -> Site | None:
    """Return the test or integer that a trace needs instead of what was refused, if it may help."""
    site: Site | None = getattr(error, "deciding_test", None)
    return site


def keep_deciding_test(error: BaseException, refusal: BaseException) -> None:
    """Copy the test that an error tells to the refusal that is raised in its place."""
    site = deciding_test(error)
    if site is not None:
        refusal.deciding_test = site  # type: ignore[attr-defined]


def _runs_once(recording: Recording | None) -> bool:
    """Return whether no loop, branch or map is being recorded."""
    while recording is not None:
        if recording.is_region:
            return False
        recording = recording.parent
    return True


def _has_effects(recording: Recording | None) -> bool:
    """Return whether a run that stops here would be noticed."""
    while recording is not None:
        arguments = zip(recording.arguments, recording.b.params, strict=False)
        if any(argument.value is not param for argument, param in arguments):
            return True
        if recording.variables.assigned():
            return True
        if recording.noticed:
            return True
        recording = recording.parent
    return False
