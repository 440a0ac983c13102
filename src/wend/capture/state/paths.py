"""Tests whose outcome is part of a trace, since what follows has another structure on each path.

A branch is refused if its paths leave values of different structures. The refusal tells which test
decides. A trace for one outcome of it records the path that is taken
then, with a check that the test has this outcome; where it has not, the call needs another trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from wend.base import refusals
from wend.base.context_values import scoped
from wend.base.source import at, user_source
from wend.ir.op import Effect
from wend.numpy.elementwise import logical_not
from wend.trace.recording.recording import Recording, current

T = TypeVar("T")

# The line of a test, and how many tests of the line the trace has met before
Site = tuple[str, int]


class PathChanged(BaseException):
    """A test of a trace for one path has another outcome; the text is its number in the path."""


class TracedPath:
    """The tests of one trace.

    Attributes:
        decisions: the outcomes that the trace is for.
    """

    def __init__(self, decisions: Mapping[Site, bool]) -> None:
        self.decisions = dict(decisions)
        self._counts: Counter[str] = Counter()

    def next_site(self) -> Site:
        """Return the site of the test that the trace meets now."""
        where = at(user_source())
        self._counts[where] += 1
        return where, self._counts[where]


_path: ContextVar[TracedPath | None] = ContextVar("wend_path", default=None)


@contextmanager
def traced_path(path: TracedPath | None) -> Iterator[None]:
    """Trace with the outcomes of a path in a block."""
    with scoped(_path, path):
        yield


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
    if outcome is not None:
        number = [*path.decisions].index(site)
        is_other = logical_not(holds()) if outcome else holds()
        recording.emit_raise(PathChanged, str(number), is_other, [])
        return (then if outcome else other)()
    is_eligible = not _has_effects(recording)
    try:
        return record()
    except Exception as error:
        may_help = refusals.is_refusal(error) or isinstance(error, RecursionError)
        if may_help and is_eligible:
            error.deciding_test = site  # type: ignore[attr-defined]
        raise


def deciding_test(error: BaseException) -> Site | None:
    """Return the test whose outcome a trace needs instead of what was refused, if it may help."""
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
        if any(_effects(node) - {Effect.NONE, Effect.CHECK} for node in recording.b.nodes):
            return True
        recording = recording.parent
    return False


def _effects(node: Any) -> set[Effect]:
    return {node.op.effect}.union(*(region.effects() for region in node.regions))
