"""What a call in captured code calls: user functions captured too, some builtins exchanged."""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.capture.builtins import builtins as standard
from wend.capture.builtins import math_module, strings
from wend.capture.stage.iterables import Together, TracedRange, backwards
from wend.capture.stage.operators import filtered
from wend.eager.dispatch import Staged, any_staged
from wend.numpy import creating, indexing, ranges, rearranging, shaping
from wend.trace.arrays.concrete_array import known
from wend.trace.control.tensor_list import TensorList
from wend.trace.state import effects
from wend.trace.state.templates import Text, holds_traced


def _stacked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of arrays, which may be a traced list."""

    def run(xs: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(xs, TensorList):
            return function(xs, *args, **kwargs)
        if function is shaping.stack:
            return xs.stack(*args, **kwargs)
        return function(xs.stack(), *args, **kwargs)

    return run


# Builtins and functions that cannot take a traced array, and what they become if given one.
EXCHANGED: dict[Callable[..., Any], Callable[..., Any]] = {
    **standard.STAGED,
    np.array: _stacked(creating.array),
    np.asarray: _stacked(creating.asarray),
    np.stack: _stacked(shaping.stack),
    creating.array: _stacked(creating.array),
    creating.asarray: _stacked(creating.asarray),
    shaping.stack: _stacked(shaping.stack),
    # NumPy does not ask positions, counts and sizes what to do
    np.take: indexing.take,
    np.repeat: rearranging.repeat,
    np.roll: rearranging.roll,
    np.reshape: shaping.reshape,
    np.broadcast_to: shaping.broadcast_to,
    np.full: ranges.full,
    np.zeros: ranges.zeros,
    np.ones: ranges.ones,
    np.empty: ranges.empty,
    np.ndarray: ranges.empty,
    np.eye: ranges.eye,
    np.identity: ranges.identity,
    np.arange: ranges.arange,
    np.linspace: ranges.linspace,
    **math_module.STAGED,
}


def _exchange(original: Callable[..., Any], staged: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        is_staged = any_staged(args) or any(isinstance(arg, TensorList) for arg in args)
        return staged(*args, **kwargs) if is_staged else known(original(*args, **kwargs))

    return run


def _print(*values: Any, **options: Any) -> None:
    is_staged = any(map(holds_traced, values)) or any_staged(values)
    (effects.print if is_staged else builtins.print)(*values, **options)


def _text(original: Callable[..., Any], conversion: str) -> Callable[..., Any]:
    """What makes a string of one value: an f-string of it."""

    def run(*args: Any, **kwargs: Any) -> Any:
        is_traced = len(args) == 1 and not kwargs and holds_traced(args[0])
        return Text.of([(args[0], conversion, "")]) if is_traced else original(*args, **kwargs)

    return run


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    return Together(iterable, numbered_from=start)


def _is_stepped(part: Any) -> bool:
    return isinstance(part, (Staged, np.ndarray, TracedRange, Together))


def _zip(*iterables: Any, strict: bool = False) -> Any:
    if any(map(_is_stepped, iterables)):
        return Together(*iterables, strict=strict)
    return builtins.zip(*iterables, strict=strict)


def _map(function: Callable[..., Any], *iterables: Any) -> Any:
    if any(isinstance(part, (Staged, TracedRange, Together)) for part in iterables):
        return Together(*iterables, function=function)
    return builtins.map(function, *iterables)


def _filter(function: Callable[..., Any] | None, iterable: Any) -> Any:
    def is_kept(item: Any) -> Any:
        return filtered(function(item) if function is not None else item, "`filter`")

    return builtins.filter(is_kept, iterable)


def _reversed(sequence: Any) -> Any:
    if isinstance(sequence, TracedRange):
        return backwards(sequence)
    if isinstance(sequence, Staged):
        return sequence[::-1]  # type: ignore[index]  # a traced array
    return builtins.reversed(sequence)


def _any(xs: Any) -> Any:
    return builtins.any(xs) if isinstance(xs, np.ndarray) else standard.some(xs)


def _all(xs: Any) -> Any:
    return builtins.all(xs) if isinstance(xs, np.ndarray) else standard.every(xs)


def _type(*args: Any) -> Any:
    return standard.kind_of(*args) if len(args) == 1 else type(*args)


# Of a list these are what Python makes of it, whatever it holds.
_OF_ONE = (builtins.len, builtins.float, builtins.int, builtins.bool, builtins.round)


def _exchange_one(original: Callable[..., Any], staged: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        is_staged = bool(args) and isinstance(args[0], (Staged, TensorList, TracedRange))
        return (staged if is_staged else original)(*args, **kwargs)

    return run


def _weak(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives a Python number."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return standard.weak(function(*args, **kwargs))

    return run


_REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    original: (_exchange_one if original in _OF_ONE else _exchange)(
        original, _weak(staged) if original.__module__ == "math" else staged
    )
    for original, staged in EXCHANGED.items()
}
_REPLACED |= strings.REPLACED | {
    builtins.all: _all,
    builtins.any: _any,
    builtins.enumerate: _enumerate,
    builtins.filter: _filter,
    builtins.isinstance: standard.is_instance,
    builtins.map: _map,
    builtins.max: standard.STAGED[builtins.max],
    builtins.min: standard.STAGED[builtins.min],
    builtins.print: _print,
    builtins.repr: _text(builtins.repr, "r"),
    builtins.reversed: _reversed,
    builtins.sorted: standard.in_order,
    builtins.str: _text(builtins.str, "s"),
    builtins.type: _type,
    builtins.zip: _zip,
}


_TAKING_FUNCTIONS = (
    builtins.filter,
    builtins.map,
    builtins.max,
    builtins.min,
    builtins.sorted,
    functools.reduce,
)


def takes_functions(fun: Any) -> bool:
    """Whether something written in C calls the functions that it is given."""
    known = any(fun is one for one in _TAKING_FUNCTIONS)
    return known or getattr(fun, "__module__", None) == "itertools"


def replaced(fun: Any) -> Any:
    """What stands for a builtin or an array function, or the thing itself."""
    try:
        found = _REPLACED.get(fun)
    except TypeError:  # no hash
        return fun
    found = found or strings.of_method(fun)
    if found is not None:
        return found
    return functools.partial(_of_arrays, fun) if _is_array_function(fun) else fun


def _is_array_function(fun: Any) -> bool:
    module = getattr(fun, "__module__", None)
    return isinstance(fun, np.ufunc) or (
        callable(fun)
        and not isinstance(fun, (type, types.MethodType))
        and isinstance(module, str)
        and f"{module}.".startswith(("numpy.", "wend.numpy."))
    )


def _of_arrays(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An array function, for which a traced list is the array of its items."""
    args = tuple(arg.stack() if isinstance(arg, TensorList) else arg for arg in args)
    return known(fun(*args, **kwargs))


def is_plain_function(fun: Any) -> bool:
    """Whether it is a function written in Python."""
    return isinstance(fun, types.FunctionType)
