"""What can change in place and is no array: lists, dicts, sets, deques and their kin."""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

from wend.base import trees
from wend.trace.control.tensor_list import TensorList

_OF_BYTES = (bytearray, array)
KINDS = (list, dict, set, deque, *_OF_BYTES)

# Methods that change what they are called on
_CHANGING = frozenset(
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
    """Whether a value can change in place, and is no array."""
    return isinstance(value, (*KINDS, TensorList))


def changed_by(method: Any) -> Any:
    """The container that a method changes when it is called; None if it changes none."""
    owner = getattr(method, "__self__", None)
    is_changing = is_container(owner) and getattr(method, "__name__", "") in _CHANGING
    return owner if is_changing else None


def is_changing(descriptor: Any) -> bool:
    """Whether a method of a class, as `list.append`, changes its first argument."""
    return getattr(descriptor, "__objclass__", None) in (*KINDS, OrderedDict) and (
        descriptor.__name__ in _CHANGING
    )


def copied(value: Any) -> Any:
    """A pytree's containers anew, its leaves the same."""
    if isinstance(value, set):
        return set(value)
    if isinstance(value, (list, dict, tuple, deque, TensorList)):
        return trees.tree_map(lambda leaf: leaf, value)
    return value


def contents(container: Any) -> Any:
    """What a container holds, as a container of a plain kind; those inside are copied too."""
    if isinstance(container, _OF_BYTES):
        return bytes(container)
    if isinstance(container, OrderedDict):
        return OrderedDict((key, copied(item)) for key, item in container.items())
    if isinstance(container, dict):
        return {key: copied(item) for key, item in dict.items(container)}
    if isinstance(container, (list, deque)):
        return [copied(item) for item in container]
    return copied(container)


Parts = dict[Any, tuple[Any, Any]]  # containers in one, by place, each with those in it


def parts(container: Any) -> Parts:
    """The very containers that one holds, at any depth."""
    if isinstance(container, dict):
        items: Any = dict.items(container)
    elif isinstance(container, (list, deque)):
        items = enumerate(container)
    else:
        return {}
    return {place: (item, parts(item)) for place, item in items if is_container(item)}


def replaced(before: Parts, now: Parts) -> Iterator[tuple[Any, Any]]:
    """The containers that are no longer in their places, with those that are; None for none."""
    for place in before.keys() | now.keys():
        (old, inner), (new, others) = before.get(place, _NOTHING), now.get(place, _NOTHING)
        if old is new:
            yield from replaced(inner, others)
        else:
            yield old, new


_NOTHING: tuple[Any, Parts] = (None, {})


def fill(container: Any, value: Any, own: Parts | None = None) -> None:
    """Give a container other contents; containers in it stay the objects they are.

    Args:
        container: what is filled.
        value: the contents.
        own: the containers that were in it; without it those that are in it now.
    """
    own = own or {}
    if isinstance(container, TensorList):
        container.become(value)
    elif isinstance(container, bytearray):
        container[:] = value
    elif isinstance(container, array):
        del container[:]
        container.frombytes(value)
    elif isinstance(container, set):
        container.clear()
        container.update(value)
    elif isinstance(container, dict):
        _fill_dict(container, value, own)
    else:
        old = [*container, *[None] * (len(value) - len(container))]
        pairs = zip(old, value, strict=False)
        merged = [_merged(own.get(k, (mine, {})), item) for k, (mine, item) in enumerate(pairs)]
        if isinstance(container, deque):
            container.clear()
            container.extend(merged)
        else:
            list.__setitem__(container, slice(None), merged)


def _fill_dict(container: dict[Any, Any], value: dict[Any, Any], own: Parts) -> None:
    merged = {
        key: _merged(own.get(key, (dict.get(container, key), {})), item)
        for key, item in value.items()
    }
    if not isinstance(value, OrderedDict) and list(merged) != list(container):
        # The order of keys as it was, new ones last.
        merged = {key: merged[key] for key in (*container, *merged) if key in merged}
    # What a subclass makes of these is its own: a Counter's `update` counts.
    kind = OrderedDict if isinstance(container, OrderedDict) else dict
    kind.clear(container)
    kind.update(container, merged)


def _merged(old: tuple[Any, Parts], item: Any) -> Any:
    mine, own = old
    if mine is not item and is_container(mine) and type(mine) is type(item):
        fill(mine, item, own)
        return mine
    return copied(item)
