"""Calls that fit the signature of NumPy's function, and not that of its staged form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.promotion import as_array, tensor_type
from wend.numpy.outputs import put_into

# How a result lies in memory, and of which class it is: a graph has one answer to both
_IGNORED = {"order", "subok"}
# What is made of ufuncs, whose results may be smaller than `out=`
_ELEMENTWISE = {np.clip, np.fix, np.isposinf, np.isneginf}


class Accepted:
    """The arguments that a staged form takes; those by position come first in NumPy's, too."""

    def __init__(self, code: CodeType) -> None:
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.names = frozenset(named[code.co_posonlyargcount :])
        self.count = code.co_argcount
        self._has_rest = bool(code.co_flags & inspect.CO_VARARGS)
        self._has_options = bool(code.co_flags & inspect.CO_VARKEYWORDS)

    def fit(self, args: Any, kwargs: dict[str, Any]) -> bool:
        """Return whether the staged form takes these."""
        fit_by_name = self._has_options or self.names.issuperset(kwargs)
        return fit_by_name and (self._has_rest or len(args) <= self.count)


def call(
    original: Callable[..., Any],
    staged: Callable[..., Any],
    accepted: Accepted,
    args: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Call a staged form as NumPy's function is called, whose result goes to `out=`.

    Raises:
        TypeError: NumPy's function takes no such arguments.
        TypeMismatchError: the staged form takes no such arguments.
    """
    try:
        signature = inspect.signature(original)
    except ValueError:  # some functions written in C have none
        return staged(*args, **kwargs)
    names = list(signature.parameters)
    options = {name: kwargs.pop(name) for name in accepted.names.difference(names) & kwargs.keys()}
    try:
        arguments = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{original.__name__}() {error}") from None
    positional: list[Any] = []
    for name, value in arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional += value
        elif kind is inspect.Parameter.VAR_KEYWORD:
            options |= value
        elif names.index(name) == len(positional) < accepted.count:
            positional.append(value)
        else:
            options[name] = value
    out = options.pop("out", None)
    for name in options.keys() - accepted.names:
        value = options.pop(name)
        default = signature.parameters[name].default if name in signature.parameters else None
        if name not in _IGNORED and not _is_default(value, default):
            raise not_taken(original.__name__, name)
    if out is None:
        return staged(*positional, **options)
    first = next(iter(arguments.values()))
    is_sum = "dtype" in names and not isinstance(first, (list, tuple))  # or a product, or a mean
    if "dtype" in names and arguments.get("dtype") is None:
        options["dtype"] = _dtype_of_sum(first, out) if is_sum else out.dtype
        del positional[names.index("dtype") :]
    result = staged(*positional, **options)
    casting = "unsafe" if is_sum else "same_kind"
    return put_into(out, result, broadcasts=original in _ELEMENTWISE, casting=casting)


def _dtype_of_sum(x: Any, out: Any) -> np.dtype | None:
    """Return the dtype that a sum which goes to `out=` is computed in."""
    dtype, target = tensor_type(as_array(x)).dtype, tensor_type(out).dtype
    # The variance of complex numbers is real; other results would be cut, which is refused later.
    return None if dtype.kind == "c" and target.kind != "c" else np.result_type(dtype, target)


def _is_default(value: Any, default: Any) -> bool:
    return value is None or value is default or (type(value) is type(default) and value == default)


def not_taken(name: str, option: str, cure: str | None = None) -> TypeMismatchError:
    """Return the error for an argument that NumPy's function takes and the staged form does not."""
    what = f"np.{name} of traced arrays takes no {option}={at(user_source())}."
    cure = cure or "leave it out, or compute it before the call and pass the result."
    return TypeMismatchError(explain(what, cure=cure))
