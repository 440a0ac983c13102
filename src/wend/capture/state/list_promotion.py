"""Promotion of lists whose length is known only at run time to `TensorList`s."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from wend.base.errors import StructureError, explain
from wend.capture.heap.aliases import refuse_others
from wend.capture.heap.locations import Contents
from wend.capture.state.state import Reference, State
from wend.trace.aliasing.listed_containers import note_first_items
from wend.trace.control.listed_texts import is_item
from wend.trace.control.tensor_list import TensorDeque, TensorList


def promote_grown_lists(state: State, where: str, start: list[Any], *ends: Sequence[Any]) -> bool:
    """Promote lists whose length changes to traced ones; return whether there were any."""
    grown = dict(_grown_lists(state, start, ends))
    if grown and not state.promoted_lists:
        state.unpromoted = list(start)
    promoted = []
    for k, examples in grown.items():
        _check_binding(state, start, k)
        promoted.append(_promote(state, start, k, examples))
    if promoted:
        state.restore(start)
    for location, new in promoted:
        refuse_others(location.container, new, location.label, where)
    return bool(grown)


def _grown_lists(
    state: State, start: Sequence[Any], ends: Sequence[Sequence[Any]]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the index of each list that grows, with examples of its items."""
    first = len(state.variables)
    lists = {
        id(location.container): k
        for k, location in enumerate(state.locations, first)
        if isinstance(location, Contents) and may_grow(location.container)
    }
    for k in lists.values():
        options = [end[k] for end in ends if k < len(end)]
        if len({len(option) for option in options}) > 1:
            longest = max(options, key=len)
            if is_item(longest[-1]):
                items = [item for option in options for item in option if is_item(item)]
                yield k, [*items, longest[-1]]
    for k, value in enumerate(start):
        if isinstance(value, Reference) and id(value.container) in lists:
            for end in ends:
                if k < len(end) and isinstance(end[k], Reference):
                    end_container = end[k].container
                    if isinstance(end_container, TensorList):
                        yield lists[id(value.container)], [end_container.example()]
                elif k < len(end) and isinstance(end[k], TensorList):
                    yield lists[id(value.container)], [end[k].example()]


def may_grow(container: Any) -> bool:
    """Return whether a container can become a traced one: a list, or a deque without a limit."""
    return type(container) is list or (type(container) is deque and container.maxlen is None)


def _check_binding(state: State, start: Sequence[Any], k: int) -> None:
    location = state.locations[k - len(state.variables)]
    assert isinstance(location, Contents)
    for value in start:
        if isinstance(value, Reference) and value.container is location.container:
            return
    raise StructureError(
        explain(
            f"`{location.label}` grows in a loop or branch that is recorded, through a function "
            "that reaches it some other way.",
            cure="append to it in the function that makes it, or return what is to be appended; "
            "where a handler appends to it, too, keep the values in an array: out[k] = value.",
        )
    )


def _promote(
    state: State, start: list[Any], k: int, examples: Sequence[Any]
) -> tuple[Contents, TensorList]:
    """Promote a list to a traced one; return its former location, and the traced one."""
    index = k - len(state.variables)
    location = state.locations[index]
    assert isinstance(location, Contents)
    location.write(start[k])  # restore the list: an enclosing `if` compares with it
    note_first_items(location.container)
    kind = TensorDeque if isinstance(location.container, deque) else TensorList
    ref = kind.of(start[k], examples)
    promoted_location = Contents(location.label, ref)
    state.promoted_lists.append((index, location))
    state.locations[index] = promoted_location
    state.keys = {*state.keys - {location.key}, promoted_location.key}
    start[k] = ref.copy()
    for j, value in enumerate(start):
        if isinstance(value, Reference) and value.container is location.container:
            start[j] = Reference(ref)
    return location, ref
