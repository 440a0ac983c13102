"""Variables that a loop or branch creates, which it then starts with.

A variable is created once, when the function is traced, and the trace that creates it is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base.errors import StructureError, explain
from wend.capture.heap.locations import UNBOUND, Attribute
from wend.capture.heap.partial_attributes import AttributeNames
from wend.capture.state.state import State, is_same
from wend.trace.state.creation import is_new


def start_with_new_variables(state: State, entry: list[Any], *ends: Sequence[Any]) -> bool:
    """Put the variables that the ends of a loop or branch hold into what it starts with.

    They take the place of None, or of nothing: an unbound name, a missing key, the end of a list.

    Returns:
        whether there are any.
    """
    changed = set[int]()
    for end in ends:
        for k, (old, new) in enumerate(zip(entry, end, strict=False)):
            value = _with_new_variables(old, new)
            if value is not old:
                entry[k] = value
                changed.add(k)
                if is_new(value):
                    state.objects.add(k)
    attributes = [x for x in map(state.location_of, changed) if isinstance(x, Attribute)]
    for k, value in enumerate(entry):
        if isinstance(value, AttributeNames) and attributes:  # the class may have had them
            owner = getattr(state.location_of(k), "owner", None)
            names = [x.name for x in attributes if x.owner is owner and x.name not in value.names]
            entry[k] = AttributeNames([*value.names, *names], value.partial)
    return bool(changed)


def check_trip_appends_none(
    where: str, names: Sequence[str], entry: Sequence[Any], ends: Sequence[Any]
) -> None:
    """Check that a trip appends no variable to a list that starts with one of an earlier trip.

    Raises:
        StructureError: it does.
    """
    for name, old, new in zip(names, entry, ends, strict=False):
        if (
            type(old) is type(new) is list
            and any(map(is_new, old))
            and any(map(is_new, new[len(old) :]))
        ):
            reason = f"{where}: each trip makes a Variable, and appends it to `{name}`."
            cure = "make them before the loop, or in one whose number of trips is a number."
            raise StructureError(explain(reason, cure=cure))


def _with_new_variables(old: Any, new: Any) -> Any:
    """Return `old` with the new variables of `new`; `old` itself where there are none."""
    if old is None or old is UNBOUND:
        return new if _is_of_new_variables(new) else old
    if type(old) is not type(new) or type(old) not in (dict, list):
        return old
    if isinstance(old, dict):
        pairs = ((key, _with_new_variables(old.get(key), item)) for key, item in new.items())
        added = {key: item for key, item in pairs if item is not old.get(key)}
        return {**old, **added} if added else old
    longer = new[len(old) :]
    if longer:
        is_added = all(map(_is_of_new_variables, longer)) and all(map(is_same, old, new))
        return [*old, *longer] if is_added else old
    items = [*map(_with_new_variables, old, new), *old[len(new) :]]
    return old if all(map(is_same, items, old)) else items


def _is_of_new_variables(value: Any) -> bool:
    """Return whether a value is a new variable, or a container that holds nothing else."""
    if isinstance(value, (dict, list, tuple)):
        items = value.values() if isinstance(value, dict) else value
        return bool(value) and all(map(_is_of_new_variables, items))
    return is_new(value)
