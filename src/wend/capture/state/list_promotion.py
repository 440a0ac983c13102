"""Lists that grow where only the run tells how far: they become `TensorList`s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wend.base.errors import StructureError, explain
from wend.capture.heap.aliases import refuse_others
from wend.capture.heap.locations import Contents
from wend.capture.state.state import Reference, State, is_carried
from wend.trace.control.tensor_list import TensorList


def lists_have_grown(state: State, where: str, start: list[Any], *ends: Sequence[Any]) -> bool:
    """Let lists whose lengths differ be traced lists from the start; say whether any was."""
    found = dict(_grown(state, start, ends))
    old = []
    for k, like in found.items():
        _check_binding(state, start, k)
        old.append(_convert(state, start, k, like))
    if old:
        state.restore(start)
    for place in old:
        refuse_others(place.container, place.label, where)
    return bool(found)


def _grown(
    state: State, start: Sequence[Any], ends: Sequence[Sequence[Any]]
) -> Iterator[tuple[int, Any]]:
    first = len(state.variables)
    lists = {
        id(place.container): k
        for k, place in enumerate(state.places, first)
        if isinstance(place, Contents) and type(place.container) is list
    }
    for k in lists.values():
        options = [end[k] for end in ends if k < len(end)]
        if len({len(option) for option in options}) > 1:
            longest = max(options, key=len)
            if is_carried(longest[-1]):
                yield k, longest[-1]
    for k, value in enumerate(start):
        if isinstance(value, Reference) and id(value.container) in lists:
            for end in ends:
                if k < len(end) and isinstance(end[k], Reference):
                    now = end[k].container
                    if isinstance(now, TensorList):
                        yield lists[id(value.container)], now.example()
                elif k < len(end) and isinstance(end[k], TensorList):
                    yield lists[id(value.container)], end[k].example()


def _check_binding(state: State, start: Sequence[Any], k: int) -> None:
    place = state.places[k - len(state.variables)]
    assert isinstance(place, Contents)
    for value in start:
        if isinstance(value, Reference) and value.container is place.container:
            return
    raise StructureError(
        explain(
            f"`{place.label}` grows in a loop or branch that is recorded, through a function that "
            "reaches it some other way.",
            cure="append to it in the function that makes it, or return what is to be appended.",
        )
    )


def _convert(state: State, start: list[Any], k: int, like: Any) -> Contents:
    """Let a list be a traced one; gives the place that it was."""
    index = k - len(state.variables)
    place = state.places[index]
    assert isinstance(place, Contents)
    place.write(start[k])  # the list as it was: an `if` around compares with it
    ref = TensorList.of(start[k], like)
    new = Contents(place.label, ref)
    state.replaced.append((index, place))
    state.places[index] = new
    state.keys = {*state.keys - {place.key}, new.key}
    start[k] = ref.copy()
    for j, value in enumerate(start):
        if isinstance(value, Reference) and value.container is place.container:
            start[j] = Reference(ref)
    return place
