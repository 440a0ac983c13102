"""Attributes that a loop or branch binds in some runs only.

As for names, reading one is refused, and so is asking whether it exists: `hasattr`, `getattr` with
a default, `vars`, a copy, a result that holds the object. A loop may not bind an attribute that its
first trip has found missing, since the next trip would find it.
"""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MemberDescriptorType
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import explain
from wend.base.instances import is_replaceable
from wend.base.keys import attributes_of
from wend.base.source import at, user_source
from wend.capture.heap import container_phis
from wend.capture.heap.locations import (
    UNBOUND,
    Attribute,
    AttributeOrder,
    is_given_by_class,
    log_write,
)
from wend.capture.heap.partial_attributes import (
    AttributeNames,
    any_partial_names,
    partial_names,
    tracking_partial_names,
)
from wend.capture.heap.places import instance_variables
from wend.capture.state.unbound import UnboundError, possible_value
from wend.eager.dispatch import Staged
from wend.trace.recording.recording import Recording

_Key = tuple[int, str]
_ALL = ""  # in place of a name: all attributes of an object


class _AttributeSet:
    """Attributes of which one trace knows more; objects are held so that no id is reused."""

    def __init__(self, outer: _AttributeSet | None) -> None:
        # Unbound in some runs: with what binds them, and where a value would have to be given
        self.unbound: dict[_Key, tuple[Any, str, str]] = {} if outer is None else {**outer.unbound}
        self.missing: dict[_Key, tuple[Any, str]] = {}  # found missing, with the place


_attributes: ContextVar[_AttributeSet | None] = ContextVar("wend_attributes", default=None)


@contextmanager
def tracking() -> Iterator[None]:
    """Track attributes in this block, the trace of a function."""
    with scoped(_attributes, _AttributeSet(_attributes.get())), tracking_partial_names():
        yield


def note_unbound(location: Attribute, where: str, cure: str) -> None:
    """Record where an attribute is bound in some runs only.

    Raises:
        UnboundError: its class has one, too, which reading it would give.
    """
    attributes = _attributes.get()
    if attributes is not None:
        if _has_other_value(location.owner, location.name):
            use = "an attribute of its class, too"
            raise _unbound_error(location.owner, location.name, use, f"set only {where}", cure)
        key = id(location.owner), location.name
        attributes.unbound[key] = location.owner, f"bound only {where}", cure


def _has_other_value(owner: Any, name: str) -> bool:
    """Return whether the class has a value that is read where an object has no such attribute."""
    held = inspect.getattr_static(type(owner), name, UNBOUND)
    no_values = type(UNBOUND), MemberDescriptorType, functools.cached_property
    return not isinstance(held, no_values)


def enter_region(originals: Sequence[Any], copies: Sequence[Any]) -> None:
    """Record what a region's variables hold in place of their previous values."""
    originals, copies = [*map(possible_value, originals)], [*map(possible_value, copies)]
    container_phis.enter_region(originals, copies)
    _inherit(copies, originals)


def merge_paths(
    results: Sequence[Any],
    options: Sequence[Sequence[Any]],
    outer: Recording,
    *,
    repeats: bool = False,
) -> None:
    """Record what the results of a branch or loop may be (`container_phis.merge_paths`)."""
    results = [*map(possible_value, results)]
    options = [[*map(possible_value, row)] for row in options]
    container_phis.merge_paths(results, options, outer, repeats=repeats)
    _inherit(results, *options)


def _inherit(results: Sequence[Any], *options: Sequence[Any]) -> None:
    """Note of the objects in results what is noted of those that they may be, by position."""
    attributes = _attributes.get()
    if attributes is None or not attributes.unbound:
        return
    for result, *row in zip(results, *options, strict=False):
        for option in row:
            for new, old in container_phis.paired_containers(result, option):
                for (key, name), (_, where, cure) in [*attributes.unbound.items()]:
                    if key == id(old):
                        attributes.unbound.setdefault((id(new), name), (new, where, cure))


def is_maybe_bound(location: Attribute) -> bool:
    """Return whether an attribute is bound in some runs only."""
    attributes = _attributes.get()
    return attributes is not None and (id(location.owner), location.name) in attributes.unbound


def note_missing(owner: Any, name: str = _ALL) -> None:
    """Record that code has found an attribute missing, or has looked which ones exist.

    Raises:
        UnboundError: it exists in some runs.
    """
    attributes = _attributes.get()
    if attributes is None:
        return
    for (key, unbound_name), (_, where, cure) in attributes.unbound.items():
        is_asked = key == id(owner) and name in (_ALL, unbound_name)
        if is_asked and Attribute("", owner, unbound_name).read() is UNBOUND:
            raise _unbound_error(owner, unbound_name, f"read{at(user_source())}", where, cure)
    if name == _ALL:
        check_own(owner, f"read{at(user_source())}")
    attributes.missing[id(owner), name] = owner, at(user_source())


def check_own(owner: Any, use: str, name: str = _ALL) -> None:
    """Check that an object itself, and not its class, has the same attributes in all runs.

    Raises:
        UnboundError: it has one in some runs.
    """
    for partial, where in partial_names(owner).items():
        is_own = partial in (instance_variables(owner) or ()) and is_given_by_class(owner, partial)
        if name in (_ALL, partial) and is_own:
            raise _unbound_error(owner, partial, use, where, "before")


def deleted_from(owner: Any, name: str, /) -> Any:
    """Return an object that is about to lose an attribute."""
    if _attributes.get() is not None and not isinstance(owner, Staged):
        note_missing(owner, name)
        check_own(owner, f"deleted{at(user_source())}", name)
    return owner


def check_whole(value: Any, place: str) -> None:
    """Check that the objects in a value have the same attributes in all runs.

    Args:
        value: a value whose attributes are read by others than captured code.
        place: what it is part of, for the message.

    Raises:
        UnboundError: an attribute exists in some runs.
    """
    attributes = _attributes.get()
    if attributes is None or not (attributes.unbound or any_partial_names()):
        return
    unbound = {
        key: (name, where, cure)
        for (key, name), (owner, where, cure) in attributes.unbound.items()
        if Attribute("", owner, name).read() is UNBOUND
    }
    for owner in _objects_in(value) if unbound or any_partial_names() else ():
        check_own(owner, f"part of {place}")
        if id(owner) in unbound:
            name, where, cure = unbound[id(owner)]
            raise _unbound_error(owner, name, f"part of {place}", where, cure)


def _objects_in(value: Any) -> Iterator[Any]:
    """Yield the objects in a value, each once, with what their attributes hold."""
    pending, seen = [value], {id(value): value}
    while pending:
        part = pending.pop()
        parts: Iterable[Any] = ()
        if isinstance(part, dict):
            parts = [*part.keys(), *part.values()]
        elif isinstance(part, (list, tuple, set, frozenset, deque)):
            parts = part
        elif is_replaceable(part):
            yield part
            parts = [x for _, x in attributes_of(part)]
        nested = {id(x): x for x in parts if id(x) not in seen}
        seen |= nested
        pending += nested.values()


def _unbound_error(owner: Any, name: str, use: str, where: str, cure: str) -> UnboundError:
    return UnboundError(
        explain(
            f"`{type(owner).__name__}.{name}` is {use}, but it is {where}.",
            cure=f"give it a value {cure}.",
        )
    )


def forget_missing() -> dict[_Key, tuple[Any, str]]:
    """Start a new record of missing attributes; return the old one, for `restore_missing`."""
    attributes = _attributes.get()
    if attributes is None:
        return {}
    old, attributes.missing = attributes.missing, {}
    return old


def restore_missing(old: dict[_Key, tuple[Any, str]]) -> None:
    """Add the record from before a loop to that of the loop."""
    attributes = _attributes.get()
    if attributes is not None:
        attributes.missing = old | attributes.missing


def check_first_bound(location: Attribute, where: str) -> None:
    """Check an attribute that a loop binds first.

    Raises:
        UnboundError: the loop has found it missing before.
    """
    attributes = _attributes.get()
    missing = {} if attributes is None else attributes.missing
    for name in (location.name, _ALL):
        if (id(location.owner), name) in missing:
            _, place = missing[id(location.owner), name]
            raise UnboundError(
                explain(
                    f"{where}: `{location.label}` is found missing{place}, and bound in the same "
                    "loop: only its first trip would find it missing.",
                    cure=f"give `{location.label}` a value before the loop.",
                )
            )


def check_first_own(
    order: AttributeOrder, before: AttributeNames, after: AttributeNames, where: str
) -> None:
    """Check the attributes that a loop gives to an object whose class may have them.

    Raises:
        UnboundError: the loop has asked before which ones the object has.
    """
    missing = {} if (attributes := _attributes.get()) is None else attributes.missing
    if (id(order.owner), _ALL) in missing:
        for name in {*after.names}.difference(before.names):
            check_first_bound(Attribute(f"{order.label}.{name}", order.owner, name), where)


# What captured code calls
def read_attribute(owner: Any, name: str) -> Any:
    """Return `owner.name`."""
    if name == "__dict__":
        note_missing(owner)
    is_cached = isinstance(getattr(type(owner), name, None), functools.cached_property)
    if is_cached and name not in vars(owner):
        note_first_read(owner, name)
    return getattr(owner, name)


def note_first_read(owner: Any, name: str) -> None:
    """Log that a cached property is about to be computed, which binds an attribute."""
    note_missing(owner, name)
    log_write(Attribute(f"{type(owner).__name__}.{name}", owner, name), is_certain=True)


def variables_of(*owners: Any) -> Any:
    """Return `vars(owner)`."""
    for owner in owners:
        note_missing(owner)
    return vars(*owners)
