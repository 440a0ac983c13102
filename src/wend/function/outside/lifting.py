"""Calls of functions that change state of outside: it is an argument and a result of their traces.

`step` of an optimizer counts its calls in `self.n`. A trace that reads the count would be made anew
at each call, and could not change it. The function gets a twin that takes what `self.n` holds as
one more argument; each call passes it, and stores what the run has left in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.base.errors import WendError
from wend.base.keys import ByIdentity
from wend.base.refusals import is_refusal
from wend.capture.guards.liftable import is_liftable
from wend.capture.guards.operand_reads import is_float
from wend.capture.heap.places import CellPlace, GlobalPlace, GrowthPlace, Place
from wend.function.outside.twins import LiftedFunction, Twin

if TYPE_CHECKING:
    from wend.function.cache import Trace
    from wend.function.function import Function
    from wend.function.signature.signature import Arguments

_MAX_ROUNDS = 8  # of finding places: a trace that takes some as arguments may change others
_MAX_TWINS = 64
_MIN_TRACES = 2  # that differ in values of numbers of outside, before these become arguments


def lifted_key(arguments: Arguments) -> Hashable:
    """Return the objects among the arguments of a call, which have places of their own."""
    return tuple([key for key in arguments.static_keys if isinstance(key, ByIdentity)])


def key_of_arrays(
    function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Hashable | None:
    """Return the `lifted_key` of a call that passes arrays and numbers alone; None of others."""
    self_count = int(function.signature.is_method)
    if kwargs or not all(type(x) in _ARRAYS for x in args[self_count:]):
        return None
    return tuple(map(ByIdentity, args[:self_count]))


_ARRAYS = frozenset({np.ndarray, np.float64, np.float32, np.int64, float, int, bool, complex})


def may_lift(function: Function, error: BaseException) -> bool:
    """Return whether the changes of outside that have ended a trace can be arguments of another."""
    return isinstance(error, WendError) and bool(error.changed_outside) and may_take(function)


def changing_numbers(traces: Sequence[Trace]) -> list[Place]:
    """Return the places of the numbers for whose values alone a key has several traces.

    `traces`: those of the key, the one that serves it now last.
    """
    if len(traces) < _MIN_TRACES or traces[-1].holds():
        return []
    changed = [trace.guards.changed_numbers() for trace in traces]
    common = set.intersection(*(set(places) for places in changed))
    places = [place for k, place in changed[-1].items() if k in common and is_liftable(place)]
    return [x for x in places if not (traces[-1].has_operands and _may_be_operand(x))]


def _may_be_operand(place: Place) -> bool:
    """Return whether a place holds a float that a trace may take as an operand (D44)."""
    return isinstance(place, (CellPlace, GlobalPlace)) and is_float(place.read())


def take_numbers(function: Function, key: Hashable, changing: Sequence[Place]) -> None:
    """Make the twin that takes numbers of outside, unless one has been refused before."""
    new = [place for place in changing if place.key not in function._refused_numbers]
    if new and may_take(function) and key not in function._twins:
        function._twins[key] = Twin(function, new, is_needed=False)


def refuse_numbers(function: Function, key: Hashable) -> None:
    """Drop a twin that takes numbers of outside: no trace can take one of them."""
    twin = function._twins.pop(key, None)
    if twin is not None:
        function._refused_numbers.update(x.key for x in twin.places.current().values())


def may_take(function: Function) -> bool:
    """Return whether a function may take state of outside in an argument."""
    return (
        function.capture
        and function.input_signature is None
        and not function.capture_by_value
        and function.signature.inspected is not None
        and not isinstance(function.python_function, LiftedFunction)
    )


def call_lifted(
    function: Function,
    key: Hashable,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    failure: Exception | None = None,
) -> Any:
    """Call a function with what it changes of outside as an argument.

    Args:
        function: the function.
        key: its `lifted_key`.
        args: the positional arguments.
        kwargs: the keyword arguments.
        failure: the refusal of a trace without such an argument.

    Raises:
        SideEffectError: `failure`, if what changes cannot be an argument.
    """
    twins, first = function._twins, failure
    before = twins.get(key)
    for _ in range(_MAX_ROUNDS):
        twin = twins.get(key)
        if failure is not None:
            twin = _with_changes(function, twin, _changed_by(failure))
            if twin is None:
                break
            if key not in twins and len(twins) >= _MAX_TWINS:
                twins.clear()
            twins[key] = twin
        assert twin is not None
        try:
            return twin(args, kwargs)
        except Exception as error:
            if not is_refusal(error):
                raise
            failure = error
            first = first or error
    twins.pop(key, None)
    if before is not None:
        twins[key] = before
    assert first is not None and failure is not None
    # A place that changes although it is an argument is a list of changing length.
    raise (failure if _changed_by(failure) else first) from None


def _changed_by(error: Exception) -> Sequence[Place]:
    """Return the places that the refused trace would change."""
    return error.changed_outside if isinstance(error, WendError) else ()


def _with_changes(function: Function, twin: Twin | None, changed: Sequence[Place]) -> Twin | None:
    """Return a twin that takes what changes, too; None if the present one takes it."""
    known = [] if twin is None else twin.places.current().values()
    places: dict[Hashable, Place] = {place.key: place for place in known}
    before = {key: type(place) for key, place in places.items()}
    for place in changed:
        if place.key not in places or isinstance(place, GrowthPlace):
            places[place.key] = place
    is_same = before == {key: type(place) for key, place in places.items()}
    return None if is_same else Twin(function, [*places.values()])
