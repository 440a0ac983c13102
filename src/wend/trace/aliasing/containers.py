"""Lists, dicts and deques in a value: walking, rebuilding and filling them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Any

from wend.base import trees

CONTAINER_KINDS = (list, dict, deque)


def _dict_kind(value: dict[Any, Any]) -> type[dict[Any, Any]]:
    """Return the class whose methods see a dict as it is; subclasses may override them."""
    return OrderedDict if isinstance(value, OrderedDict) else dict


def children_of(value: Any) -> Sequence[Any]:
    """Return the items of a container or tuple; () of others."""
    if isinstance(value, dict):
        return [*_dict_kind(value).values(value)]
    return value if isinstance(value, (list, tuple, deque)) else ()


def containers_in(value: Any, enclosing: tuple[int, ...] = ()) -> Iterator[Any]:
    """Yield the containers in a value, from outside and the left; one passed twice, twice."""
    if isinstance(value, CONTAINER_KINDS):
        yield value
    for child in children_of(value):
        if isinstance(child, (*CONTAINER_KINDS, tuple)) and id(child) not in enclosing:
            yield from containers_in(child, (*enclosing, id(child)))


def items_of(container: Any) -> list[tuple[Any, Any]]:
    """Return the items of a container with their keys or positions."""
    if isinstance(container, dict):
        return [*_dict_kind(container).items(container)]
    return [*enumerate(container)]


def aliases_of(args: Any, kwargs: Any) -> tuple[int, ...]:
    """Return for each container the number of the first that is the same; () if none is."""
    numbers: dict[int, int] = {}
    occurrences = [
        numbers.setdefault(id(container), len(numbers))
        for container in containers_in((args, kwargs))
    ]
    return () if len(numbers) == len(occurrences) else tuple(occurrences)


def unified(value: Any, aliases: Sequence[int]) -> Any:
    """Return rebuilt arguments in which containers that were one are one again."""
    numbers = iter(aliases)
    firsts: dict[int, Any] = {}

    def unify(value: Any) -> Any:
        if isinstance(value, CONTAINER_KINDS):
            number = next(numbers)
            first = firsts.setdefault(number, value)
            items = [unify(child) for child in children_of(value)]
            if first is value:
                for (key, _), item in zip(items_of(value), items, strict=True):
                    value[key] = item
            return first
        if not isinstance(value, tuple):
            return value
        items = [unify(child) for child in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if trees.is_namedtuple(type(value)) else tuple(items)

    return unify(value)


def container_like(container: Any, items: Any) -> Any:
    """Return a container of the kind of another with these items, which may be a list or a dict."""
    if isinstance(container, dict):
        values = items.values() if isinstance(items, dict) else items
        new = container.copy()
        for (key, _), item in zip(items_of(container), values, strict=True):
            new[key] = item
        return new
    return deque(items, container.maxlen) if isinstance(container, deque) else items


def assign_items(container: Any, items: Any) -> None:
    """Give a container these items, which a list or a dict holds."""
    if isinstance(container, dict):
        kind = _dict_kind(container)
        kind.clear(container)
        for key, item in items.items():
            kind.__setitem__(container, key, item)
    elif isinstance(container, deque):
        container.clear()
        container.extend(items)
    else:
        list.__setitem__(container, slice(None), items)
