"""Calls of functions whose results have another structure on each path: a trace for each path."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

from wend.base.errors import StructureError, explain, listed
from wend.base.refusals import is_refusal, refusal
from wend.capture.state.paths import Decision, PathChanged, Site, deciding_test
from wend.function.cache import Trace
from wend.function.signature.signature import Arguments

Decisions = dict[Site, Decision]

_MAX_TESTS = 12  # whose outcomes are part of one trace
_MAX_PATHS = 32  # that are remembered for one signature, the latest first
_MAX_SIGNATURES = 256


class PathTraces:
    """The paths that the traces of one function are for, by the key of the arguments."""

    def __init__(self) -> None:
        self._paths: dict[Hashable, deque[Decisions]] = {}

    def has(self, key: Hashable) -> bool:
        """Return whether calls with such arguments are known to need a trace for each path."""
        return key in self._paths

    def run(
        self,
        arguments: Arguments,
        trace_for: Callable[[Arguments], Trace],
        run: Callable[[Trace], Any],
        failure: Exception | None = None,
    ) -> Any:
        """Run the trace for the path that these arguments take.

        Args:
            arguments: the arguments.
            trace_for: returns the trace for arguments on a path.
            run: runs a trace; a run for another path ends with `PathChanged` before any effect.
            failure: the refusal of a trace for all paths.

        Raises:
            Exception: `failure`, or what tracing a path raises.
        """
        paths = self._paths.get(arguments.key, deque(maxlen=_MAX_PATHS))
        known: Decisions = {}  # outcomes that a run of this call has shown
        remembered, following = [*paths], _first_decisions(failure)
        tried: list[Decisions] = []
        while True:
            remembered = [path for path in remembered if _agree(path, known)]
            decisions = remembered.pop(0) if remembered else following or known
            if decisions in tried or not 0 < len(decisions) <= _MAX_TESTS:
                raise failure or _too_many_tests()
            tried.append(decisions)
            following = None
            try:
                trace = trace_for(arguments.on_path(decisions))
            except PathChanged as changed:
                known = max(known, _shown(decisions, changed), key=len)
                continue
            except Exception as error:
                site = deciding_test(error)
                if not is_refusal(error):
                    raise
                if site is None:
                    raise failure or error from None
                # An integer that this trace needs before the one that it is to return comes first
                following = {k: v for k, v in decisions.items() if v is not None}
                following[site] = _first_decision(site)
                error.__traceback__ = None  # its frames hold objects of the user's
                continue
            note = f"for one path: {_described(decisions)}"
            trace.notes = trace.notes if note in trace.notes else (*trace.notes, note)
            is_whole = None not in decisions.values()
            if is_whole:
                self._remember(arguments.key, paths, decisions)
            try:
                result = run(trace)
            except PathChanged as changed:
                known = max(known, _shown(decisions, changed), key=len)
                continue
            if is_whole:
                return result
            known = {**decisions, [*decisions][-1]: int(result)}

    def _remember(self, key: Hashable, paths: deque[Decisions], decisions: Decisions) -> None:
        """Put a path first."""
        if decisions in paths:
            paths.remove(decisions)
        paths.appendleft(decisions)
        if key not in self._paths and len(self._paths) >= _MAX_SIGNATURES:
            self._paths.clear()
        self._paths[key] = paths


def _first_decisions(failure: Exception | None) -> Decisions | None:
    site = None if failure is None else deciding_test(failure)
    return None if site is None else {site: _first_decision(site)}


def _first_decision(site: Site) -> Decision:
    """Return what the first trace for a test or integer is for: one that returns the integer."""
    return None if site.is_integer else True


def _agree(path: Decisions, known: Decisions) -> bool:
    return all(path.get(site, outcome) == outcome for site, outcome in known.items())


def _shown(decisions: Decisions, changed: PathChanged) -> Decisions:
    """Return the outcomes of tests that a run on a path has shown: one is not that of the path."""
    number, *value = map(int, str(changed).split()[:2])
    before = dict([*decisions.items()][:number])
    site = [*decisions][number]
    return {**before, site: value[0] if site.is_integer else not decisions[site]}


def _too_many_tests() -> StructureError:
    what = f"more than {_MAX_TESTS} tests of traced values decide on the structure of a result."
    cure = "return one structure on all paths; write a recursion that such a test ends as a loop."
    return refusal(StructureError(explain(what, cure=cure)))


def _described(decisions: Decisions) -> str:
    return listed(_outcome(site, decision) for site, decision in decisions.items())


def _outcome(site: Site, decision: Decision) -> str:
    if not site.is_integer:
        return f"the test{site.where} {'holds' if decision else 'fails'}"
    if decision is None:
        return f"it returns the integer that Python needs{site.where}"
    return f"the integer that Python needs{site.where} is {decision}"
