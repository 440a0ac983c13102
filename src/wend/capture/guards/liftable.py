"""Which state of outside that a function changes can be an argument of its trace."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from enum import Enum
from types import ModuleType
from typing import Any

from wend.capture.guards.active import recorder_of_trace
from wend.capture.heap.places import (
    AttributePlace,
    CellPlace,
    ElementsPlace,
    GlobalPlace,
    ItemsPlace,
    Place,
    is_of_module,
)
from wend.trace.state.variable import Variable

_CONTAINERS = (list, dict, OrderedDict, defaultdict, deque)


def is_liftable(place: Place) -> bool:
    """Return whether what a place holds can be an argument of a trace."""
    owner = place.owner
    if isinstance(place, ItemsPlace):
        return type(owner) in _CONTAINERS and not is_of_module(owner)
    if type(place) not in (AttributePlace, GlobalPlace, CellPlace):
        return False
    if isinstance(owner, (Enum, BaseException)) or isinstance(place.read(), Variable):
        return False
    if isinstance(owner, type):
        return not issubclass(owner, Enum) and _sets_attributes_in_c(owner, type)
    return not isinstance(owner, ModuleType) or _sets_attributes_in_c(owner, ModuleType)


def _sets_attributes_in_c(owner: Any, kind: Any) -> bool:
    return type(owner).__setattr__ is kind.__setattr__


def places_to_lift(changed: Iterable[Any]) -> tuple[Place, ...]:
    """Return the places that hold what a trace changes of outside; () if some cannot be lifted.

    Args:
        changed: places, and arrays that are changed in place.
    """
    recorder = recorder_of_trace.get()
    places: dict[Any, Place] = {}
    for part in changed:
        array = part.owner if isinstance(part, ElementsPlace) else part
        holders = [part]
        if not isinstance(array, Place):
            holders = [] if recorder is None else recorder.places_of(array)
        if not holders or not all(map(is_liftable, holders)):
            return ()
        places.update((place.key, place) for place in holders)
    return tuple(places.values())
