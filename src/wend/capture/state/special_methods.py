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
from contextlib import suppress
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from wend.base.handling.handlers import note_entered, note_left
from wend.base.source import user_frame
from wend.capture.state import operands
from wend.eager.checking import checked
from wend.eager.dispatch import Staged
from wend.numpy.ufuncs import has_own_ufuncs
from wend.trace.arrays.attributes import class_of, example_of
from wend.trace.recording.recording import is_traced_now


def _special(*names: str) -> frozenset[str]:
    return frozenset(f"__{name}__" for name in names)


# What checks the results that code written in C takes
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "__int__": int,
    "__float__": float,
    "__complex__": complex,
    "__index__": operator.index,
    "__bool__": bool,
    "__hash__": hash,
    "__len__": len,
}
_OF_ITEMS = _special("iter", "next", "getitem")
_NAMES = frozenset(_CHECKS) | _OF_ITEMS
_NAMES |= _special("reversed", "delitem", "neg", "pos", "invert", "abs")
_NAMES |= _special("round", "floor", "ceil", "trunc", "divmod", "rdivmod", "pow", "rpow")
# Errors of these methods end the items
_ENDS = {"__next__": (StopIteration,), "__getitem__": (StopIteration, IndexError)}


class _Proxy:
    """An object of a user's class, as code written in C gets it."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __hash__(self) -> int:
        return hash(self._owner)

    def __eq__(self, other: object) -> bool:
        is_equal: bool = self._owner == owner_of(other)
        return is_equal


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
    proxy = _class_of_proxies(type(x), names)
    return x if proxy is None else proxy(x)


def owner_of(x: Any) -> Any:
    """Return the object that a proxy stands for; other values unchanged."""
    return x._owner if isinstance(x, _Proxy) else x


def iterated(x: Any) -> Any:
    """Return what a user's object gives items by; other values unchanged."""
    proxy = proxied(x, _OF_ITEMS)  # how many there are may be asked by way of a hint, too
    is_iterable = hasattr(type(proxy), "__iter__") or hasattr(type(proxy), "__getitem__")
    return iter(proxy) if proxy is not x and is_iterable else x


def proxied_items(x: Any) -> Any:
    """Return a user's object as code gets it that asks for an iterator as Python does."""
    return proxied(x, _OF_ITEMS)


def items_of(x: Any) -> Any:
    """Return what code that asks for an iterator takes the items of a user's object from."""
    items = iterated(x)
    return _EnteredItems(items) if isinstance(items, _Proxy) else items


def spread(x: Any) -> Any:
    """Return what `[*x]` and `fun(*x)` take the items from, which ask for the length, too."""
    items = items_of(x)
    if items is not x:
        _ask_for_hint(x)
    return items


def _ask_for_hint(x: Any) -> None:
    """Ask a user's object for its length, or for a hint of it."""
    name = "__len__" if operands.defines(x, "__len__") else "__length_hint__"
    with suppress(TypeError):  # it may be missing
        _as_number(x, name)


class _EnteredItems:
    """The items of a user's iterator, whose `__iter__` has been called: it is not called again."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __iter__(self) -> _EnteredItems:
        return self

    def __next__(self) -> Any:
        return next(self._items)


def _class_of_proxies(kind: type, names: frozenset[str]) -> type | None:
    """Return the class of proxies; None if there is no need of one, or a base is written in C."""
    classes = _classes[names]
    if kind not in classes:
        classes[kind] = _build_class(kind, names)
    result: type | None = classes[kind]
    return result


def _build_class(kind: type, names: frozenset[str]) -> type | None:
    bases = kind.__mro__[:-1]
    if not all(base.__flags__ & operands.HEAP_TYPE for base in bases):
        return None
    # `divmod` asks the right operand first if its class is a subclass and overrides the method.
    parent = _class_of_proxies(bases[1], names) if len(bases) > 1 else None
    methods: dict[str, Any] = {}
    for base in reversed(bases):
        for name in names & vars(base).keys():
            if base is kind or parent is None or not hasattr(parent, name):
                methods[name] = None if vars(base)[name] is None else _forward(name)
    namespace = {"__slots__": (), "__module__": kind.__module__, **methods}
    if parent is None and not methods:
        return None
    return type(kind.__name__, (parent or _Proxy,), namespace)


def _forward(name: str) -> Callable[..., Any]:
    """Build the method of a proxy that calls the owner's, captured."""

    def run(self: Any, *arguments: Any) -> Any:
        ask = _ask_for_item if name in _ENDS else operands.ask
        result = ask(self._owner, name, *map(owner_of, arguments))
        if name in _CHECKS and isinstance(result, Staged):
            raise _TracedResult(self._owner, name, result)
        return proxied(result) if name in ("__iter__", "__reversed__") else result

    return run


def _ask_for_item(owner: Any, name: str, *arguments: Any) -> Any:
    """Call a method captured, whose errors say that there are no more items."""
    frame = user_frame()
    assert frame is not None
    note_entered(_EndOfItems(*_ENDS[name]), frame)
    try:
        return operands.ask(owner, name, *arguments)
    finally:
        note_left()


def caller_with_proxies(fun: Any) -> Callable[..., Any] | None:
    """Return how a function written in C is called with objects of users' classes.

    None if it calls none of their methods, or may keep them.
    """
    if type(fun) in (type, types.BuiltinFunctionType) and fun in _CALLED_WITH:
        return _CALLED_WITH[fun]
    return _call_with_arrays if _takes_arrays(fun) else None


def _takes_arrays(fun: Any) -> bool:
    module = getattr(fun, "__module__", None)
    is_numpy = isinstance(module, str) and module.startswith(("numpy", "wend.numpy"))
    return isinstance(fun, np.ufunc) or (is_numpy and not isinstance(fun, type))


def _call_with_arrays(fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of arrays."""
    if isinstance(fun, np.ufunc) and any(map(has_own_ufuncs, (*args, *_outs(kwargs)))):
        return ask_ufuncs(fun, *args, **kwargs)
    dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None) if fun in _OF_DTYPE else None
    asked = () if dtype is None else (np.dtype(dtype),)
    arrays = [x if _has_method_of(x, fun) else array_of(x, *asked) for x in args]
    return callee(*arrays, **{name: array_of(x) for name, x in kwargs.items()})


_OF_DTYPE = (np.array, np.asarray, np.asanyarray)  # which tell it to `__array__`
# The methods that functions ask for which have another name
_METHODS = {"amax": "max", "amin": "min", "around": "round", "iterable": "__array__"}


def _has_method_of(x: Any, fun: Any) -> bool:
    """Return whether a function of NumPy asks an object for a method or attribute of its name."""
    name = getattr(fun, "__name__", "")
    return operands.any_users(x) and hasattr(x, _METHODS.get(name, name))


def _outs(options: dict[str, Any]) -> tuple[Any, ...]:
    """Return what the results of a ufunc are put into."""
    out = options.get("out")
    outs = out if isinstance(out, tuple) else (out,)
    return tuple(x for x in outs if x is not None)


def ask_ufuncs(ufunc: np.ufunc, *xs: Any, **options: Any) -> Any:
    """Call a ufunc of operands of which one has ufuncs of its own: these are asked, captured.

    NumPy asks one operand of each class, from the left, and subclasses first.
    """
    if not is_traced_now():
        return ufunc(*xs, **options)
    outs = xs[ufunc.nin :] or _outs(options)
    inputs, options = xs[: ufunc.nin], {k: x for k, x in options.items() if k != "out"}
    options |= {"out": outs} if outs else {}
    asked: list[Any] = []
    for x in filter(has_own_ufuncs, (*inputs, *outs)):
        if type(x).__array_ufunc__ is None:
            return ufunc(*inputs, **options)  # NumPy's error
        kinds = [type(other) for other in asked]
        if type(x) not in kinds:
            later = (k for k, kind in enumerate(kinds) if issubclass(type(x), kind))
            asked.insert(next(later, len(asked)), x)
    for x in asked:
        result = operands.ask(x, "__array_ufunc__", ufunc, "__call__", *inputs, **options)
        if result is not NotImplemented:
            return result
    arguments = ", ".join([*map(repr, inputs), *(f"{k}={x!r}" for k, x in options.items())])
    kinds = [class_of(x) if isinstance(x, Staged) else type(x) for x in (*inputs, *outs)]
    raise TypeError(
        "operand type(s) all returned NotImplemented from __array_ufunc__"
        f"({ufunc!r}, '__call__', {arguments}): {', '.join(repr(k.__name__) for k in kinds)}"
    )


def array_of(x: Any, *dtype: Any) -> Any:
    """Return the array that a user's object is taken for; other values unchanged."""
    if type(x) in (list, tuple):
        arrays = [array_of(item, *dtype) for item in x]
        return x if all(map(operator.is_, arrays, x)) else type(x)(arrays)
    if not operands.any_users(x) or not operands.defines(x, "__array__"):
        return x
    if hasattr(type(x), "__array_function__") or hasattr(type(x), "__array_ufunc__"):
        return x
    array = operands.ask(x, "__array__", *dtype)
    is_array = isinstance(array, np.ndarray)
    return array if is_array or isinstance(array, Staged) else x


def _call(fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of numbers or of one object."""
    is_called_until = fun is iter and len(args) > 1
    proxies = args if is_called_until else tuple(map(proxied, args))
    try:
        result = callee(*proxies, **kwargs)
    except _TracedResult as traced:
        result = _result_from_number(fun, traced, args, kwargs)
    return owner_of(result)


def _result_from_number(fun: Any, traced: _TracedResult, args: Any, kwargs: Any) -> Any:
    """Return what a function gives for a traced number that a method has returned."""
    owner, name, number = traced.owner, traced.name, traced.number
    example = example_of(class_of(number))
    example_class = type(type(owner).__name__, (), {name: lambda self: example})
    _CHECKS[name](example_class())  # Python's error, if it is of another class
    if fun is reversed:
        operator.index(number)  # the refusal of a number that Python needs
    if fun is len:
        text = "__len__() should return >= 0"
        return checked(number, (number < 0, ValueError, text)).as_weak()
    numbers = tuple(number if x is owner else _as_number(x, name) for x in args)
    return operands.call(fun)(*numbers, **kwargs)


def _as_number(x: Any, name: str) -> Any:
    """Return the number of a user's object by one of its methods; other values unchanged."""
    return operands.ask(x, name) if operands.defines(x, name) else x


def _call_with_items(which: slice, fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function that takes the items of some of its arguments."""
    items = list(args)
    if not ((fun is min or fun is max) and len(args) > 1):
        asks_later = fun is itertools.chain  # for the iterator of each argument when it begins
        items[which] = map(proxied_items if asks_later else items_of, args[which])
    for x in args[which] if fun in _HINTED else ():
        _ask_for_hint(x)
    return callee(*items, **kwargs)


_FUNCTIONS = (
    *(abs, len, float, int, complex, round, hash, divmod, reversed, iter, range, bin, oct, hex),
    *(chr, operator.index, operator.abs, operator.neg, operator.pos),
    *(operator.invert, operator.inv),
    *(function for function in vars(math).values() if inspect.isbuiltin(function)),
)
# Which ask for the length, too, for the memory that they need
_HINTED = (
    *(list, tuple, sorted, itertools.product, itertools.permutations, itertools.combinations),
    itertools.combinations_with_replacement,
)
_ITEMS_OF_ALL = (zip, math.dist, itertools.chain, itertools.product, itertools.zip_longest)
_ITEMS_OF_THE_FIRST = (
    *(list, tuple, set, frozenset, sum, sorted, any, all, enumerate, min, max),
    *(collections.deque, math.fsum, math.prod, itertools.chain.from_iterable),
    *(itertools.accumulate, itertools.combinations, itertools.combinations_with_replacement),
    *(itertools.cycle, itertools.groupby, itertools.islice, itertools.pairwise),
    itertools.permutations,
)
_ITEMS_OF_THE_SECOND = (
    *(filter, functools.reduce, itertools.filterfalse, itertools.dropwhile),
    *(itertools.takewhile, itertools.starmap),
)
_CALLED_WITH: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(_FUNCTIONS, _call),
    **{
        function: functools.partial(_call_with_items, which)
        for functions, which in (
            (_ITEMS_OF_ALL, slice(None)),
            (_ITEMS_OF_THE_FIRST, slice(1)),
            (_ITEMS_OF_THE_SECOND, slice(1, 2)),
            ((map,), slice(1, None)),
            ((itertools.compress,), slice(2)),
        )
        for function in functions
    },
}
