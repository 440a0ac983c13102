"""Instances of classes that a loop or branch replaces.

Such a variable is a graph value by the attributes of its instance: `b = replace(b, x=...)`, or
`b = Ball(b.x + b.v, b.v)`. What holds the result is a new instance; `container_phis` records which
instances it may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wend.base import trees
from wend.base.instances import is_replaceable
from wend.base.keys import attributes_of, is_equal
from wend.capture.heap.containers import is_container
from wend.capture.heap.locations import UNBOUND
from wend.capture.state.unbound import possible_value
from wend.trace.recording.arguments import is_array_leaf

_MAX_DEPTH = 8  # of nested instances and tuples; an instance may hold itself


def is_mergeable(value: Any) -> bool:
    """Return whether a value is an instance, or a tuple with some, of arrays and numbers.

    Texts, functions and classes in attributes are part of its structure. Lists and other
    containers are not possible: they would be other objects than those that were passed.
    """
    if value is UNBOUND or not _has_instances(value) or _has_containers(value, 0):
        return False
    leaves, _ = trees.flatten_deep(value, keeps_static=True, with_objects=True)
    return bool(leaves) and all(map(is_array_leaf, leaves))


def copied(value: Any) -> Any:
    """Return a copy of a mergeable value; its arrays and numbers are the same."""
    leaves, treedef = trees.flatten_deep(value, keeps_static=True, with_objects=True)
    return trees.unflatten(treedef, leaves)


def differing_attribute(one: Any, other: Any) -> tuple[str, Any, Any] | None:
    """Return the first attribute of two mergeable instances that their structures differ in.

    It comes with its values: other texts, functions or classes. None if there is none.
    """
    if type(one) is not type(other) or isinstance(one, tuple):
        return None
    if not (is_mergeable(one) and is_mergeable(other)):
        return None
    attributes = dict(attributes_of(other))
    for name, value in attributes_of(one):
        pair = value, attributes.get(name)
        flat = [trees.flatten_deep(x, keeps_static=True, with_objects=True) for x in pair]
        leaves, treedefs = zip(*flat, strict=True)
        if not (trees.is_same_structure(*treedefs) and all(map(_may_be_one_leaf, *leaves))):
            return name, *pair
    return None


def _may_be_one_leaf(one: Any, other: Any) -> bool:
    return one is other or (is_array_leaf(one) and is_array_leaf(other)) or is_equal(one, other)


def _has_instances(value: Any) -> bool:
    value = possible_value(value)
    if isinstance(value, tuple):
        return any(map(_has_instances, value))
    return is_replaceable(value)


def _has_containers(value: Any, depth: int) -> bool:
    """Return whether a value holds containers, or is nested too deeply to be a value."""
    value = possible_value(value)
    if isinstance(value, tuple):
        parts: Iterable[Any] = value
    elif is_replaceable(value):
        parts = (part for _, part in attributes_of(value))
    else:
        return is_container(value)
    return depth == _MAX_DEPTH or any(_has_containers(part, depth + 1) for part in parts)
