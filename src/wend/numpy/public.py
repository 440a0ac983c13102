"""Makes a public array function of a staged implementation and NumPy's own function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from wend.eager.dispatch import any_staged, read, read_all

P = ParamSpec("P")
R = TypeVar("R")

# What NumPy's own functions become on staged arrays (`__array_function__`, `__array_ufunc__`).
STAGED: dict[Callable[..., Any], Callable[..., Any]] = {}


def implements(*originals: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark the staged form of a NumPy function.

    The public function runs NumPy's own (the first of `originals`) on plain arrays, and the
    staged form where a staged array is among its arguments. All the originals, called with a
    staged array, become it.
    """

    def decorate(staged: Callable[P, R]) -> Callable[P, R]:
        original = originals[0]

        @functools.wraps(staged)
        def function(*args: P.args, **kwargs: P.kwargs) -> R:
            if any_staged(args) or (kwargs and any_staged(kwargs.values())):
                found = read_all(args)
                named = {name: read(value) for name, value in kwargs.items()}
                if any_staged(found) or any_staged(named.values()):
                    return staged(*found, **named)
                args, kwargs = found, named  # type: ignore[assignment]
            result: R = original(*args, **kwargs)
            return result

        for name in originals:
            STAGED[name] = function
        return function

    return decorate
