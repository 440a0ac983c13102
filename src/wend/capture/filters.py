"""Comprehensions with filters that traced values decide: a loop that appends (D6)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from wend.base import refusals
from wend.base.context_values import scoped
from wend.base.errors import ConcreteValueError, StructureError
from wend.base.source import at, user_source
from wend.capture.heap.locations import write_log
from wend.capture.stage.iterables import ZippedIterable
from wend.capture.stage.loops import StagingAttempt
from wend.capture.stage.operators import check_filter
from wend.capture.stage.truth import as_test, is_traced
from wend.capture.state import one_shot_iterators, unsure_iterators
from wend.capture.state.paths import deciding_test
from wend.capture.state.state import State
from wend.trace.recording.recording import current

_MAX_DECIDED_ITEMS = 4  # of which each may have a trace of its own: what they are is known then


# Whether a loop takes the place of the comprehension at once, or only where the outcome of its
# filter cannot be part of the trace; None where no loop can
_loops_at_once: ContextVar[bool | None] = ContextVar("wend_loops_at_once", default=None)


class _FilterIsTraced(BaseException):
    """Only the run knows how many items a comprehension lets through."""


def filtered_item(test: Any) -> Any:
    """Return the truth of the filter of a comprehension that may become a loop."""
    test, at_once = as_test(test), _loops_at_once.get()
    if at_once is None or not is_traced(test):
        return check_filter(test)
    if at_once:
        raise _FilterIsTraced
    try:
        with refusals.tentative():
            return check_filter(test)
    except ConcreteValueError as error:
        if deciding_test(error) is not None:
            raise refusals.noted_again(error) from None
        raise _FilterIsTraced from None


def filtered_list(
    source: Any, comprehension: Callable[[Any], Any], loop: Callable[[Any], Any], state: State
) -> Any:
    """Return `[… for … in source if …]`.

    Args:
        source: what the outermost `for` goes through.
        comprehension: the comprehension, by Python.
        loop: a function that appends to a list in a loop.
        state: what the comprehension may change.
    """
    outer = current()
    again = None if outer is None or outer.runs_now() else _repeatable(source)
    if outer is None or again is None:
        with scoped(_loops_at_once, None):
            return comprehension(source)
    result = _staged_list(StagingAttempt(outer, state, "comprehension"), again, comprehension, loop)
    if type(source) is ZippedIterable:
        source.take(f"comprehension{at(user_source())}")
    return result


def filtered_call(
    fun: Callable[..., Any],
    callee: Callable[..., Any],
    source: Any,
    generator: Callable[[Any], Any],
    loop: Callable[[Any], Any],
    state: State,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return `fun((… for … in source if …), *args, **kwargs)`.

    A builtin that takes all items is given a list where a traced value decides on them.
    """
    if not any(fun is builtin for builtin in _EAGER):
        return callee(generator(source), *args, **kwargs)
    result = filtered_list(
        source, lambda source: _Result(callee(generator(source), *args, **kwargs)), loop, state
    )
    return result.value if type(result) is _Result else callee(result, *args, **kwargs)


class _Result:
    """The value of a call that took the items one by one."""

    def __init__(self, value: Any) -> None:
        self.value = value


_EAGER = (list, max, min, sorted, sum, tuple)


def _staged_list(
    attempt: StagingAttempt,
    again: Callable[[], Any],
    comprehension: Callable[[Any], Any],
    loop: Callable[[Any], Any],
) -> Any:
    try:
        with (
            refusals.tentative(),
            write_log(attempt.log),
            one_shot_iterators.peeled_trip(),
        ):
            source = again()
            is_short = isinstance(source, (list, tuple)) and len(source) <= _MAX_DECIDED_ITEMS
            with scoped(_loops_at_once, not is_short):
                return comprehension(source)
    except _FilterIsTraced:
        attempt.rewind()
    except Exception as error:
        if not refusals.is_refusal(error):
            raise
        if not isinstance(error, StructureError):
            raise refusals.noted_again(error) from None
        attempt.rewind()  # it may advance an iterator, which could not go back for the loop
        with scoped(_loops_at_once, None):
            return comprehension(again())
    try:
        with (
            refusals.tentative(),
            refusals.final(),
            write_log(attempt.log),
            scoped(_loops_at_once, None),
        ):
            return loop(again())
    except Exception as failure:
        if not refusals.is_refusal(failure):
            raise
        attempt.rewind()
        return _decided_list(failure, lambda: comprehension(again()))


def _decided_list(failure: Exception, comprehension: Callable[[], Any]) -> Any:
    """Return the list where the outcomes of the filter are part of the trace."""
    try:
        with refusals.tentative(), scoped(_loops_at_once, None):
            return comprehension()
    except ConcreteValueError as error:
        if deciding_test(error) is None:
            raise refusals.noted_again(failure) from None
        raise refusals.noted_again(error) from None


def _repeatable(source: Any) -> Callable[[], Any] | None:
    """Return what gives the items as often as it is called; None of an iterator, which does not."""
    return (lambda: _copied(source)) if _is_fresh(source) else None


def _is_fresh(source: Any) -> bool:
    """Return whether nothing has taken items of an `enumerate` or `zip` whose parts have them."""
    if type(source) is not ZippedIterable:
        return not unsure_iterators.is_iterator(source)
    return source.function is None and not source.is_started() and all(map(_is_fresh, source.parts))


def _copied(source: Any) -> Any:
    if type(source) is not ZippedIterable:
        return source
    result = copy.copy(source)
    result.parts = tuple(map(_copied, source.parts))
    return one_shot_iterators.register(result)
