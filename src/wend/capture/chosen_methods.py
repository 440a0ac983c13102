"""Methods of the containers in a list or dict, at a position or key that only the run knows.

`groups[k].append(x)` may change any of the lists of `groups`: it is recorded as a branch for each.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from wend.capture.attributes import method
from wend.capture.calls import call
from wend.capture.heap.containers import is_container, outermost_containers
from wend.capture.heap.locations import Contents
from wend.capture.lookups.traced_index import known_position
from wend.capture.lookups.traced_keys import is_traced_key, key_to_read, key_to_store
from wend.capture.stage.branches import if_value
from wend.capture.state.assignments import get_item
from wend.capture.state.state import State
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.trace.recording.recording import current
from wend.trace.state.chosen_keys import DICTS
from wend.trace.state.text_choice import MOST_OPTIONS, TextChoice

_Options = Sequence[tuple[Any, Any]]


def call_at(owner: Any, key: Any, name: str, label: str) -> Callable[..., Any]:
    """Return what is called for `owner[key].name`; `label` denotes the owner in messages."""
    options = _options(owner, key, name)
    called: Callable[..., Any] = (
        call(method(get_item(owner, key, True), name))
        if options is None
        else functools.partial(_call_at, owner, options, name, label)
    )
    return called


def call_at_default(owner: Any, key: Any, default: Any, name: str, label: str) -> Any:
    """Return what is called for `owner.setdefault(key, default).name`."""
    options = None
    if type(owner) in DICTS and current() is not None:
        options = _options(owner, key_to_store(owner, key, default), name)
    called: Callable[..., Any] = (
        call(method(call(method(owner, "setdefault"))(key, default), name))
        if options is None
        else functools.partial(_call_at, owner, options, name, label)
    )
    return called


def _call_at(
    owner: Any, options: _Options, name: str, label: str, /, *args: Any, **kwargs: Any
) -> Any:
    (key, test), *others = options

    def of_this() -> Any:
        return call(method(get_item(owner, key, True), name))(*args, **kwargs)

    if not others:
        return of_this()
    state = State()
    state.extend([Contents(label, container) for container in outermost_containers(owner)])
    of_others = functools.partial(_call_at, owner, others, name, label, *args, **kwargs)
    return if_value(test, of_this, of_others, state)


def call_of_item(fun: Any, owner: Any, key: Any) -> Any:
    """Return `fun(owner[key])`."""
    options = _options(owner, key) if any(fun is reader for reader in _READERS) else None
    if options is None:
        return call(fun)(get_item(owner, key))
    return _call_of_item(fun, owner, options)


_READERS = (len, sum, max, min, any, all)


def _call_of_item(fun: Any, owner: Any, options: _Options) -> Any:
    (key, test), *others = options

    def of_this() -> Any:
        return call(fun)(get_item(owner, key))

    if not others:
        return of_this()
    return if_value(test, of_this, functools.partial(_call_of_item, fun, owner, others), None)


def _options(owner: Any, key: Any, name: str = "") -> _Options | None:
    """Return the keys that one may be in the run, with tests; None if Python may look it up.

    `name`: the method of the items that is called; none of objects, if they are only looked at.
    """
    if current() is None:
        return None
    if type(owner) in (list, tuple):
        if not isinstance(key, Staged) or not _may_change(owner, name):
            return None
        position = known_position(owner, key)
        if position is None:
            return None
        return [(k, ew.equal(position, k)) for k in range(len(owner))]
    if type(owner) not in DICTS or (owner and not _may_change([*owner.values()], name)):
        return None
    if is_traced_key(owner, key):
        key = key_to_read(owner, key)
    if type(key) is not TextChoice or not isinstance(key.index, Staged):
        return None
    if any(option not in owner for option in key.options):
        items = ", ".join(f"{option!r}: []" for option in key.options[:3])
        cure = f"give the dict an item for each text before: {{{items}}}."
        key.decided("a key of a dict is needed", cure)
        return None
    return [(option, key.is_at(option)) for option in key.options]


def _may_change(items: Sequence[Any], name: str) -> bool:
    """Return whether items are different containers or objects with a method, and not too many."""
    are_different = len({*map(id, items)}) == len(items)
    return (
        0 < len(items) <= MOST_OPTIONS
        and are_different
        and all(
            is_container(item) or isinstance(getattr(type(item), name, None), types.FunctionType)
            for item in items
        )
    )
