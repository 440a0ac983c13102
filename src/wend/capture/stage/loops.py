"""`while` and `for` on what may be traced: one `While` node, or a Python loop (D6)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import ConcreteValueError, WendError
from wend.base.source import at, user_source
from wend.capture.heap.locations import Location, WriteLog, write_log
from wend.capture.stage.branches import if_
from wend.capture.stage.iterables import Stepped, stepped
from wend.capture.stage.operators import and_, not_
from wend.capture.stage.staged_loop import StagedLoop
from wend.capture.stage.truth import is_traced
from wend.capture.state import one_shot_iterators
from wend.capture.state.state import State, holds_staged
from wend.capture.state.traced_index import python_may_run
from wend.eager.dispatch import Staged
from wend.trace.arrays.provenance import static_advice
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, current

UNROLLED_AT_MOST = 64

Thunk = Callable[[], Any]


def while_(test: Thunk, body: Thunk, state: State, always: bool) -> None:
    """`while test(): body()`; `always`: the test only fails once the body has run, or in `test`."""
    outer = current()
    if outer is None or outer.runs_now():
        while test():
            body()
        return
    attempt = _Attempt(outer, state, "while")
    with write_log(attempt.log):
        found = test()
    if not isinstance(found, Staged) and not found:
        return
    always = always or not isinstance(found, Staged)
    if attempt.is_needed_at_start or isinstance(found, Staged):
        attempt.back_to_start()
        attempt.python_may_run = not isinstance(found, Staged)
        if attempt.succeeds(test, body, always=always):
            return
        attempt.back_to_start()
        found = test()
    trips = 0
    while True:
        if isinstance(found, Staged):
            attempt.python_may_run = False
            if attempt.may_succeed() and attempt.succeeds_from_start(test, body, always=True):
                return
            raise attempt.failure or truth_error(found)
        if not found:
            attempt.note(trips)
            return
        with write_log(attempt.log):
            body()
        trips += 1
        if attempt.is_needed_now() and attempt.succeeds_from_start(test, body, always=True):
            return
        with write_log(attempt.log):
            found = test()


def truth_error(found: Any) -> Exception:
    """The error for a traced test of a loop that could not be staged."""
    try:
        bool(found)
    except ConcreteValueError as error:
        return error
    raise AssertionError


def for_(
    iterable: Iterable[Any],
    body: Callable[[Any], Any],
    state: State,
    broken: Thunk | None,
) -> None:
    """`for target in iterable: body(target)`; `broken` tells whether a `break` has happened."""
    outer = current()
    steps = None if outer is None or outer.runs_now() else stepped(iterable)
    if outer is None or steps is None:
        _python_for(iterable, body, state, broken)
        return
    if isinstance(steps.count, int) and steps.count == 0:
        return
    _For(outer, steps, body, state, broken).run(iterable)


class _For:
    """A `for` over something whose items can be had by position."""

    def __init__(
        self,
        outer: Recording,
        steps: Stepped,
        body: Callable[[Any], Any],
        state: State,
        broken: Thunk | None,
    ) -> None:
        self.steps, self.body, self.state, self.broken = steps, body, state, broken
        self.position = _Position()
        if steps.numbers is not None:
            self.position.now = steps.numbers[0]
        self.attempt = _Attempt(outer, state, "for", self.position)
        self.attempt.gone_through = steps.arrays
        self.is_known = isinstance(steps.count, int)
        self.attempt.python_may_run = self._is_short()

    def is_before_the_end(self) -> Any:
        """Whether there is an item at the position."""
        if self.steps.numbers is None:
            return self.position.now < self.steps.count
        _, stop, step = self.steps.numbers
        return self.position.now < stop if step > 0 else self.position.now > stop

    def test(self) -> Any:
        going = self.is_before_the_end()
        broken = self.broken
        return going if broken is None else and_(going, lambda: not_(broken()))

    def step(self) -> None:
        now = self.position.now
        item, by = self.steps.item(now), 1
        if self.steps.numbers is not None:
            item, by = now, self.steps.numbers[2]
        self.position.now = now + by
        self.body(item)

    def run(self, iterable: Iterable[Any]) -> None:
        attempt = self.attempt
        if attempt.is_needed_at_start or self.steps.is_staged:
            if attempt.succeeds(self.test, self.step, always=self.is_known):
                return
            self._check_failure()
            attempt.back_to_start()
        _python_for(iterable, self._run_body, self.state, self.broken, self._staged_after_all)

    def _run_body(self, item: Any) -> None:
        with write_log(self.attempt.log):
            self.body(item)

    def _staged_after_all(self) -> bool:
        if not self.attempt.is_needed_now():
            return False
        if self.attempt.succeeds_from_start(self.test, self.step, always=self.is_known):
            return True
        self._check_failure()
        return False

    def _is_short(self) -> bool:
        return self.is_known and self.steps.count <= UNROLLED_AT_MOST

    def _check_failure(self) -> None:
        """A short loop of known length can run in Python."""
        failure = self.attempt.failure
        assert failure is not None
        if self._is_short():
            self.attempt.note(self.steps.count)
            return
        if self.is_known:
            failure.add_note(
                f"the loop has {self.steps.count} trips; wend.unroll(...) around what it iterates "
                "over runs it in Python"
            )
        raise self._advised(failure)

    def _advised(self, failure: Exception) -> Exception:
        """The failure, with how Python can come to know the number of trips."""
        bounds = self.steps.numbers or (self.steps.count,)
        advice = {
            static_advice(bound.value, bound.recording)
            for bound in bounds
            if isinstance(bound, Tracer)
        }
        if isinstance(failure, ConcreteValueError) and None not in advice and len(advice) == 1:
            failure.args = (f"{failure}\n  Or let Python run the loop: {advice.pop()}.",)
        return failure


class _Position(Location):
    """Where a staged `for` is: at which number, or how many items it has taken."""

    leads = True

    def __init__(self) -> None:
        super().__init__("the position of the loop", ("position", id(self)))
        self.now: Any = 0

    def read(self) -> Any:
        return self.now

    def write(self, value: Any) -> None:
        self.now = value


def _python_for(
    iterable: Iterable[Any],
    body: Callable[[Any], Any],
    state: State,
    broken: Thunk | None,
    is_done: Thunk = lambda: False,
) -> None:
    for item in one_shot_iterators.taken_from(iterable):
        stop = broken() if broken is not None else False
        if is_traced(stop):
            # Whether an item is still taken is only known when it runs.
            take = functools.partial(body, item)
            if_(not_(stop), take, lambda: None, state.variables, state)
            continue
        if stop:
            return
        body(item)
        if is_done():
            return
        after = broken() if broken is not None else False
        if not is_traced(after) and after:
            return  # and takes no further item


class _Attempt:
    """Tries to record a loop as one node; what was changed by then can be taken back."""

    def __init__(self, outer: Recording, state: State, kind: str, *places: Location) -> None:
        self.outer, self.state = outer, state.opened()
        state.extend(places, quietly=True)
        self.log: WriteLog = {}
        self.where = f"{kind}{at(user_source())}"
        self.start = state.get()
        self.effects = outer.effects()
        self.failure: Exception | None = None
        self.gone_through: Sequence[Tracer] = ()  # arrays whose rows the loop takes
        self.wanted_numbers = False  # and failed for that
        self.python_may_run = True  # the loop, if it cannot be recorded as one node
        self.is_needed_at_start = any(map(holds_staged, self.start))

    def back_to_start(self) -> None:
        """Let everything be as it was before the loop."""
        self.outer.restore_effects(self.effects)
        more = self.state.get()[len(self.start) :]
        self.state.restore([*self.start, *more])
        for place, old in reversed(self.log.values()):
            if place.key not in self.state.keys:
                place.write(old)

    def is_needed_now(self) -> bool:
        """Whether a loop that runs in Python has come to hold traced values."""
        return self.failure is None and any(map(holds_staged, self.state.get()))

    def may_succeed(self) -> bool:
        """Whether it has not been tried, or only as what Python may run, which knows numbers."""
        return self.failure is None or self.wanted_numbers

    def note(self, trips: int) -> None:
        """Tell `explain` that Python runs the loop, if it could not be recorded as one node."""
        if self.failure is not None:
            reason = str(self.failure).partition("\n")[0] or type(self.failure).__name__
            reason = reason.partition(", but its number is not known")[0].removesuffix(".")
            note = f"{self.where} is not one node, Python ran its {trips} trips: {reason}"
            self.outer.notes[note] = None

    def succeeds_from_start(self, test: Thunk, body: Thunk, *, always: bool) -> bool:
        """Record it with its first iterations, or go on from where it is."""
        now, effects = self.state.get(), self.outer.effects()
        beyond = [(place, place.read()) for place, _ in self.log.values()]
        self.back_to_start()
        if self.succeeds(test, body, always=always):
            return True
        self.state.restore([*now, *self.state.get()[len(now) :]])
        for place, value in beyond:
            place.write(value)
        self.outer.restore_effects(effects)
        return False

    def succeeds(self, test: Thunk, body: Thunk, *, always: bool) -> bool:
        """Record it from here; else say in `failure` why not."""
        start = self.state.get()
        may_run = self.python_may_run
        loop = StagedLoop(self.outer, self.state, self.where, always=always, may_run=may_run)
        by_python = may_run or python_may_run.get()
        try:
            with scoped(python_may_run, by_python):
                loop.trace(test, body)
            loop.check_unchanged(self.gone_through)
        except Exception as error:  # noqa: BLE001  # whatever went wrong, Python may yet run it
            self.failure = error
            self.wanted_numbers = by_python and isinstance(error, ConcreteValueError)
            self.state.rollback()
            self.state.restore([*start, *loop.start[len(start) :]])
            if isinstance(error, WendError):
                error.__traceback__ = None
            return False
        self.state.restore(loop.entry)
        loop.finish()
        return True
