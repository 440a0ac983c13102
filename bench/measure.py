"""Runs a workload on peers that take turns."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench import reference
from bench.figures import Figure, Results
from bench.remote import RefusedError, Remote
from bench.workload import (
    FIRST_GRADIENT,
    FIRST_VALUE,
    GRADIENT,
    IMPORT,
    LATER_GRADIENT,
    MEMORY,
    PROGRAM_OF,
    VALUE,
    Workload,
)

SAMPLE = 0.02  # seconds that a sample lasts at least
WARMING = 20  # calls before they are timed
MAX_GROWTH = 10  # times as many calls at most as in the sample before
QUICK = 0.1  # seconds of a call that may be made once more, to fill caches before a sample
KEEP_PROGRAMS = ("wend", "wend-jax")  # peers that are measured with a cache on disk
WARM, FIRST = (VALUE, GRADIENT), (FIRST_VALUE, FIRST_GRADIENT)


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure.

    Attributes:
        interpreters: peers → the Python that has them.
        runs: how many rounds.
        patience: seconds after which a peer is given up.
        clock: "wall", or "cpu" on a machine that is shared.
        core: the core that everyone is kept on; None: any.
        budget: seconds that the rounds of one program may take; a slow one has fewer of them.
        small: take the small arguments.
    """

    interpreters: Mapping[str, str]
    runs: int = 9
    patience: float = 60.0
    core: int | None = None
    clock: str = "wall"
    budget: float = 20.0
    small: bool = False


class Seat:
    """One peer at one workload."""

    def __init__(self, workload: Workload, peer: str, plan: Plan, results: Results) -> None:
        self.workload, self.peer, self.plan, self.results = workload, peer, plan, results
        self.rounds: dict[str, int] = {}

    @contextmanager
    def figure(self, measure: str) -> Iterator[Figure]:
        """The figure to fill; it says so when the peer refuses."""
        figure = self.results.figures[measure].setdefault(self.peer, Figure())
        try:
            yield figure
        except RefusedError as error:
            self.rounds.pop(measure, None)
            figure.samples.clear()
            figure.refuses = str(error)
            if not figure.refuses:
                del self.results.figures[measure][self.peer]

    def start(self, cache: str = "") -> Remote:
        """Start a process, and import the peer; what it compiles it keeps in a folder, if any."""
        interpreter, plan = self.plan.interpreters[self.peer], self.plan
        remote = Remote(
            interpreter, self.workload.name, self.peer, plan.core, plan.patience, plan.clock, cache
        )
        try:
            loaded = remote.ask("load")
        except RefusedError:
            remote.close()
            raise
        remote.import_seconds = loaded["seconds"]
        self.results.versions[self.peer] = loaded["version"]
        return remote

    def prepare(self, remote: Remote, measure: str) -> None:
        """Make a program, check its answer, and find out how long a call takes."""
        with self.figure(measure) as figure:
            figure.note = remote.ask("make", measure=measure, small=self.plan.small)["note"]
            first = remote.ask("call", small=self.plan.small)
            self.judge(figure, first["answer"])
            seconds = self.calibrate(remote, figure, quick=first["seconds"] < QUICK)
            if seconds >= QUICK:
                figure.samples.append(seconds)
            affordable = int(self.plan.budget / max(seconds * figure.calls, 1e-9))
            self.rounds[measure] = max(1, min(self.plan.runs, affordable))

    def calibrate(self, remote: Remote, figure: Figure, quick: bool) -> float:
        """Find how many calls a sample needs, and return the seconds that one of them takes."""
        figure.calls = 1
        seconds = remote.ask("time", calls=1, warm=quick)["seconds"]
        if seconds >= QUICK:
            return float(seconds)
        # What a peer compiles after some calls is no part of a sample.
        remote.ask("time", calls=WARMING, warm=False)
        while True:
            seconds = remote.ask("time", calls=figure.calls, warm=True)["seconds"]
            if seconds >= SAMPLE:
                return float(seconds / figure.calls)
            figure.calls = min(
                max(2 * figure.calls, math.ceil(SAMPLE * figure.calls / max(seconds, 1e-9))),
                MAX_GROWTH * figure.calls,
            )

    def sample(self, remote: Remote, measure: str) -> None:
        """Take one more sample, where the peer does this and the budget allows."""
        if measure not in self.rounds:
            return
        with self.figure(measure) as figure:
            if len(figure.samples) >= self.rounds[measure]:
                return
            remote.ask("make", measure=measure, small=self.plan.small)
            quick = not figure.samples or figure.samples[0] < QUICK
            timed = remote.ask("time", calls=figure.calls, warm=quick)
            figure.samples.append(timed["seconds"] / figure.calls)

    def sample_anew(self, measure: str, cache: str = "") -> None:
        """Take a sample in a process of its own, and one of its import where that is asked for."""
        with self.figure(measure) as figure, self.start(cache) as remote:
            if IMPORT in self.workload.measures:
                with self.figure(IMPORT) as imported:
                    imported.samples.append(remote.import_seconds)
            made = remote.ask("make", measure=PROGRAM_OF[measure], small=self.plan.small)
            called = remote.ask("call", small=self.plan.small)
            figure.note = made["note"]
            self.judge(figure, called["answer"])
            figure.samples.append(made["seconds"] + called["seconds"])

    def sample_later(self, measure: str) -> None:
        """Take samples in processes that come after one that has filled their cache."""
        if self.peer not in KEEP_PROGRAMS:
            return
        with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
            for _ in range(1 + self.plan.runs):
                self.sample_anew(measure, cache)
        if figure := self.results.figure(measure, self.peer):
            del figure.samples[:1]

    def sample_memory(self) -> None:
        """Compile on small arguments, then see how the process grows on the full ones."""
        with self.figure(MEMORY) as figure, self.start() as remote:
            figure.note = remote.ask("make", measure=GRADIENT, small=True)["note"]
            remote.ask("call", small=True)
            figure.samples.append(remote.ask("memory", small=self.plan.small)["bytes"])

    def judge(self, figure: Figure, answer: list[float]) -> None:
        """Compare an answer with the right one."""
        if not self.workload.checked:
            return
        figure.off = reference.distance(answer, self.results.answer)
        allowed = self.workload.tolerances.get(self.peer, self.workload.tolerance)
        figure.wrong = answer if figure.off > allowed else []


def measure(workload: Workload, plan: Plan) -> Results:
    """Return the figures of a workload, of every peer that has an interpreter."""
    given = workload.small if plan.small else workload.arguments
    results = Results(
        workload.name,
        workload.title,
        plan.runs,
        workload.trips(*given) if workload.trips else None,
        reference.answer(workload, given) if workload.checked else [],
        {measure: {} for measure in workload.measures},
    )
    peers = [peer for peer in plan.interpreters if is_for(workload, peer)]
    seats = [Seat(workload, peer, plan, results) for peer in peers]
    warm = [measure for measure in workload.measures if measure in WARM]
    if warm:
        _take_turns(seats, warm, plan.runs)
    for name in workload.measures:
        if name in FIRST:
            _start_anew(seats, name, plan)
        if name == LATER_GRADIENT:
            for seat in seats:
                seat.sample_later(name)
        if name == MEMORY:
            for seat in seats:
                seat.sample_memory()
    return results


def is_for(workload: Workload, peer: str) -> bool:
    """Whether a workload is one for this peer."""
    if workload.plain is None:
        return peer in workload.own
    return not workload.peers or peer in workload.peers


def _take_turns(seats: list[Seat], measures: list[str], runs: int) -> None:
    with ExitStack() as stack:
        remotes = {}
        for seat in seats:
            with seat.figure(measures[0]):
                remotes[seat] = stack.enter_context(seat.start())
        for seat, remote in remotes.items():
            for name in measures:
                seat.prepare(remote, name)
        for _ in range(runs):
            for seat, remote in remotes.items():
                for name in measures:
                    seat.sample(remote, name)


def _start_anew(seats: list[Seat], measure: str, plan: Plan) -> None:
    spent = dict.fromkeys(seats, 0.0)
    for _ in range(plan.runs):
        for seat in seats:
            if spent[seat] > plan.budget:
                continue
            start = time.perf_counter()
            seat.sample_anew(measure)
            figure = seat.results.figure(measure, seat.peer)
            spent[seat] += time.perf_counter() - start if figure else math.inf
