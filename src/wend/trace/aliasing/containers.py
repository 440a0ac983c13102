"""Lists, dicts, deques and instances in a value: walking, rebuilding and filling them.

Instances are those of dataclasses and attrs classes, whose items are their attributes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Any

from wend.base import trees
from wend.base.instances import delete_attribute, has_fields, set_attributes, structure_of
from wend.base.keys import attributes_of

_CONTAINER_KINDS = (list, dict, deque)


def is_container(value: Any) -> bool:
    """Return whether a value is a list, dict or deque, or an instance with fields."""
    return isinstance(value, _CONTAINER_KINDS) or has_fields(value)


def _dict_kind(value: dict[Any, Any]) -> type[dict[Any, Any]]:
    """Return the class whose methods see a dict as it is; subclasses may override them."""
    return OrderedDict if isinstance(value, OrderedDict) else dict


def children_of(value: Any) -> Sequence[Any]:
    """Return the items of a container or tuple; () of others."""
    if isinstance(value, dict):
        return [*_dict_kind(value).values(value)]
    if has_fields(value):
        return [item for _, item in attributes_of(value)]
    return value if isinstance(value, (list, tuple, deque)) else ()


def containers_in(value: Any, enclosing: tuple[int, ...] = ()) -> Iterator[Any]:
    """Yield the containers in a value, from outside and the left; one passed twice, twice."""
    if is_container(value):
        yield value
    for child in children_of(value):
        if (isinstance(child, tuple) or is_container(child)) and id(child) not in enclosing:
            yield from containers_in(child, (*enclosing, id(child)))


def items_of(container: Any) -> list[tuple[Any, Any]]:
    """Return the items of a container with their keys, names or positions."""
    if isinstance(container, dict):
        return [*_dict_kind(container).items(container)]
    if has_fields(container):
        return attributes_of(container)
    return [*enumerate(container)]


def aliases_of(args: Any, kwargs: Any, leaves: Sequence[Any] = ()) -> tuple[int, ...]:
    """Return for each container the number of the first that is the same; () if none is.

    `leaves` are those of the arguments: instances among them are no containers.
    """
    numbers: dict[int, int] = {}
    occurrences = [
        numbers.setdefault(id(container), len(numbers))
        for container in containers_in((args, kwargs), whole(leaves))
    ]
    return () if len(numbers) == len(occurrences) else tuple(occurrences)


def whole(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Return the ids of the instances among leaves, whose attributes are not traced."""
    return tuple([id(leaf) for leaf in leaves if has_fields(leaf)])


def unified(value: Any, aliases: Sequence[int], leaves: Sequence[Any] = ()) -> Any:
    """Return rebuilt arguments in which containers that were one are one again."""
    numbers, instances = iter(aliases), whole(leaves)
    firsts: dict[int, Any] = {}

    def unify(value: Any) -> Any:
        if is_container(value) and id(value) not in instances:
            number = next(numbers)
            first = firsts.setdefault(number, value)
            items = [unify(child) for child in children_of(value)]
            if first is value:
                _set_items(value, [key for key, _ in items_of(value)], items)
            return first
        if not isinstance(value, tuple):
            return value
        items = [unify(child) for child in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if trees.is_namedtuple(type(value)) else tuple(items)

    return unify(value)


def _set_items(container: Any, keys: Sequence[Any], items: Sequence[Any]) -> None:
    if has_fields(container):
        set_attributes(container, dict(zip(keys, items, strict=True)))
        return
    for key, item in zip(keys, items, strict=True):
        container[key] = item


def container_like(container: Any, items: Any) -> Any:
    """Return a container of the kind of another with these items, which may be a list or a dict."""
    if has_fields(container):
        return structure_of(container).make([*items])
    if isinstance(container, dict):
        values = items.values() if isinstance(items, dict) else items
        new = container.copy()
        for (key, _), item in zip(items_of(container), values, strict=True):
            new[key] = item
        return new
    return deque(items, container.maxlen) if isinstance(container, deque) else items


def assign_items(container: Any, items: Any) -> None:
    """Give a container these items, which a list, a dict or another instance holds."""
    if has_fields(container):
        set_items(container, attributes_of(items))
    elif isinstance(container, dict):
        kind = _dict_kind(container)
        kind.clear(container)
        for key, item in items.items():
            kind.__setitem__(container, key, item)
    elif isinstance(container, deque):
        container.clear()
        container.extend(items)
    else:
        list.__setitem__(container, slice(None), items)


def set_item(container: Any, key: Any, item: Any, *, is_new: bool) -> None:
    """Give a container an item, after the others if it `is_new`.

    A position that a list does not have is passed over: a later change replaces all its items.
    """
    if has_fields(container):
        set_attributes(container, {key: item})
    elif isinstance(container, dict):
        _dict_kind(container).__setitem__(container, key, item)
    elif is_new:
        kind = deque if isinstance(container, deque) else list
        kind.append(container, item)
    elif key < len(container):
        kind = deque if isinstance(container, deque) else list
        kind.__setitem__(container, key, item)


def set_items(container: Any, items: Sequence[tuple[Any, Any]]) -> None:
    """Give a container items as `items_of` returns them."""
    if not has_fields(container):
        values = dict(items) if isinstance(container, dict) else [item for _, item in items]
        assign_items(container, values)
        return
    before, now = dict(attributes_of(container)), dict(items)
    for name in before.keys() - now.keys():
        delete_attribute(container, name)
    new = {k: x for k, x in now.items() if k not in before or before[k] is not x}
    set_attributes(container, new)
