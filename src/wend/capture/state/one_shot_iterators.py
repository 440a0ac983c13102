"""Iterators and files, which yield each item once, and other objects with a hidden state.

A recorded loop or branch is traced once, however often it will run. Taking items from an iterator
that existed before would take them once, so it is refused. An iterator that is created inside
is created, and consumed, in every run. The same holds for what a hash object or another state that
only its own methods see is given.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import GeneratorType
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from wend.base.context_values import scoped
from wend.base.errors import StructureError, explain
from wend.base.source import at, user_source
from wend.capture.heap.hidden_state import changes, has_hidden_state, takes_lock
from wend.capture.heap.places import PositionPlace, named
from wend.capture.heap.trace_log import HOLDERS, is_trace_logged, note_write
from wend.capture.state import unsure_iterators
from wend.capture.state.unsure_iterators import is_iterator
from wend.trace.recording.recording import Recording, current


class _Created:
    """The iterators created in a recording, by id.

    Generators are held weakly: the last reference to one that is dropped runs its `finally`.
    """

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}
        self._generators: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def add(self, value: Any) -> None:
        table = self._generators if isinstance(value, GeneratorType) else self.held
        table[id(value)] = value

    def __contains__(self, value: Any) -> bool:
        return id(value) in self.held or id(value) in self._generators


_created: WeakKeyDictionary[Recording, _Created] = WeakKeyDictionary()

# The recording of a first trip that may have to be undone, and the iterators created in it
_peeled_trip: ContextVar[tuple[Recording, _Created] | None] = ContextVar(
    "peeled_trip", default=None
)


@contextmanager
def peeled_trip() -> Iterator[None]:
    """Refuse to advance iterators from before: this trip is undone if the others fail."""
    recording = current()
    assert recording is not None
    with scoped(_peeled_trip, (recording, _Created())):
        yield


def current_region() -> Recording | None:
    """Return the loop or branch that is being recorded, if any."""
    recording = current()
    return recording if recording is not None and recording.is_region else None


def register(value: Any) -> Any:
    """Note an iterator or hidden state that captured code creates, and return it."""
    recording = current()
    if recording is not None and (is_iterator(value) or has_hidden_state(value)):
        _created.setdefault(recording, _Created()).add(value)
        trip = _peeled_trip.get()
        if trip is not None and trip[0] is recording:
            trip[1].add(value)
    return value


def _tables() -> Iterator[Any]:
    """Yield the tables of iterators, those of recordings that have ended emptied."""
    for recording, created in list(_created.items()):
        if not recording.is_open:
            created.held.clear()
        yield created.held


HOLDERS.append(_tables)


def consume(value: Any) -> Any:
    """Check that items may be taken from an object, and return it.

    Raises:
        StructureError: it is an iterator from outside the loop or branch that is recorded.
    """
    if is_iterator(value):
        unsure_iterators.check_sure(value)
        if current_region() is None:
            _note_advance(value)
        if _is_from_outside(value):
            raise StructureError(
                explain(
                    f"a {value.__class__.__name__} gives its items once; it is advanced"
                    f"{at(user_source())}, in a loop or branch that is recorded once.",
                    cure="put the items in an array and read it by position, make the iterator "
                    "in the loop or branch, or let Python run the loop: wend.unroll(...).",
                )
            )
    return value


def check_change(method: Any) -> None:
    """Check that a method which changes a hidden state may be called.

    Raises:
        StructureError: the object is from outside the loop or branch that is recorded.
    """
    takes = takes_lock(method) and current_region() is not None
    if takes or (changes(method) and _is_from_outside(method.__self__)):
        what = f"{type(method.__self__).__name__}.{method.__name__}"
        raise StructureError(
            explain(
                f"{what}{at(user_source())} changes a state that only this object sees, in a loop "
                "or branch that is recorded once.",
                cure="make the object in the loop or branch, or let Python run the loop: "
                "wend.unroll(...).",
            )
        )


def _is_from_outside(value: Any) -> bool:
    """Return whether an object existed before the loop, branch or first trip that is recorded."""
    region, trip = current_region(), _peeled_trip.get()
    if trip is not None and trip[0] is current():
        return value not in trip[1]
    return region is not None and value not in _created.get(region, ())


def _note_advance(iterator: Any) -> None:
    """Note that an iterator is advanced in a function, which may not have made it."""
    if is_trace_logged() and not isinstance(iterator, io.IOBase):
        recording: Any = current()
        while recording is not None:
            if iterator in _created.get(recording, ()):
                return
            recording = recording.parent
        note_write(PositionPlace(named(type(iterator)), iterator))
