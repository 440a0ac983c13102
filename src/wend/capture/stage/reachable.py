"""Objects that values reach: containers, and instances of the user's classes."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from wend.capture.heap.containers import assign_items
from wend.capture.heap.places import instance_variables
from wend.eager.dispatch import Staged
from wend.trace.control.tensor_list import TensorList

_CONTAINERS = (list, dict, set, deque)
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.MethodType, Staged, np.ndarray)
_OPAQUE_MODULES = ("builtins", "wend.", "numpy", "scipy", "contextvars", "functools")


def map_leaves(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a value with its arrays mapped, those in tuples too; other objects stay the same."""
    if isinstance(value, tuple):
        items = [map_leaves(item, leaf) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return leaf(value) if isinstance(value, (Staged, np.ndarray)) else value


def leaves_of(value: Any) -> Iterator[Any]:
    """Yield the arrays that a value is, or that it holds in tuples."""
    if isinstance(value, tuple):
        for item in value:
            yield from leaves_of(item)
    elif isinstance(value, (Staged, np.ndarray)):
        yield value


class HeldValues:
    """A mutable object, and what it holds: the items of a container, or the attributes.

    Attributes:
        owner: the object.
        items: the values that it holds, by key for a dict and by name for an instance.
    """

    def __init__(self, owner: Any, items: list[tuple[Any, Any]]) -> None:
        self.owner, self.items = owner, items

    @staticmethod
    def of(owner: Any) -> HeldValues | None:
        """Return what an object holds now, or None if captured code cannot change it."""
        if isinstance(owner, dict):
            return HeldValues(owner, list(dict.items(owner)))
        if isinstance(owner, (list, deque)):
            return HeldValues(owner, list(enumerate(owner)))
        if isinstance(owner, set):
            return HeldValues(owner, [(item, item) for item in owner])
        if isinstance(owner, TensorList):
            return HeldValues(owner, list(enumerate(owner.lists)))
        if isinstance(owner, (*_OPAQUE, tuple)):
            return None
        if type(owner).__module__.startswith(_OPAQUE_MODULES):
            return None
        attributes = instance_variables(owner)
        return None if attributes is None else HeldValues(owner, list(attributes.items()))

    @property
    def is_instance(self) -> bool:
        return not isinstance(self.owner, (*_CONTAINERS, TensorList))

    def values(self) -> list[Any]:
        return [value for _, value in self.items]

    def mapped(self, leaf: Callable[[Any], Any]) -> HeldValues:
        """Return contents with the arrays mapped."""
        if isinstance(self.owner, set):
            return self
        return HeldValues(self.owner, [(key, map_leaves(x, leaf)) for key, x in self.items])

    def is_same(self, other: HeldValues) -> bool:
        """Return whether both are the same objects, under the same keys."""
        return len(self.items) == len(other.items) and all(
            key == other_key and value is other_value
            for (key, value), (other_key, other_value) in zip(self.items, other.items, strict=True)
        )

    def write(self) -> None:
        """Give the object these contents."""
        if isinstance(self.owner, set):
            self.owner.clear()
            self.owner.update(self.values())
        elif isinstance(self.owner, TensorList):
            self.owner.lists = self.values()
        elif not self.is_instance:
            assign_items(self.owner, self.items)
        else:
            attributes = instance_variables(self.owner)
            assert attributes is not None
            attributes.clear()
            attributes.update(self.items)


def reachable(values: Iterable[Any]) -> dict[int, HeldValues]:
    """Return what the objects that values reach hold now, by their ids."""
    pending, seen = list(values), {}
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending += value
            continue
        if id(value) in seen or isinstance(value, (str, int, float, complex, bytes, type(None))):
            continue
        contents = HeldValues.of(value)
        if contents is not None:
            seen[id(value)] = contents
            pending += contents.values()
    return seen
