"""What a call in captured code calls: user functions captured too, some builtins exchanged."""

from __future__ import annotations

import builtins
import functools
import os
import sysconfig
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.source import PROGRAMS, is_own
from wend.capture import mathematics
from wend.capture.iterables import Together, TracedRange
from wend.eager.dispatch import Staged, any_staged
from wend.numpy import creating, indexing, ranges, rearranging, reducing, shaping
from wend.numpy import elementwise as ew
from wend.trace import effects
from wend.trace.templates import holds_traced
from wend.trace.tensor_list import TensorList
from wend.trace.tracer import Tracer

_LIBRARY = tuple(
    {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


# Installed packages that are captured all the same, for a function of theirs was given to wend.
_packages: set[str] = set()
_INSTALLED = "site-packages" + os.sep


def is_library(file: str) -> bool:
    """Whether code in this file is left alone: wend, the standard library, installed packages."""
    if is_own(file):
        return True
    installed = file.startswith(_LIBRARY) or _INSTALLED in file
    # The demo is installed with wend.
    return installed and not file.startswith((PROGRAMS, *_packages))


def take_in(file: str) -> None:
    """Capture the package of this file, installed as it is: a function of it was given to wend."""
    folder, found, rest = file.rpartition(_INSTALLED)
    package = rest.partition(os.sep)[0]
    if found and package not in ("numpy", "scipy") and not is_own(file):
        _packages.add(folder + found + package)


def _staged_len(x: Any) -> Any:
    if isinstance(x, TensorList):
        return x.length()
    if not shaping.rank_of(x):
        raise TypeError("len() of unsized object")
    return shaping.shape(x)[0]


def _stacked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of arrays, which may be a traced list."""

    def run(xs: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(xs, TensorList):
            return function(xs, *args, **kwargs)
        if function is shaping.stack:
            return xs.stack(*args, **kwargs)
        return function(xs.stack(), *args, **kwargs)

    return run


def _weak(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives a Python number, which takes the dtype of what it meets (D4)."""

    def run(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if isinstance(found, Tracer) and found.type.shape == ():
            return Tracer(found.value, found.recording, weak=True)
        return found

    return run


def _staged_float(x: Any) -> Any:
    return shaping.astype(x, np.float64)


def _staged_int(x: Any) -> Any:
    return shaping.astype(x, np.int64)


def _staged_bool(x: Any) -> Any:
    return shaping.astype(x, np.bool_)


def _staged_round(x: Any, digits: int | None = None) -> Any:
    if digits is None:
        return shaping.astype(ew.rint(x), np.int64)
    return ew.rint(x * 10**digits) / 10**digits


def _extreme(pick: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    def run(*xs: Any) -> Any:
        if len(xs) == 1:
            if isinstance(xs[0], TensorList):
                return reduce(xs[0].stack())
            return reduce(xs[0]) if isinstance(xs[0], Staged) else functools.reduce(pick, xs[0])
        return functools.reduce(pick, xs)

    return run


def _staged_sum(xs: Any, start: Any = 0) -> Any:
    if isinstance(xs, TensorList):
        return reducing.sum(xs.stack(), 0) + start
    for x in xs:
        start = start + x
    return start


def _staged_isinstance(x: Any, kinds: Any) -> bool:
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(x, Staged):
        return isinstance(x, kinds)
    kind = x.type.dtype.kind
    like = {"f": float, "i": int, "u": int, "b": bool, "c": complex}[kind]
    number = like if x.weak else x.type.dtype.type
    return isinstance(x, kinds) or any(
        issubclass(number, want) or (want is np.ndarray and not x.weak) for want in wanted
    )


# Builtins and functions that cannot take a traced array, and what they become if given one.
EXCHANGED: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.len: _staged_len,
    builtins.float: _staged_float,
    builtins.int: _staged_int,
    builtins.bool: _staged_bool,
    builtins.round: _staged_round,
    builtins.min: _extreme(ew.minimum, reducing.min),
    builtins.max: _extreme(ew.maximum, reducing.max),
    builtins.sum: _staged_sum,
    builtins.range: TracedRange,
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
    **mathematics.STAGED,
}


def _exchange(original: Callable[..., Any], staged: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        is_staged = any_staged(args) or any(isinstance(arg, TensorList) for arg in args)
        return (staged if is_staged else original)(*args, **kwargs)

    return run


def _print(*values: Any, **options: Any) -> None:
    is_staged = any(map(holds_traced, values)) or any_staged(values)
    (effects.print if is_staged else builtins.print)(*values, **options)


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    return Together(iterable, numbered_from=start)


def _zip(*iterables: Any, strict: bool = False) -> Any:
    if any(isinstance(part, (Staged, np.ndarray)) for part in iterables):
        return Together(*iterables)
    return builtins.zip(*iterables, strict=strict)


# Of a list these are what Python makes of it, whatever it holds.
_OF_ONE = (builtins.len, builtins.float, builtins.int, builtins.bool, builtins.round)


def _exchange_one(original: Callable[..., Any], staged: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        is_staged = bool(args) and isinstance(args[0], (Staged, TensorList))
        return (staged if is_staged else original)(*args, **kwargs)

    return run


# What gives Python numbers
_GIVE_NUMBERS = {
    builtins.len,
    builtins.float,
    builtins.int,
    builtins.bool,
    *(function for function in EXCHANGED if function.__module__ == "math"),
}
_REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    original: (_exchange_one if original in _OF_ONE else _exchange)(
        original, _weak(staged) if original in _GIVE_NUMBERS else staged
    )
    for original, staged in EXCHANGED.items()
}
_REPLACED[builtins.enumerate] = _enumerate
_REPLACED[builtins.zip] = _zip
_REPLACED[builtins.print] = _print
_REPLACED[builtins.isinstance] = _staged_isinstance


def replaced(fun: Any) -> Any:
    """What stands for a builtin or an array function, or the thing itself."""
    try:
        found = _REPLACED.get(fun)
    except TypeError:  # no hash
        return fun
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
    return fun(*args, **kwargs)


def is_plain_function(fun: Any) -> bool:
    """Whether it is a function written in Python."""
    return isinstance(fun, types.FunctionType)
