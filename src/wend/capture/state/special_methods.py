"""Special methods of users' classes that code written in C calls: they are called captured.

`len(x)`, `float(x)`, `list(x)` and a `for` find a method in the class of `x`. They get a *proxy* of
`x`, whose class has the same special methods in captured form. What those return, which errors are
raised, and what is tried next where a method is missing is then up to Python.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import itertools
import math
import operator
import types
from collections.abc import Callable
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from wend.base.handling.handlers import note_entered, note_left
from wend.base.source import user_frame
from wend.capture.state import operands
from wend.eager.checking import checked
from wend.eager.dispatch import Staged
from wend.trace.arrays.attributes import class_of
from wend.trace.recording.recording import is_traced_now


def _special(*names: str) -> frozenset[str]:
    return frozenset(f"__{name}__" for name in names)


# Their results must be of a class that code written in C checks
_CHECKED = _special("int", "float", "complex", "index", "bool", "hash", "len")
_OF_ITEMS = _special("iter", "next", "getitem")
_NAMES = _CHECKED | _OF_ITEMS | _special("reversed", "delitem", "neg", "pos", "invert", "abs")
_NAMES |= _special("round", "floor", "ceil", "trunc", "divmod", "rdivmod", "pow", "rpow")
# Errors of these methods end the items
_ENDS = {"__next__": (StopIteration,), "__getitem__": (StopIteration, IndexError)}


class _Proxy:
    """An object of a user's class, as code written in C gets it."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        self._owner = owner


class _TracedResult(BaseException):
    """A traced number that a method has returned, which code written in C cannot take."""

    def __init__(self, owner: Any, name: str, number: Any) -> None:
        self.owner, self.name, self.number = owner, name, number


class _EndOfItems(contextlib.suppress):
    """The code that takes items, which ends when an error says that there are no more."""

    what = "for"


_Classes: TypeAlias = WeakKeyDictionary[type, Any]
_classes: dict[frozenset[str], _Classes] = {
    names: WeakKeyDictionary() for names in (_NAMES, _OF_ITEMS)
}


def proxied(x: Any, names: frozenset[str] = _NAMES) -> Any:
    """Return an object of a user's class as code written in C gets it; other values unchanged."""
    if not operands.any_users(x) or not is_traced_now():
        return x
    kind, classes = type(x), _classes[names]
    if kind not in classes:
        classes[kind] = _proxy_class(kind, names)
    proxy = classes[kind]
    return x if proxy is None else proxy(x)


def owner_of(x: Any) -> Any:
    """Return the object that a proxy stands for; other values unchanged."""
    return x._owner if isinstance(x, _Proxy) else x


def iterated(x: Any) -> Any:
    """Return what a user's object gives items by; other values unchanged."""
    proxy = proxied(x, _OF_ITEMS)  # how many there are may be asked by way of a hint, too
    is_iterable = hasattr(type(proxy), "__iter__") or hasattr(type(proxy), "__getitem__")
    return iter(proxy) if proxy is not x and is_iterable else x


def _proxy_class(kind: type, names: frozenset[str]) -> type | None:
    """Build the class of proxies; None if there is no need of one, or a base is written in C."""
    bases = kind.__mro__[:-1]
    if not all(base.__flags__ & operands.HEAP_TYPE for base in bases):
        return None
    methods: dict[str, Any] = {}
    for base in reversed(bases):
        for name in names & vars(base).keys():
            methods[name] = None if vars(base)[name] is None else _forward(name)
    namespace = {"__slots__": (), "__module__": kind.__module__, **methods}
    return type(kind.__name__, (_Proxy,), namespace) if methods else None


def _forward(name: str) -> Callable[..., Any]:
    """Build the method of a proxy that calls the owner's, captured."""

    def run(self: Any, *arguments: Any) -> Any:
        owner = self._owner
        arguments = tuple(map(owner_of, arguments))
        ends = _ENDS.get(name)
        if ends is None:
            result = operands.ask(owner, name, *arguments)
        else:
            frame = user_frame()
            assert frame is not None
            note_entered(_EndOfItems(*ends), frame)
            try:
                result = operands.ask(owner, name, *arguments)
            finally:
                note_left()
        if name in _CHECKED and isinstance(result, Staged):
            raise _TracedResult(owner, name, result)
        return proxied(result) if name in ("__iter__", "__reversed__") else result

    return run


def calls_special_methods(fun: Any) -> Callable[..., Any] | None:
    """Return how a function written in C is called with objects of users' classes.

    None if it calls none of their methods, or may keep them.
    """
    # The `__hash__` and `__eq__` of other objects may be the user's
    return _CALLED_WITH.get(fun) if type(fun) in (type, types.BuiltinFunctionType) else None


def _call(fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of numbers or of one object."""
    proxies = tuple(map(proxied, args))
    try:
        result = callee(*proxies, **kwargs)
    except _TracedResult as traced:
        result = _of_number(fun, traced, args, kwargs)
    return owner_of(result)


def _of_number(fun: Any, traced: _TracedResult, args: Any, kwargs: Any) -> Any:
    """Return what a function gives for a traced number that a method has returned."""
    owner, name, number = traced.owner, traced.name, traced.number
    kind = class_of(number)
    example = np.ones(1) if kind is np.ndarray else kind(1)
    example_class = type(type(owner).__name__, (), {name: lambda self: example})
    others = tuple(x if x is not owner else example_class() for x in args)
    if not any(isinstance(x, Staged) for x in others):
        fun(*others, **kwargs)  # Python's error, if it is of another class
    if fun is reversed:
        operator.index(number)  # the refusal of a number that Python needs
    if fun is len:
        text = "__len__() should return >= 0"
        return checked(number, (number < 0, ValueError, text)).as_weak()
    return operands.call(fun)(*(x if x is not owner else number for x in args), **kwargs)


def _call_with_items(first: int, fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function that takes the items of its arguments, from a position on."""
    is_choice = (fun is min or fun is max) and len(args) > 1
    items = args if is_choice else (*args[:first], *map(iterated, args[first:]))
    return callee(*items, **kwargs)


_FUNCTIONS = (
    *(abs, len, float, int, complex, round, hash, divmod, reversed, iter, range, bin, oct, hex),
    *(chr, operator.index, operator.abs, operator.neg, operator.pos),
    *(operator.invert, operator.inv),
    *(function for function in vars(math).values() if inspect.isbuiltin(function)),
)
_TAKE_ITEMS = (
    *(list, tuple, set, frozenset, sum, sorted, any, all, enumerate, zip, min, max),
    *(collections.deque, math.fsum, math.prod, math.dist),
    *(kind for kind in vars(itertools).values() if isinstance(kind, type)),
    itertools.chain.from_iterable,
)
_CALL_THEIR_FIRST = {
    *(map, filter, functools.reduce),
    *(itertools.filterfalse, itertools.dropwhile, itertools.takewhile, itertools.starmap),
}
_CALLED_WITH: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(_FUNCTIONS, _call),
    **dict.fromkeys(_TAKE_ITEMS, functools.partial(_call_with_items, 0)),
    **dict.fromkeys(_CALL_THEIR_FIRST, functools.partial(_call_with_items, 1)),
}
