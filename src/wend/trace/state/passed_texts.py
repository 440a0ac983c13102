"""Choices of texts as arguments of functions that are not captured."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from wend.trace.state.chosen_keys import DICTS
from wend.trace.state.text_choice import TextChoice, mapped


def mapped_call(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function without effects, for each text that a choice among the arguments may be.

    The methods of an Enum's members may have effects: they run for the member of the run only.
    """
    if len(args) == 1 and isinstance(args[0], TextChoice) and args[0].has_own_text():
        return args[0].by_branches(functools.partial(fun, **kwargs))
    return mapped(functools.partial(fun, **kwargs), *args)


def known_texts(fun: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of a function that is not captured, which needs texts themselves.

    Raises:
        ConcreteValueError: only the run knows one.
    """
    is_exception = isinstance(fun, type) and issubclass(fun, BaseException)
    owner = getattr(fun, "__self__", None)
    if is_exception or isinstance(owner, (list, deque, dict, set, BaseException)):
        return args, kwargs  # which only keep it
    use = f"the text that {getattr(fun, '__name__', fun)!s:.40} gets is needed"
    known = [x.decided(use) if isinstance(x, TextChoice) else x for x in args]
    options = {k: x.decided(use) if isinstance(x, TextChoice) else x for k, x in kwargs.items()}
    return tuple(known), options


def takes_texts(fun: Any) -> bool:
    """Return whether a function may be called for each text that an argument may be."""
    if any(fun is other for other in _BUILTINS):
        return True
    if not isinstance(fun, types.BuiltinMethodType):
        return False
    owner = fun.__self__
    is_of_dict = type(owner) in DICTS and fun.__name__ in _READERS
    return is_of_dict or (type(owner) is str and fun.__name__ not in _FORMATTERS)


_BUILTINS = (len, str, int, float, bool, ord, repr, hash)


_READERS = ("get", "__getitem__", "__contains__")


_FORMATTERS = ("format", "format_map", "join", "__mod__", "__format__")
