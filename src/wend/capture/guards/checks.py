"""Guards as checks on objects, which compiled code makes at every call."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING, GuardCheck
from wend.capture.heap.snapshots import (
    DictSnapshot,
    ElementsSnapshot,
    IdentitySnapshot,
    SequenceSnapshot,
    Snapshot,
    ValueSnapshot,
    items_of,
)


def global_check(names: dict[str, Any], name: str, value: Any) -> GuardCheck:
    """Return the check that a global has a value."""
    return GuardCheck("dict", names, name, value)


def cell_check(cell: types.CellType, value: Any) -> GuardCheck:
    """Return the check that a closure variable has a value."""
    return GuardCheck("cell", cell, None, value)


def attribute_checks(owner: Any, name: str, value: Any) -> Iterator[GuardCheck | None]:
    """Yield the checks that an attribute is held by a value; None if user code runs to find it.

    `value` is a method, property or other descriptor as its class holds it. `MISSING`: there is no
    such attribute.
    """
    kind = type(owner)
    # One that Python code defines is a function.
    if not isinstance(kind.__getattribute__, types.WrapperDescriptorType):
        yield None
    elif value is MISSING:
        hook = owner if issubclass(kind, types.ModuleType) else kind
        is_found_by_python = (
            inspect.getattr_static(hook, "__getattr__", MISSING) is not MISSING
            or inspect.getattr_static(owner, name, MISSING) is not MISSING
        )
        yield None if is_found_by_python else GuardCheck("attribute", owner, name, value)
    elif isinstance(value, property) and getattr(kind, name, None) is value:
        yield GuardCheck("type", owner, None, kind)
        yield GuardCheck("attribute", kind, name, value)
    elif (
        isinstance(value, _METHODS)
        or not hasattr(type(value), "__get__")
        or (isinstance(owner, type) and _is_bound_by_c(value))
    ):
        yield _check_of_result(owner, name, value)
    else:
        yield None


_METHODS = (types.FunctionType, classmethod, staticmethod)


def _is_bound_by_c(descriptor: Any) -> bool:
    """Return whether no Python code runs where a class is asked for a descriptor, as a field."""
    return isinstance(type(descriptor).__get__, types.WrapperDescriptorType)


def _check_of_result(owner: Any, name: str, value: Any) -> GuardCheck | None:
    result, function = getattr(owner, name), getattr(value, "__func__", value)
    if result is value or result is function:
        return GuardCheck("attribute", owner, name, result)
    if type(result) is types.MethodType and result.__func__ is function:
        return GuardCheck("method", owner, name, function)
    return None


def call_check(holds: Callable[[], bool]) -> GuardCheck:
    """Return the check that Python makes by calling a function."""
    return GuardCheck("call", holds, None, True)


def item_check(owner: Any, key: Any, value: Any) -> Iterator[GuardCheck | None]:
    """Yield the checks that a container has an item; None if compiled code cannot tell."""
    kind = type(owner)
    if kind is dict:
        yield GuardCheck("dict", owner, key, value)
    elif kind is list and isinstance(key, int):
        if key < 0:
            yield GuardCheck("length", owner, None, len(owner))
            key += len(owner)
        yield GuardCheck("item", owner, key, value)
    elif not issubclass(kind, tuple):
        yield None


def content_checks(snapshot: Snapshot, value: Any) -> Iterator[GuardCheck]:
    """Yield the checks that a value, known by identity, has the contents of its snapshot.

    `value` matches the snapshot now.
    """
    kind = type(value)
    if isinstance(snapshot, (ValueSnapshot, IdentitySnapshot)):
        return
    if isinstance(snapshot, ElementsSnapshot) and isinstance(value, np.ndarray):
        yield GuardCheck("bytes", value, None, None)
    elif isinstance(snapshot, DictSnapshot) and kind is dict:
        entries = (*value.items(),)
        yield GuardCheck("entries", value, None, tuple(x for entry in entries for x in entry))
        for item_snapshot, (_, item) in zip(snapshot.snapshots, entries, strict=True):
            yield from content_checks(item_snapshot, item)
    elif isinstance(snapshot, SequenceSnapshot) and issubclass(kind, (list, tuple)):
        items = (*items_of(value),)
        if issubclass(kind, list):
            yield GuardCheck("items", value, None, items)
        for item_snapshot, item in zip(snapshot.snapshots, items, strict=True):
            yield from content_checks(item_snapshot, item)
    else:
        yield call_check(lambda: snapshot.matches(value))


def distinct(checks: Iterable[GuardCheck]) -> list[GuardCheck]:
    """Return checks without repetitions, in order."""
    by_identity: dict[tuple[Any, ...], GuardCheck] = {}
    for check in checks:
        key = check.key if isinstance(check.key, (str, int)) else id(check.key)
        by_identity.setdefault((check.kind, id(check.owner), key, id(check.expected)), check)
    return [*by_identity.values()]
