"""Mutable containers that are no arrays: lists, dicts, sets, deques and the like."""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from wend.base import trees
from wend.base.instances import stored_attribute
from wend.base.lazy.dataclass import dataclass
from wend.capture.heap.buffers import BUFFERS, assign_bytes, restorable_bytes
from wend.trace.control.tensor_list import TensorList

CONTAINER_TYPES = (list, dict, set, deque, *BUFFERS)

# Methods that mutate their container
_MUTATING_METHODS = frozenset(
    {
        *("append", "appendleft", "clear", "extend", "extendleft", "insert"),
        *("pop", "popleft", "popitem", "remove", "reverse", "rotate", "sort"),
        *("add", "discard", "setdefault", "update", "move_to_end"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
        *("byteswap", "frombytes", "fromfile", "fromlist"),
        *("__setitem__", "__delitem__", "__iadd__", "__imul__"),
        *("__ior__", "__iand__", "__isub__", "__ixor__"),
    }
)


def is_container(value: Any) -> bool:
    """Return whether a value is a mutable container, not an array."""
    return isinstance(value, (*CONTAINER_TYPES, TensorList))


def base_of(container: Any) -> Any:
    """Return the class of Python that a container derives from; its own class if there is none.

    Its methods run no code of the user's.
    """
    bases = (OrderedDict, dict, list, deque, set)
    return next((base for base in bases if isinstance(container, base)), type(container))


def outermost_containers(value: Any) -> Iterator[Any]:
    """Yield a value if it is a container; of a tuple, the containers that it holds."""
    if isinstance(value, tuple):
        for item in value:
            yield from outermost_containers(item)
    elif is_container(value):
        yield value


def holds_containers(value: Any) -> bool:
    """Return whether a value is a tuple that holds a container, perhaps in another tuple."""
    return isinstance(value, tuple) and any(True for _ in outermost_containers(value))


def mutated_by(method: Any) -> Any:
    """Return the container that a bound method mutates, or None."""
    owner = stored_attribute(method, "__self__")
    is_mutating_method = (
        is_container(owner) and stored_attribute(method, "__name__", "") in _MUTATING_METHODS
    )
    return owner if is_mutating_method else None


def is_mutating_method(descriptor: Any) -> bool:
    """Return whether a method of a class, like `list.append`, mutates its first argument."""
    return getattr(descriptor, "__objclass__", None) in (*CONTAINER_TYPES, OrderedDict) and (
        descriptor.__name__ in _MUTATING_METHODS
    )


def copy_containers(value: Any) -> Any:
    """Copy the containers of a pytree and keep its leaves."""
    if isinstance(value, set):
        return set(value)
    if isinstance(value, (list, dict, tuple, deque, TensorList)):
        leaves, treedef = trees.flatten(value)
        return trees.unflatten(treedef, leaves)
    return value


def contents(container: Any) -> Any:
    """Return a container's contents in a plain container; nested containers are copied too."""
    if isinstance(container, BUFFERS):
        return restorable_bytes(container)
    if isinstance(container, OrderedDict):
        pairs = OrderedDict.items(container)
        return OrderedDict((key, copy_containers(item)) for key, item in pairs)
    if isinstance(container, dict):
        return {key: copy_containers(item) for key, item in dict.items(container)}
    if isinstance(container, (list, deque)):
        return [copy_containers(item) for item in base_of(container).__iter__(container)]
    return copy_containers(container)


@dataclass(frozen=True, slots=True)
class ItemOfTuple:
    """The key of an item of a tuple; `key` is that of the tuple."""

    key: Any
    position: int


NestedContainers = dict[Any, tuple[Any, Any]]  # key -> (container, the containers nested in it)


def direct_containers(container: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and the containers that are items of one, or of tuples in it."""
    items: Any = ()
    if isinstance(container, dict):
        items = dict.items(container)
    elif isinstance(container, (list, deque)):
        items = enumerate(base_of(container).__iter__(container))
    for key, item in items:
        yield from _keyed_containers(key, item)


def _keyed_containers(key: Any, item: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(item, tuple):
        for position, part in enumerate(item):
            yield from _keyed_containers(ItemOfTuple(key, position), part)
    elif is_container(item):
        yield key, item


def nested_containers(container: Any, enclosing: frozenset[int] = frozenset()) -> NestedContainers:
    """Return the container objects inside one, at any depth.

    One that contains itself is not entered again; `enclosing` are the ids of those around it.
    """
    enclosing |= {id(container)}
    return {
        key: (item, {} if id(item) in enclosing else nested_containers(item, enclosing))
        for key, item in direct_containers(container)
    }


def replaced_containers(
    before: NestedContainers, now: NestedContainers
) -> Iterator[tuple[Any, Any]]:
    """Yield (old, new) for each key whose container was replaced; None for an absent one."""
    for key in before.keys() | now.keys():
        (old, old_nested), (new, new_nested) = before.get(key, _ABSENT), now.get(key, _ABSENT)
        if old is new:
            yield from replaced_containers(old_nested, new_nested)
        else:
            yield old, new


_ABSENT: tuple[Any, NestedContainers] = (None, {})


def assign_contents(container: Any, value: Any, nested: NestedContainers | None = None) -> None:
    """Give a container new contents; nested containers keep their identity.

    `nested` are the containers that were in it; by default those in it now.
    """
    nested = nested or {}
    if isinstance(container, TensorList):
        container.become(value)
    elif isinstance(container, BUFFERS):
        assign_bytes(container, value)
    elif isinstance(container, set):
        set.clear(container)
        set.update(container, value)
    elif isinstance(container, dict):
        _fill_dict(container, value, nested)
    else:
        kind = base_of(container)
        previous = [*kind.__iter__(container)]
        previous += [None] * (len(value) - len(previous))
        pairs = zip(previous, value, strict=False)
        new_items = [
            _merge_item(nested, k, current, item) for k, (current, item) in enumerate(pairs)
        ]
        kind.clear(container)
        kind.extend(container, new_items)


def assign_items(container: Any, items: list[tuple[Any, Any]]) -> None:
    """Give a list, deque or dict these very items, with their keys."""
    kind = base_of(container)
    kind.clear(container)
    if isinstance(container, dict):
        kind.update(container, items)
    else:
        kind.extend(container, [value for _, value in items])


def _fill_dict(container: dict[Any, Any], value: dict[Any, Any], nested: NestedContainers) -> None:
    merged = {
        key: _merge_item(nested, key, dict.get(container, key), item) for key, item in value.items()
    }
    # Subclasses override these methods: a Counter's `update` counts.
    kind = base_of(container)
    kind.clear(container)
    kind.update(container, merged)


def _merge_item(nested: NestedContainers, key: Any, current: Any, item: Any) -> Any:
    """Return what an item becomes: the container that it was, if that is of the same class."""
    if isinstance(item, tuple):
        return _merge_tuple(nested, key, current, item)
    current, nested_in_it = nested.get(key, (current, {}))
    if current is not item and is_container(current) and type(current) is type(item):
        assign_contents(current, item, nested_in_it)
        return current
    return copy_containers(item)


def _merge_tuple(nested: NestedContainers, key: Any, current: Any, items: tuple[Any, ...]) -> Any:
    parts: Any = [None] * len(items)
    is_alike = type(current) is type(items) and len(current) == len(items)
    if is_alike:
        parts = current
    merged = [
        _merge_item(nested, ItemOfTuple(key, k), part, item)
        for k, (part, item) in enumerate(zip(parts, items, strict=True))
    ]
    if is_alike and all(map(operator.is_, merged, current)):
        return current
    return tuple.__new__(type(items), merged)


def containers_in(value: Any) -> Iterator[Any]:
    """Yield a container, and those in it, each once."""
    pending, seen = [value], {id(value)}
    while pending:
        container = pending.pop()
        if not isinstance(container, CONTAINER_TYPES):
            continue
        yield container
        items: Iterable[Any] = ()
        if isinstance(container, (list, dict, deque)):
            items = container.values() if isinstance(container, dict) else container
        nested = {id(item): item for item in items if id(item) not in seen}
        seen |= nested.keys()
        pending += reversed(nested.values())


def leaves_in(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a pytree, which may contain itself: each part is entered once."""
    pending, seen = [tree], {id(tree): tree}  # held, so that no id is used again
    while pending:
        node = pending.pop()
        children = trees.children(node)
        if children is None:
            yield node
            continue
        nested = {id(child): child for _, child in children if id(child) not in seen}
        seen |= nested
        pending += reversed(nested.values())
