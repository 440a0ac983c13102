"""Traced numbers as keys of dicts: the run knows which of the keys of the dict they are.

A read is a choice among the items, with Python's `KeyError`. What may add an item to the dict is
recorded only where nothing else succeeds (`allow_stores`), as the run has to refuse it: the keys of
a dict are part of the trace.
"""

from __future__ import annotations

import functools
import operator
import types
from collections import Counter, defaultdict
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from typing import Any, TypeVar

from wend.base import refusals
from wend.base.context_values import scoped
from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.lookups.traced_index import depends_on_carry, python_may_run
from wend.eager import raising
from wend.eager.dispatch import Staged, read, recorder
from wend.numpy import elementwise as ew
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import is_int64
from wend.trace.recording.recording import current
from wend.trace.state.chosen_keys import DICTS
from wend.trace.state.raised_errors import raise_in_run
from wend.trace.state.text_choice import TextChoice, either

T = TypeVar("T")

_MOST_KEYS = 256
_PLAIN = (bool, int, float, str, type(None))
_CURE = "give the dict an item for each key before: {{0: {0}, 1: {0}}}"


class _Stores:
    """How a trace takes stores at traced keys.

    Attributes:
        are_allowed: whether they are recorded.
        were_met: whether one was refused.
    """

    def __init__(self) -> None:
        self.are_allowed = self.were_met = False


_stores: ContextVar[_Stores | None] = ContextVar("wend_stores_at_traced_keys", default=None)


def allow_stores(trace: Callable[[], T]) -> T:
    """Return what a trace returns; one that stores at traced keys refuse is made with them."""
    if _stores.get() is not None:  # the trace of a caller is made again, if need be
        return trace()
    stores = _Stores()
    with scoped(_stores, stores):
        try:
            return trace()
        except Exception as error:
            if not stores.were_met or not refusals.is_refusal(error):
                raise
            refusals.forget(error)
        stores.are_allowed = True
        return trace()


def key_to_read(owner: Any, key: Any) -> Any:
    """Return a traced key of a dict as a choice among its keys; other keys as they are.

    Record that the run raises `KeyError` if it is none of them; a `Counter` has 0 there.
    """
    if type(owner) is Counter or not is_traced_key(owner, key):
        return key
    if type(owner) is defaultdict:
        return key_to_store(owner, key, [] if owner.default_factory is list else 0)
    choice, is_missing = _choice_of(owner, key)
    if choice is None or is_missing is False:
        return key if choice is None else choice
    error = KeyError(key)
    if not raising.divert(lambda: is_missing, KeyError, lambda: (key,)):
        raising.may_raise("d[k]", (KeyError,))
        raise_in_run(error, is_missing)
    return choice


def item_or(owner: Any, key: Any, default: Any, read_item: Callable[[Any], Any]) -> Any:
    """Return `owner.get(key, default)` of a dict, for a traced key."""
    choice, is_missing = _choice_of(owner, key)
    if choice is None:
        return default if is_missing is True else read_item(key)
    item = choice.mapped(read_item)
    return item if is_missing is False else either(is_missing, default, item)


def reader_of_items(method: Any, callee: Any) -> Any:
    """Return what is called for a method: of `get` of a dict, what takes traced keys, too."""
    is_get = isinstance(method, types.BuiltinMethodType) and method.__name__ == "get"
    return functools.partial(_get, method.__self__, callee) if is_get else callee


def _get(owner: Any, callee: Any, /, *args: Any) -> Any:
    if not args or not is_traced_key(owner, args[0]):
        return callee(*args)
    default = args[1] if len(args) == 2 else None
    return item_or(owner, args[0], default, lambda key: callee(key, default))


def key_to_store(owner: Any, key: Any, default: Any = 0) -> Any:
    """Return a traced key of a dict as a choice among its keys; other keys as they are.

    Record that the run refuses to add a key; `default`: what a new item would be.

    Raises:
        ConcreteValueError: the dict has no such key, or too many.
    """
    stores = _stores.get()
    if stores is None or not is_traced_key(owner, key):
        return key
    if not stores.are_allowed:
        stores.were_met = True
        return key
    choice, is_missing = _choice_of(owner, key)
    if is_missing is False:
        return choice
    error = ConcreteValueError(
        explain(
            f"a dict gets an item at a new key{at(user_source())}: only the run knows which.",
            cure=_CURE.format(default) + ("; or store in an array." if default == 0 else "."),
        )
    )
    if choice is None:
        raise error
    refusals.forget(error)  # until the run raises it
    raise_in_run(error, is_missing)
    return choice


def is_traced_key(owner: Any, key: Any) -> bool:
    """Return whether a key of a dict has traced numbers, which may be any of its keys."""
    if type(owner) not in DICTS or current() is None:
        return False
    parts = key if type(key) is tuple else (key,)
    return any(map(_is_traced_number, parts)) and all(map(_is_part, parts))


def _is_traced_number(part: Any) -> bool:
    if not isinstance(part, Staged):
        return False
    part = read(part)
    if not isinstance(part, Tracer) or getattr(part.value.type, "shape", None) != ():
        return False
    scope = recorder.get()
    if part.type.dtype.kind not in "biuf" or scope is None:
        return False
    counts_trips = python_may_run.get() and depends_on_carry(part)
    return not counts_trips and scope.known_elements(part) is None


def _is_part(part: Any) -> bool:
    is_plain = type(part) in (*_PLAIN, TextChoice)
    return is_plain or isinstance(part, (Enum, Staged))


def _choice_of(owner: dict[Any, Any], key: Any) -> tuple[TextChoice | None, Any]:
    """Return which key of a dict a traced one is, if it is one, and whether it is none."""
    tests = [(option, test) for option in owner if (test := _is_key(key, option)) is not False]
    options = tuple(option for option, _ in tests)
    if len(tests) > _MOST_KEYS:
        return None, None
    if not tests:
        return None, True
    if options == tuple(range(len(options))) and type(key) is not tuple and _is_integer(key):
        is_missing = ew.logical_or(key < 0, key >= len(options))
        return TextChoice(read(key).as_weak(), options), is_missing.as_weak()
    index: Any = len(options) - 1
    for k in reversed(range(len(options) - 1)):
        index = ew.where(tests[k][1], k, index)
    is_any = functools.reduce(ew.logical_or, (test for _, test in tests))
    index = index.as_weak() if isinstance(index, Tracer) else index
    return TextChoice(index, options), ew.logical_not(is_any).as_weak()


def _is_integer(key: Any) -> bool:
    return read(key).type.dtype.kind in "iu"


def _is_key(key: Any, option: Any) -> Any:
    """Return whether a key is one of a dict: False, True, or what the run knows."""
    if type(key) is tuple:
        if type(option) is not tuple or len(option) != len(key):
            return False
        tests = [*map(_is_key, key, option)]
        if any(test is False for test in tests):
            return False
        return functools.reduce(ew.logical_and, [test for test in tests if test is not True], True)
    if isinstance(key, TextChoice):
        is_option = any(type(x) is type(option) and x == option for x in key.options)
        return key.is_at(option) if is_option else False
    if not isinstance(key, Staged):
        return key is option or (type(option) in _PLAIN and type(key) in _PLAIN and key == option)
    is_number = type(option) in (bool, int, float)
    if not is_number or (type(option) is int and not is_int64(option)):
        return False
    if read(key).type.dtype.kind == "b":
        return {0: ew.logical_not(key), 1: key}.get(option, False)
    return ew.equal(key, operator.pos(option))
