"""`while` and `for` on traced values: one `While` node, or a Python loop (D6)."""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from wend.base import refusals
from wend.base.context_values import scoped
from wend.base.errors import ConcreteValueError, StagedRaiseError, WendError, explain
from wend.base.memory import Memory, memory_text, shown
from wend.base.source import at, user_source
from wend.capture.guards.outside import entered_items
from wend.capture.heap.aliases import gone_through
from wend.capture.heap.locations import Location, WriteLog, write_log
from wend.capture.heap.user_operators import log_write_operands
from wend.capture.lookups.traced_index import python_may_run
from wend.capture.stage import raises
from wend.capture.stage.branches import if_
from wend.capture.stage.first_trip import FirstTrip
from wend.capture.stage.iterables import (
    MAX_UNROLLED_TRIPS,
    IndexedIterable,
    LoopWithMemory,
    ZippedIterable,
    as_indexed,
)
from wend.capture.stage.operators import and_, not_
from wend.capture.stage.staged_loop import StagedLoop
from wend.capture.stage.truth import as_test, is_traced, truth_error
from wend.capture.state import made_objects, one_shot_iterators, unbound, unsure_iterators
from wend.capture.state.not_carried import OptionalCarryError, TextCarryError
from wend.capture.state.optional_value import in_loop
from wend.capture.state.paths import deciding_test
from wend.capture.state.special_methods import iterated, owner_of
from wend.capture.state.state import State, holds_staged
from wend.eager.dispatch import Staged
from wend.trace.aliasing.passed_containers import saved_promotions
from wend.trace.arrays.decided_integers import marked
from wend.trace.arrays.provenance import static_advice
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.run_errors import escaped

# A loop whose first trips differ is recorded with so many of them peeled off, at most: the second
# for what depends on the trip before (`if k > 0: total = total + x - previous`).
MAX_PEELED_TRIPS = 2
# Python runs the trips of a loop that cannot be one node until they have recorded more nodes than
# this, some seconds of tracing and compiling; those of loops in it count as well.
MAX_UNROLLED_NODES = 10_000

Thunk = Callable[[], Any]


def while_(condition: Thunk, body: Thunk, state: State, always: bool) -> None:
    """Run `while condition(): body()`.

    `state` is what the loop may change. With `always` the condition fails only once the body has
    run, or inside itself.
    """
    outer = current()
    if outer is None or outer.runs_now():
        while condition():
            body()
        return

    def test() -> Any:
        return as_test(condition())

    attempt = StagingAttempt(outer, state, "while")
    with write_log(attempt.log):
        predicate = test()
    if not isinstance(predicate, Staged) and not predicate:
        return
    always = always or not isinstance(predicate, Staged)
    if attempt.starts_staged or isinstance(predicate, Staged):
        attempt.rewind()
        attempt.python_may_run = not isinstance(predicate, Staged)
        if attempt.try_stage(test, body, always=always):
            return
        if attempt.try_peeled(test, body, always=always):
            return
        attempt.rewind()
        predicate = test()
    trips = 0
    while True:
        if isinstance(predicate, Staged):
            attempt.python_may_run = False
            if attempt.may_retry() and attempt.try_stage_from_start(test, body, always=True):
                return
            raise refusals.noted_again(attempt.failure or truth_error(predicate))
        if not predicate:
            attempt.note_unrolled(trips)
            return
        with write_log(attempt.log), in_loop():
            body()
        attempt.check_copies()
        trips += 1
        is_staged = attempt.carries_traced() or attempt.has_recorded()
        if trips == MAX_UNROLLED_TRIPS and attempt.changes_sizes:
            attempt.python_may_run, is_staged = False, True
        if is_staged and attempt.try_stage_from_start(test, body, always=True):
            return
        with write_log(attempt.log):
            predicate = test()


def for_(
    iterable: Iterable[Any], body: Callable[[Any], Any], state: State, broken: Thunk | None
) -> None:
    """Run `for target in iterable: body(target)`; `broken` returns whether a `break` happened."""
    outer, memory = current(), None
    if isinstance(iterable, LoopWithMemory):
        memory, iterable = iterable.memory, iterable.iterable
    iterable = entered_items(one_shot_iterators.consume(iterable))
    indexed = None if outer is None or outer.runs_now() else as_indexed(iterable)
    if broken is not None and isinstance(iterable, itertools.repeat):
        indexed = None  # only the run knows how many items are left
    if outer is None or indexed is None:
        _note_unused(memory, outer)
        _python_for(iterable, body, state, broken)
        return
    if isinstance(indexed.count, int) and indexed.count == 0:
        return
    loop = _IndexedFor(outer, indexed, body, state, broken)
    loop.attempt.memory = memory
    loop.run(iterable)
    indexed.check_unchanged()
    if not loop.is_staged:
        _note_unused(memory, outer)
    if loop.is_staged and isinstance(iterable, ZippedIterable):
        iterable.take(loop.attempt.where)
    if loop.is_staged and isinstance(iterable, itertools.repeat):
        collections.deque(iterable, maxlen=0)  # the loop has taken its items


def _note_unused(memory: Memory | None, recording: Recording | None) -> None:
    """Note for `explain` that a policy has no effect, as Python runs the loop."""
    if memory is not None and recording is not None:
        policy = f"memory={shown(memory_text(memory))}"
        text = f"{policy} of the for{at(user_source())} has no effect: Python runs the loop"
        recording.notes[text] = None


class _IndexedFor:
    """A `for` over an iterable with access by index."""

    def __init__(
        self,
        outer: Recording,
        indexed: IndexedIterable,
        body: Callable[[Any], Any],
        state: State,
        broken: Thunk | None,
    ) -> None:
        self.indexed, self.body, self.state, self.broken = indexed, body, state, broken
        self.position = _LoopPosition()
        if indexed.numbers is not None:
            self.position.value = indexed.numbers[0]
        self.attempt = StagingAttempt(outer, state, "for", self.position)
        self.attempt.iterated_arrays = indexed.arrays
        self.is_known = isinstance(indexed.count, int)
        self.is_staged = False
        self.attempt.python_may_run = self._may_unroll()

    def has_next(self) -> Any:
        """Return whether there is an item at the position."""
        if self.indexed.numbers is None:
            return self.position.value < self.indexed.count
        _, stop, step = self.indexed.numbers
        return self.position.value < stop if step > 0 else self.position.value > stop

    def test(self) -> Any:
        has_next = self.has_next()
        broken = self.broken
        return has_next if broken is None else and_(has_next, lambda: not_(broken()))

    def step(self) -> None:
        position = self.position.value
        self._note_range(position)
        item, increment = self.indexed.item(position), 1
        if self.indexed.numbers is not None:
            item, increment = position, self.indexed.numbers[2]
        self.position.value = position + increment
        self.body(item)

    def _note_range(self, position: Any) -> None:
        """Note which positions have an item, for the sizes of slices between them."""
        recording, (low, high) = current(), self._bounds()
        if recording is not None and low is not None:
            recording.note_range(position, low, high)

    def _bounds(self) -> tuple[Any, Any]:
        """Return the lowest position of an item, and the end of the positions; None if unknown."""
        if self.indexed.numbers is None:
            return 0, self.indexed.count
        start, stop, step = self.indexed.numbers
        if not self.is_known:
            return (start, stop) if step > 0 else (None, None)
        numbers = range(start, stop, step)
        if not numbers:
            return None, None
        lowest, highest = sorted((numbers[0], numbers[-1]))
        return lowest, highest + 1

    def run(self, iterable: Iterable[Any]) -> None:
        attempt = self.attempt
        if attempt.starts_staged or self.indexed.is_staged:
            self.is_staged = attempt.try_stage(
                self.test, self.step, always=self.is_known
            ) or attempt.try_peeled(self.test, self.step, always=self.is_known)
            if self.is_staged:
                return
            self._check_failure()
            attempt.rewind()
        try:
            _python_for(iterable, self._run_body, self.state, self.broken, self._try_staging)
        except Exception as error:
            if self.is_staged or not self._may_record(error):
                raise
            refusals.forget(error)
            self.is_staged = attempt.try_stage_from_start(self.test, self.step, always=True)
            if not self.is_staged:
                raise refusals.noted_again(error) from None

    def _may_record(self, error: Exception) -> bool:
        """Return whether a long loop may be one node, of which Python has failed to run a trip."""
        is_long = self.is_known and not self._may_unroll()
        return is_long and self.attempt.failure is None and refusals.is_refusal(error)

    def _run_body(self, item: Any) -> None:
        with write_log(self.attempt.log), in_loop():
            self.body(item)
        self.attempt.check_copies()

    def _try_staging(self) -> bool:
        attempt = self.attempt
        is_carrying = attempt.carries_traced()
        if not is_carrying and not attempt.has_recorded():
            return False
        self.is_staged = attempt.try_stage_from_start(self.test, self.step, always=self.is_known)
        if not self.is_staged and is_carrying:
            self._check_failure()
        return self.is_staged

    def _may_unroll(self) -> bool:
        return self.is_known and self.indexed.count <= MAX_UNROLLED_TRIPS

    def _check_failure(self) -> None:
        """Raise the failure, unless the loop is short and of known length: Python runs that one."""
        failure = self.attempt.failure
        assert failure is not None
        if self._may_unroll():
            self.attempt.note_unrolled(self.indexed.count)
            return
        if self.is_known:
            failure.add_note(
                f"the loop has {self.indexed.count} trips; wend.unroll(...) around what it "
                "iterates over runs it in Python"
            )
        for bound in self.indexed.numbers or ():
            if isinstance(bound, Tracer) and deciding_test(failure) is None:
                marked(failure, bound)
        raise refusals.noted_again(self._with_advice(failure))

    def _with_advice(self, failure: Exception) -> Exception:
        """Return the failure with advice on how to make the trip count concrete."""
        bounds = self.indexed.numbers or (self.indexed.count,)
        advice = {
            static_advice(bound.value, bound.recording)
            for bound in bounds
            if isinstance(bound, Tracer)
        }
        if isinstance(failure, ConcreteValueError) and None not in advice and len(advice) == 1:
            failure.args = (f"{failure}\n  Or let Python run the loop: {advice.pop()}.",)
        return failure


class _LoopPosition(Location):
    """The position of a staged `for`: the current number, or the count of items taken."""

    is_carried_first = True

    def __init__(self) -> None:
        super().__init__("the position of the loop", ("position", id(self)))
        self.value: Any = 0

    def read(self) -> Any:
        return self.value

    def write(self, value: Any) -> None:
        self.value = value


def _python_for(
    iterable: Iterable[Any],
    body: Callable[[Any], Any],
    state: State,
    broken: Thunk | None,
    is_done: Thunk = lambda: False,
) -> None:
    iterable = one_shot_iterators.consume(iterable)
    iterator, where = iterated(iterable), f"for{at(user_source())}"
    if iterator is iterable:
        iterator = iter(iterable)
    with scoped(gone_through, (*gone_through.get(), *_parts_of(iterator))):
        _run_trips(_items(iterator, where, broken), body, state, broken, is_done)


def _parts_of(iterator: Any) -> list[Any]:
    """Return an iterator, and of `enumerate` and `zip` what these go through."""
    first, *others = _sources(iterator)
    return [first, *(part for other in others for part in _parts_of(other))]


def _run_trips(
    items: Iterator[Any],
    body: Callable[[Any], Any],
    state: State,
    broken: Thunk | None,
    is_done: Thunk,
) -> None:
    trips = 0
    for item in items:
        stops = broken() if broken is not None else False
        if is_traced(stops):
            trips += 1
            if trips > _MAX_UNSURE_TRIPS:
                raise _endless_error()
            # Only the run knows whether another item is taken.
            if_(not_(stops), functools.partial(body, item), lambda: None, state.variables, state)
            continue
        if stops:
            return
        body(item)
        if is_done():
            return
        stops_after = broken() if broken is not None else False
        if not is_traced(stops_after) and stops_after:
            return  # without taking another item


# How many items are taken after a `break` that only the run knows of
_MAX_UNSURE_TRIPS = 200


def _endless_error() -> ConcreteValueError:
    """Return the error for a loop over an iterator that may never end."""
    return ConcreteValueError(
        explain(
            f"`for`{at(user_source())} goes through an iterator that has given "
            f"{_MAX_UNSURE_TRIPS} items after a `break` or `return` that only the run decides.",
            "how many items there are is known only to the iterator: the trace would not end.",
            cure="write it as a `while` loop that computes the items, or go through "
            "`itertools.islice(items, limit)`, or a range.",
        )
    )


def _items(iterator: Iterator[Any], where: str, broken: Thunk | None) -> Iterator[Any]:
    """Yield items.

    Raises:
        StagedRaiseError: an error of the iterator, where only the run knows whether it gets there.
    """
    while True:
        is_unsure = broken is not None and is_traced(broken())
        if is_unsure:
            unsure_iterators.note_unsure(_sources(iterator), where)
        try:
            item = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            if not is_unsure or refusals.is_refusal(error):
                raise
            raise escaped(error, where) from error
        yield item


def _sources(iterator: Any) -> Iterable[Any]:
    iterator = owner_of(iterator)
    is_zipped = isinstance(iterator, ZippedIterable)
    return (iterator, *iterator.parts, iterator.function) if is_zipped else (iterator,)


class StagingAttempt:
    """An attempt to record a loop as one node, which can be rolled back."""

    def __init__(self, outer: Recording, state: State, kind: str, *locations: Location) -> None:
        self.outer, self.state, self.kind = outer, state.open_heap(), kind
        self.locations = locations
        state.extend(locations, is_private=True)
        self.log: WriteLog = {}
        with write_log(self.log):
            log_write_operands()
        self.where = f"{kind}{at(user_source())}"
        self.start = state.get()
        self.effects = outer.effects()
        self._restore_made = made_objects.saved()
        self._restore_promotions = saved_promotions()
        self.reasons = unbound.reasons()
        self._start_count = len(outer.b.nodes)
        self._rests = raises.mark()
        self.failure: Exception | None = None
        self.first_trip_may_differ = False  # the reason of the failure
        self.optional_error: OptionalCarryError | None = None  # a reason, too
        self.changes_sizes = False  # another
        self.resizes = False  # whether carries may change their sizes
        self.peelable_trips = MAX_PEELED_TRIPS
        self.memory: Memory | None = None  # None: what the settings say
        self.iterated_arrays: Sequence[Any] = ()  # arrays whose rows are the items
        self.needed_concrete_value = False  # the reason of the failure, too
        self.python_may_run = True  # if the loop cannot be recorded as one node
        self.starts_staged = any(map(holds_staged, self.start))

    def rewind(self) -> None:
        """Restore the state and effects from before the loop."""
        raises.reinstate(self._rests)
        self.outer.restore_effects(self.effects)
        self._restore_made()
        self._restore_promotions()
        unbound.restore_reasons(self.reasons)
        self.state.undo([*self.start, *self.state.get()[len(self.start) :]])
        for location, old in reversed(self.log.values()):
            if location.key not in self.state.keys:
                location.undo(old)

    def carries_traced(self) -> bool:
        """Return whether the variables of a loop that runs in Python now hold traced values."""
        return self.failure is None and any(map(holds_staged, self.state.get()))

    def has_recorded(self) -> bool:
        """Return whether the iterations that Python has run were recorded, one by one.

        They may change traced values by calls only, which no variable of the loop shows.
        """
        has_nodes = len(self.outer.b.nodes) > self._start_count
        return self.failure is None and (has_nodes or len(raises.mark()) > len(self._rests))

    def may_retry(self) -> bool:
        """Return whether staging was not tried, or failed for want of a concrete value."""
        return self.failure is None or self.needed_concrete_value

    def note_unrolled(self, trips: int) -> None:
        """Note for `explain` that Python ran the loop, as it could not be one node."""
        if self.failure is not None:
            reason = str(self.failure).partition("\n")[0] or type(self.failure).__name__
            reason = reason.partition(", but its value is not known")[0].removesuffix(".")
            text = f"{self.where} is not one node, Python ran its {trips} trips: {reason}"
            self.outer.notes[text] = None

    def check_copies(self) -> None:
        """Raise the failure once the trips that Python runs have recorded too many nodes."""
        if self.failure is None or len(self.outer.b.nodes) - self._start_count < MAX_UNROLLED_NODES:
            return
        self.failure.add_note(
            f"Python runs the trips of the {self.where}, which have recorded "
            f"{MAX_UNROLLED_NODES:,} operations; wend.unroll(...) around what it iterates over "
            "lifts the limit"
        )
        raise refusals.noted_again(self.failure)

    def try_stage_from_start(self, test: Thunk, body: Thunk, *, always: bool) -> bool:
        """Record the loop with its first iterations, or continue from the current state."""
        values, effects, rests = self.state.get(), self.outer.effects(), raises.mark()
        restore_made, restore_promotions = made_objects.saved(), saved_promotions()
        heap_values = [(location, location.read()) for location, _ in self.log.values()]
        self.rewind()
        if self.try_stage(test, body, always=always):
            return True
        if self.try_peeled(test, body, always=always):
            return True
        self.state.restore([*values, *self.state.get()[len(values) :]])
        for location, value in heap_values:
            location.write(value)
        self.outer.restore_effects(effects)
        restore_made()
        restore_promotions()
        raises.reinstate(rests)
        return False

    def try_peeled(self, test: Thunk, body: Thunk, *, always: bool) -> bool:
        """Record the first trip by itself and the others as one node, if it may differ.

        Loop peeling: what the first trip makes of the variables is what the others start with. If
        only the run knows whether there is a first trip, it is a branch with the loop in it.
        If the others differ, too, since a value is None at times, the loop carries a flag for it;
        if sizes change from trip to trip, and Python may not run the loop, symbols for them.
        """
        failure, needed = self.failure, self.needed_concrete_value
        if isinstance(self.optional_error, TextCarryError):  # the first trip is no exception
            self.rewind()
            if self.try_stage(test, body, always=always, carries_optionals=True):
                return True
            self.needed_concrete_value = needed
            if isinstance(self.failure, OptionalCarryError):
                self.failure = failure
        if self.first_trip_may_differ and self.peelable_trips and self._try_peeled(test, body):
            return True
        failure, needed = self.failure, self.needed_concrete_value
        if self.optional_error is not None:
            self.rewind()
            if self.try_stage(test, body, always=always, carries_optionals=True):
                return True
        if self.changes_sizes and not self.python_may_run and not self.resizes:
            self.rewind()
            self.resizes = True
            if self.try_stage(test, body, always=always):
                return True
            if self.first_trip_may_differ and self.peelable_trips and self._try_peeled(test, body):
                return True
            self.resizes = False
        self.failure, self.needed_concrete_value = failure, needed
        return False

    def _try_peeled(self, test: Thunk, body: Thunk) -> bool:
        failure, needed = self.failure, self.needed_concrete_value
        self.rewind()
        values = self.state.get()
        try:
            with refusals.tentative(), refusals.final(), write_log(self.log):
                predicate = test()  # what it changes, it changes in the first trip, too
                if isinstance(predicate, Staged):
                    state = self.state.copy()
                    state.extend(self.locations, is_private=True)
                    trips = functools.partial(self._record_trips, test, body)
                    FirstTrip(predicate, state, self.kind).record(trips, lambda: None)
                elif predicate:
                    self._record_trips(test, body)
                return True
        except Exception as error:  # noqa: BLE001  # whatever went wrong, a failure is reported
            # What a first trip leaves tells more than what None would raise in its place
            is_of_none = isinstance(failure, StagedRaiseError) and refusals.is_refusal(error)
            self.failure, self.needed_concrete_value = error if is_of_none else failure, needed
            self.state.restore([*values, *self.state.get()[len(values) :]])
            self.rewind()
            return False

    def _record_trips(self, test: Thunk, body: Thunk) -> None:
        """Record one trip, and then the loop."""
        with one_shot_iterators.peeled_trip(), in_loop():
            body()
        recording = current()
        assert recording is not None
        attempt = StagingAttempt(recording, self.state.copy(), self.kind, *self.locations)
        attempt.python_may_run = self.python_may_run and recording is self.outer
        attempt.peelable_trips = self.peelable_trips - 1
        attempt.memory, attempt.resizes = self.memory, self.resizes
        if not (
            attempt.try_stage(test, body, always=False)
            or attempt.try_peeled(test, body, always=False)
        ):
            assert attempt.failure is not None
            raise attempt.failure

    def try_stage(
        self, test: Thunk, body: Thunk, *, always: bool, carries_optionals: bool = False
    ) -> bool:
        """Record the loop from the current state; on failure set `failure`."""
        start = self.state.get()
        may_run = self.python_may_run
        loop = StagedLoop(
            self.outer,
            self.state,
            self.where,
            always=always,
            python_may_run=may_run,
            memory=self.memory,
            carries_optionals=carries_optionals,
            resizes=self.resizes,
        )
        by_python = may_run or python_may_run.get()
        try:
            with refusals.tentative(), refusals.final(), scoped(python_may_run, by_python):
                loop.trace(test, body)
                loop.check_unchanged(self.iterated_arrays)
        except Exception as error:  # noqa: BLE001  # whatever went wrong, Python may still run it
            self.failure = error
            self.first_trip_may_differ = loop.first_trip_may_differ
            self.optional_error = None if carries_optionals else loop.optional_error
            self.changes_sizes = loop.changes_sizes
            self.needed_concrete_value = by_python and isinstance(error, ConcreteValueError)
            unpromoted = self.state.rollback()
            entry = [*unpromoted, *loop.entry[len(unpromoted) :]]
            self.state.undo([*start, *entry[len(start) :]])
            if isinstance(error, WendError):
                error.__traceback__ = None
            return False
        self.state.restore(loop.entry)
        loop.finish()
        return True
