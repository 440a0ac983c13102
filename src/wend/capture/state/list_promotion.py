"""Promotion of lists whose length is known only at run time to `TensorList`s."""

from __future__ import annotations

import operator
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
    return _promote_nested(state, where, start, ends) or bool(grown)


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
    for location in state.locations:
        if isinstance(location, Contents):  # in which lists are promoted by `_promote_nested`
            for _, item in _lists_in("", location.container):
                lists.pop(id(item), None)
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


def _promote_nested(
    state: State, where: str, start: list[Any], ends: Sequence[Sequence[Any]]
) -> bool:
    """Promote the lists that are items of lists and dicts; return whether there were any."""
    has_any = False
    for k, location in enumerate(state.locations, len(state.variables)):
        options = [end[k] for end in ends if k < len(end)]
        if k >= len(start) or not isinstance(location, Contents):
            continue
        value = _with_grown_items(start[k], options)
        if value is start[k]:
            continue
        if not state.promoted_lists:
            state.unpromoted = list(start)
        location.write(start[k])
        lists = dict(_lists_in(location.label, location.container))
        state.promoted_lists.append((k - len(state.variables), location))
        start[k] = value
        location.write(value)
        for label, new in _lists_in(location.label, location.container):
            if new is not (old := lists[label]):
                note_first_items(old)
                _replace_contents(state, start, old, new)
                refuse_others(old, new, label, where)
        has_any = True
    return has_any


def _replace_contents(state: State, start: list[Any], old: Any, new: TensorList) -> None:
    """Put a traced list in place of one whose contents are a location of their own, too."""
    for index, location in enumerate(state.locations):
        if isinstance(location, Contents) and location.container is old:
            state.promoted_lists.append((index, location))
            state.locations[index] = promoted = Contents(location.label, new)
            state.keys = {*state.keys - {location.key}, promoted.key}
            start[index + len(state.variables)] = new.copy()


def _with_grown_items(value: Any, ends: Sequence[Any]) -> Any:
    """Return a list or dict with traced lists in place of those that grow in it."""
    if type(value) not in (list, dict) or any(type(end) is not type(value) for end in ends):
        return value
    if type(value) is dict:
        if any(end.keys() != value.keys() for end in ends):
            return value
        items = {k: _grown_item(item, [end[k] for end in ends]) for k, item in value.items()}
        return value if all(items[k] is item for k, item in value.items()) else items
    if any(len(end) != len(value) for end in ends):
        return value
    rows = [_grown_item(*row) for row in zip(value, zip(*ends, strict=True), strict=True)]
    return value if all(map(operator.is_, rows, value)) else rows


def _grown_item(item: Any, ends: Sequence[Any]) -> Any:
    if not may_grow(item):
        return _with_grown_items(item, ends)
    traced = [end for end in ends if isinstance(end, TensorList)]
    others = [end for end in (item, *ends) if type(end) is type(item)]
    if len(traced) + len(others) != len(ends) + 1:
        return item
    if not traced and len({*map(len, others)}) == 1:
        return _with_grown_items(item, ends)
    longest = max(others, key=len)
    examples = [traced[0].example()] if traced else longest
    if not all(map(is_item, (*longest, *examples))):
        return item
    kind = TensorDeque if isinstance(item, deque) else TensorList
    return kind.of(item, examples)


def _lists_in(label: str, container: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a container holds, with its label, and what the lists and dicts in it hold."""
    if type(container) not in (list, dict, deque):
        return
    items = container.items() if type(container) is dict else enumerate(container)
    for key, item in items:
        if may_grow(item) or isinstance(item, TensorList):
            yield f"{label}[{key!r}]", item
        yield from _lists_in(f"{label}[{key!r}]", item)


def may_grow(container: Any) -> bool:
    """Return whether a container can become a traced one: a list, or a deque without a limit."""
    return type(container) is list or (type(container) is deque and container.maxlen is None)


def _check_binding(state: State, start: Sequence[Any], k: int) -> None:
    location = state.locations[k - len(state.variables)]
    assert isinstance(location, Contents)
    if any(_with_replaced(value, location.container, None) is not value for value in start):
        return
    raise StructureError(
        explain(
            f"`{location.label}` grows in a loop or branch that is recorded, through a function "
            "that reaches it some other way.",
            cure="append to it in the function that makes it, or return what is to be appended; "
            "make the tuple that holds it a list; where a handler appends to it, too, keep the "
            "values in an array: out[k] = value.",
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
    start[:] = [_with_replaced(value, location.container, ref) for value in start]
    return location, ref


def _with_replaced(value: Any, old: Any, new: Any) -> Any:
    """Return a reference to a container, or to a tuple that holds it, with another in its place."""
    if not isinstance(value, Reference):
        return value
    replaced = _replaced_in(value.container, old, new)
    return value if replaced is value.container else Reference(replaced)


def _replaced_in(container: Any, old: Any, new: Any) -> Any:
    if container is old:
        return new
    if type(container) is not tuple:
        return container
    items = [_replaced_in(item, old, new) for item in container]
    return container if all(map(operator.is_, items, container)) else tuple(items)
