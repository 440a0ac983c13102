"""State of outside that a function changes, as an argument and a result of its trace.

A trace runs Python once, so a change of an attribute, a global or a list of outside would happen
once. Where the places that change are known, the function is traced again with what they hold as
one more argument, a dict (`function/outside/`). While that trace is recorded, the places hold the
traced values, so that all code sees them; what they hold in the end are items of the dict.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.fastcall import MISSING
from wend.capture.guards.active import recorder_of_trace
from wend.capture.heap.places import ABSENT, GrowthPlace, ItemsPlace, Place
from wend.capture.heap.trace_log import TraceLog, innermost_log
from wend.capture.state.optional_value import settle
from wend.trace.aliasing.containers import containers_in, items_of, set_items, whole
from wend.trace.aliasing.passed_containers import PassedContainers, passed_containers


def held_in(place: Place) -> Any:
    """Return what is passed for a place: the container itself for its items."""
    return place.owner if isinstance(place, ItemsPlace) else place.read()


def bind_places(
    places: Mapping[str, Place], outside: dict[str, Any], args: Any, kwargs: dict[str, Any]
) -> tuple[LiftedLengths, Any, dict[str, Any]]:
    """Put the items of an argument into places until the trace under way ends.

    Args:
        places: the places, by their keys in `outside`.
        outside: what they held when the function was called; it follows what they hold.
        args: the positional arguments.
        kwargs: the other keyword arguments.

    Returns:
        what knows the lengths of the containers, and the arguments to call the function with.
    """
    log, passed, recorder = innermost_log(), passed_containers(), recorder_of_trace.get()
    assert log is not None and passed is not None
    growing = [place for place in places.values() if isinstance(place, GrowthPlace)]
    fixed = {label: place for label, place in places.items() if place not in growing}
    lengths = LiftedLengths(fixed, passed)
    swaps = _stand_in(places, outside, passed, log)
    for label, place in places.items():
        if not isinstance(place, ItemsPlace):
            log.lift(place, swaps.of(outside.get(label, ABSENT)))
    if recorder is not None:
        recorder.lift(places.values(), swaps.originals.values(), growing)

    def refresh() -> None:
        for label, place in places.items():
            value = held_in(place)
            if value is ABSENT:
                outside.pop(label, None)
            elif outside.get(label, MISSING) is not value:
                outside[label] = value

    refresh()
    passed.follow(refresh)
    return lengths, swaps.of(args), {name: swaps.of(x) for name, x in kwargs.items()}


def settle_places(places: Mapping[str, Place]) -> None:
    """Decide whether places hold None or a number, where a trace does not know which."""
    for place in places.values():
        value = place.read()
        if isinstance(place, ItemsPlace):
            settle(None, place.owner)
        elif value is not ABSENT and (settled := settle(None, value)[1]) is not value:
            place.write(settled)


class LiftedLengths:
    """The lengths of the lists that a trace has as arguments of outside.

    A list that has another length at each call would be traced at each call. The keys of dicts
    mostly stay the same after the first calls.
    """

    def __init__(self, places: Mapping[str, Place], passed: PassedContainers) -> None:
        self._places, self._passed = places, passed
        self._before = {label: held_in(place) for label, place in places.items()}
        self._counts = {
            id(x): (x, len(x)) for value in self._before.values() for x in self._lists_in(value)
        }

    def _lists_in(self, value: Any) -> list[Any]:
        containers = containers_in(value, whole(self._passed.leaves))
        return [x for x in containers if isinstance(x, (list, deque))]

    def changed(self) -> Place | None:
        """Return a place whose list has another length now, if there is one."""
        for label, place in self._places.items():
            before, now = self._before[label], held_in(place)
            if now is not before and isinstance(now, list) and isinstance(before, list):
                if len(now) != len(before):
                    return place
            elif any(map(self._is_changed, self._lists_in(now))):
                is_list = type(place) is ItemsPlace and type(place.owner) is list
                may_grow = is_list and len(place.owner) >= self._counts[id(place.owner)][1]
                return GrowthPlace(place.label, place.owner) if may_grow else place
        return None

    def _is_changed(self, container: Any) -> bool:
        if self._passed.traced_list(container) is not None:
            return True
        _, count = self._counts.get(id(container), (None, None))
        return count is not None and count != len(container)


class _Swaps:
    """The containers of outside that take the places of their copies, by the ids of these."""

    def __init__(self) -> None:
        self.originals: dict[int, Any] = {}
        self._copies: list[Any] = []

    def add(self, copy: Any, original: Any) -> None:
        """Note that a container of outside takes the place of a copy."""
        self.originals[id(copy)] = original
        self._copies.append(copy)  # so that no id is used again

    def of(self, value: Any) -> Any:
        """Return a value with the containers of outside in the places of their copies."""
        if id(value) in self.originals:
            return self.originals[id(value)]
        if type(value) is tuple:
            items = [self.of(item) for item in value]
            is_same = all(new is old for new, old in zip(items, value, strict=True))
            return value if is_same else tuple(items)
        return value


def _stand_in(
    places: Mapping[str, Place], outside: dict[str, Any], passed: PassedContainers, log: TraceLog
) -> _Swaps:
    """Put the containers of outside in the places of their copies among the arguments."""
    swaps, instances = _Swaps(), whole(passed.leaves)
    for label, place in places.items():
        if isinstance(place, GrowthPlace):
            swaps.add(outside[label], place.owner)
        elif label in outside:
            copies = containers_in(outside[label], instances)
            originals = containers_in(held_in(place), instances)
            for copy, original in zip(copies, originals, strict=True):
                if id(copy) not in swaps.originals:
                    swaps.add(copy, original)
    items = {
        number: [(key, swaps.of(item)) for key, item in items_of(container)]
        for number, container in enumerate(passed.containers)
    }
    for number, new in items.items():
        container = passed.containers[number]
        original = swaps.originals.get(id(container))
        if original is not None:
            log.lift_items(original, functools.partial(set_items, original, items_of(original)))
            passed.stand_in(number, original, new)
        elif any(x is not y for (_, x), (_, y) in zip(new, items_of(container), strict=True)):
            passed.stand_in(number, container, new)
    return swaps


def unique_labels(places: Sequence[Place]) -> dict[str, Place]:
    """Return places by their labels, with numbers where places have the same."""
    labels: dict[str, Place] = {}
    for place in places:
        label = base = place.label.removesuffix(".")
        count = 1
        while label in labels:
            count += 1
            label = f"{base} ({count})"
        labels[label] = place
    return labels
