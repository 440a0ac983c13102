"""Arrays that Python knows and that a call of NumPy changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged
from wend.trace.known_array import CHANGE_THE_FIRST, CHANGING_METHODS, KnownArray, read_before
from wend.trace.recording import current

_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_METHODS = frozenset({*CHANGING_METHODS, "__setitem__", *(f"__i{op}__" for op in _OPERATORS)})


def may_change(fun: Any) -> bool:
    """Whether something that is called may change an array, as far as its name tells."""
    if isinstance(fun, np.ufunc) or isinstance(
        getattr(fun, "__self__", None), np.ndarray | np.ufunc
    ):
        return True
    return str(getattr(fun, "__module__", "")).startswith("numpy")


def changed_arrays(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[np.ndarray]:
    """The arrays that a function or method of NumPy changes."""
    owner, name = getattr(fun, "__self__", None), getattr(fun, "__name__", "")
    changed: list[Any] = [kwargs.get("out")]
    if isinstance(owner, np.ndarray):
        changed.append(owner if name in _METHODS else None)
    elif isinstance(fun, np.ufunc):
        changed += args[fun.nin :]
    elif (isinstance(owner, np.ufunc) and name == "at") or _changes_the_first(fun):
        changed += args[:1]
    for found in changed:
        for array in found if isinstance(found, tuple) else (found,):
            if isinstance(array, np.ndarray):
                yield array


def _changes_the_first(fun: Any) -> bool:
    return any(fun is one for one in CHANGE_THE_FIRST)


def calling(found: Callable[..., Any], written: Any, *args: Any, **kwargs: Any) -> Any:
    """Call `found`, which stands for what is written, if that changes no array the graph reads."""
    for array in changed_arrays(written, args, kwargs):
        check_unread(array)
    return found(*args, **kwargs)


def check_unread(array: np.ndarray) -> None:
    """Refuse that an array changes which the graph reads when it runs.

    Raises:
        TypeMismatchError: it does, or reads an array that has the same memory.
    """
    recording = current()
    # Of an array that is made in the trace the graph has the numbers.
    if recording is None or isinstance(array, (Staged, KnownArray)):
        return
    if recording.has_read(array):
        raise read_before(array)
