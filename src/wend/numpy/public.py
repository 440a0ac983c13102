"""Public array functions, each made of a staged implementation and its NumPy original."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from wend.eager.dispatch import any_staged, read, read_all
from wend.numpy import signatures
from wend.numpy.signatures import Accepted

P = ParamSpec("P")
R = TypeVar("R")

# The staged form of each NumPy function (for `__array_function__` and `__array_ufunc__`).
STAGED: dict[Callable[..., Any], Callable[..., Any]] = {}


def implements(*originals: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register the staged form of a NumPy function and return its public function.

    The public function calls the first of `originals` on plain arrays, and the staged form if an
    argument is a staged array. Calling any of the originals with a staged array calls the public
    function.
    """

    def decorate(staged: Callable[P, R]) -> Callable[P, R]:
        original = originals[0]
        accepted = Accepted(staged.__code__)

        @functools.wraps(staged)
        def function(*args: P.args, **kwargs: P.kwargs) -> R:
            if any_staged(args) or (kwargs and any_staged(kwargs.values())):
                operands = read_all(args)
                keywords = {name: read(value) for name, value in kwargs.items()}
                if any_staged(operands) or any_staged(keywords.values()):
                    if accepted.fit(operands, keywords):
                        return staged(*operands, **keywords)
                    return signatures.call(original, staged, accepted, operands, keywords)  # type: ignore[no-any-return]
                args, kwargs = operands, keywords  # type: ignore[assignment]
            result: R = original(*args, **kwargs)
            return result

        for name in originals:
            STAGED[name] = function
        return function

    return decorate
