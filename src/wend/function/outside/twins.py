"""Functions that take what they change of outside as an argument: places, and what calls them."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wend.capture.convert import capture
from wend.capture.guards.read_log import length_refusal
from wend.capture.heap.places import ABSENT, GrowthPlace, ItemsPlace, Place
from wend.capture.heap.trace_log import innermost_log
from wend.capture.lifting import bind_places, held_in, settle_places, unique_labels

if TYPE_CHECKING:
    from wend.function.function import Function


class LiftedPlaces:
    """Places of outside that hold arguments of a function; objects are held weakly.

    A list to which the function only appends is passed empty.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        labels = unique_labels(places)
        self._entries: list[tuple[str, Place, Callable[[], Any]]] = []
        for label, place in labels.items():
            self._entries.append((label, place.in_object(None), _reference(place.owner)))

    def current(self) -> dict[str, Place]:
        """Return the places in objects that are alive, by their labels."""
        places: dict[str, Place] = {}
        for label, template, reference in self._entries:
            owner = reference()
            if owner is not None:
                places[label] = template.in_object(owner)
        return places


def _reference(owner: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(owner)
    except TypeError:
        return lambda: owner


class LiftedFunction:
    """A function, as it is traced, that takes what places of outside hold in an argument.

    Args:
        fun: the function.
        places: the places.
        name: the name of that argument.
    """

    def __init__(self, fun: Callable[..., Any], places: LiftedPlaces, name: str) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun, self._places, self._name = fun, places, name
        signature = inspect.signature(fun)
        parameters = [*signature.parameters.values()]
        position = len(parameters)
        if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
            position -= 1
        parameters.insert(position, inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY))
        self.__signature__ = signature.replace(parameters=parameters)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        outside, places = kwargs.pop(self._name), self._places.current()
        lengths, args, kwargs = bind_places(places, outside, args, kwargs)
        result = capture(self._fun)(*args, **kwargs)
        settle_places(places)
        place = lengths.changed()
        if place is not None:
            raise length_refusal(place)
        log = innermost_log()
        if log is not None:
            log.refuse_unseen(getattr(self._fun, "__name__", "the function"))
        return result


class Twin:
    """A function that takes what the function it stands for changes of outside.

    Attributes:
        function: takes what the places hold in a dict, in which it leaves what it changes.
        name: the keyword of that dict.
        is_needed: whether the function changes what the places hold, not only reads it.
    """

    def __init__(
        self, function: Function, places: Sequence[Place], *, is_needed: bool = True
    ) -> None:
        self.places, self.is_needed = LiftedPlaces(places), is_needed
        self.name = _free_name(function)
        lifted = LiftedFunction(function.python_function, self.places, self.name)
        self.function = type(function)(lifted, **{**function._options, "is_users": False})
        self.function._specialized = frozenset(
            f"{self.name}[{label!r}]"
            for label, place in self.places.current().items()
            if type(held_in(place)) is bool  # which decides on structure more often than not
        )

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        places = self.places.current()
        before = {label: held_in(place) for label, place in places.items()}
        outside = {label: value for label, value in before.items() if value is not ABSENT}
        new: dict[str, list[Any]] = {
            label: [] for label, place in places.items() if isinstance(place, GrowthPlace)
        }
        outside.update(new)
        try:
            return self.function(*args, **{**kwargs, self.name: outside})
        finally:
            for label, items in new.items():
                list.extend(places[label].owner, items)
            for label, place in places.items():
                value = outside.get(label, ABSENT)
                if value is not before[label] and not isinstance(place, ItemsPlace):
                    place.write(value)


def _free_name(function: Function) -> str:
    """Return a name that no argument of a function has."""
    assert function.signature.inspected is not None
    parameters, name = function.signature.inspected.parameters, "outside"
    while name in parameters:
        name += "_"
    has_others = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return f"{name}_of_{function.name}" if has_others else name
