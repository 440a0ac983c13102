"""Integers that decide on structure become part of the key of a trace, when a trace fails (D37).

A number of Python's is traced, so that its values share one trace. Where Python needs the number
itself (a length, a rank, the end of a recursion), a trace for this one value is right, if more of
them are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from wend.base import refusals
from wend.base.errors import ConcreteValueError
from wend.function.signature.signature import Arguments

T = TypeVar("T")

_MAX_LEAVES = 64  # lists of more ints are data


def trace_specialized(
    trace: Callable[[Arguments], T],
    arguments: Arguments,
    rebind: Callable[[frozenset[str]], Arguments],
    is_final: Callable[[Exception], bool] = lambda _: False,
) -> tuple[T, Arguments, frozenset[str]]:
    """Trace for arguments; if that is refused, for the values of the integers among them.

    Args:
        trace: traces for arguments.
        arguments: the arguments, with all ints traced that may be.
        rebind: binds the call again, with the values of these leaves in the key.
        is_final: tells of a refusal that values of integers are not to be tried.

    Returns:
        what `trace` returns, the arguments that it was called for, and the leaves whose values
        these have in their key now.
    """
    # Names are needed after a refusal only; every call passes here.
    if not 0 < len(arguments.specializable_positions()) <= _MAX_LEAVES:
        return trace(arguments), arguments, frozenset()
    try:
        with refusals.tentative():
            return trace(arguments), arguments, frozenset()
    except Exception as error:
        if not refusals.is_refusal(error):
            raise
        if is_final(error):
            raise refusals.noted_again(error) from None
        failure = error
    names = arguments.all_names()
    specializable = [names[k] for k in arguments.specializable_positions()]
    for chosen in _choices(failure, specializable):
        try:
            with refusals.tentative():
                specialized = rebind(chosen)
                return trace(specialized), specialized, chosen
        except Exception as error:
            if not refusals.is_refusal(error):
                raise
    raise refusals.noted_again(failure)


def _choices(failure: Exception, names: list[str]) -> Iterator[frozenset[str]]:
    """Yield the leaves to specialize on: those that the failed trace names, then all."""
    sources = failure.sources if isinstance(failure, ConcreteValueError) else ()
    named = frozenset(sources) & frozenset(names)
    if named:
        yield named
    if len(named) < len(names):
        yield frozenset(names)
