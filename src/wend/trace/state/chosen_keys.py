"""Choices of texts as keys of dicts."""

from __future__ import annotations

import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from enum import EnumType
from typing import Any

from wend.trace.state.text_choice import TextChoice, either, mapped

DICTS = frozenset({dict, OrderedDict, defaultdict, Counter})


def has_choice(key: Any) -> bool:
    """Return whether a key is a choice, or a tuple with some."""
    return type(key) is TextChoice or (
        type(key) is tuple and any(type(part) is TextChoice for part in key)
    )


def at_choice(owner: Any, item_at: Callable[[Any], Any], key: Any) -> Any:
    """Return the item at a key that is a choice, or a tuple with some."""
    if hasattr(type(owner), "__missing__") and type(owner) is not Counter:
        # Reading a key that is missing may insert it
        has_all = type(key) is TextChoice and all(option in owner for option in key.options)
        key = key if has_all else known_key(key)
    if type(key) is TextChoice and _has_own_lookup(owner):
        return key.by_branches(item_at)
    if type(key) is TextChoice:
        return key.mapped(item_at)
    return mapped(lambda *parts: item_at(parts), *key) if type(key) is tuple else item_at(key)


def _has_own_lookup(owner: Any) -> bool:
    """Return whether a function of Python looks up items, which may have effects."""
    lookup = getattr(type(owner), "__getitem__", None)
    return isinstance(lookup, types.FunctionType) and not isinstance(owner, EnumType)


def store_at_choice(owner: dict[Any, Any], key: Any, value: Any) -> None:
    """Run `owner[key] = value` of a dict that has an item for each option."""
    if type(key) is not TextChoice or any(option not in owner for option in key.options):
        owner[known_key(key)] = value
        return
    for option in key.options:
        owner[option] = either(key.is_at(option), value, owner[option])


def known_key(key: Any) -> Any:
    """Return a key with texts in place of the choices, as this trace is for."""
    if type(key) is tuple:
        return tuple(map(known_key, key))
    if not isinstance(key, TextChoice):
        return key
    items = ", ".join(f"{option!r}: 0" for option in key.options[:3])
    return key.decided(
        "a key of a dict is needed", f"give the dict an item for each text before: {{{items}}}."
    )
