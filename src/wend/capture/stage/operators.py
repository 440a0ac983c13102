"""`and`, `or`, `not`, `a if c else b`, chained comparisons and `assert`, on what may be traced."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.heap.container_phis import are_one
from wend.capture.stage.branches import if_value
from wend.capture.stage.iterables import TracedRange
from wend.capture.stage.truth import is_traced, truth
from wend.capture.state import one_shot_iterators
from wend.capture.state.state import State
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.numpy import reducing
from wend.trace.arrays.shown_text import ShownText
from wend.trace.state import effects
from wend.trace.state.templates import Text

Thunk = Callable[[], Any]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": are_one,
    "IsNot": lambda a, b: not are_one(a, b),
    "In": lambda a, b: _in(a, b),
    "NotIn": lambda a, b: not_(_in(a, b)),
}


# What looks for an item by `==`
_HOLDERS = (list, tuple, set, frozenset, dict, range, deque)


def _in(item: Any, holder: Any) -> Any:
    """`item in holder`."""
    if isinstance(holder, TracedRange):
        return holder.holds(item)
    if isinstance(holder, Staged):
        return reducing.any(ew.equal(holder, item))
    if isinstance(item, Staged) and isinstance(holder, np.ndarray):
        return reducing.any(ew.equal(holder, item))
    if not isinstance(holder, _HOLDERS) or not (
        isinstance(item, Staged) or any(isinstance(own, Staged) for own in holder)
    ):
        if isinstance(item, ShownText):
            raise item.looked_at()
        return item in one_shot_iterators.taken_from(holder)
    found: Any = False
    for own in holder:
        is_own = own is item or own == item
        if isinstance(is_own, Staged):
            found = is_own if found is False else ew.logical_or(found, is_own)
        elif is_own:
            return True
    return found


def and_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """`left and right`; the right side runs only if the left one holds."""
    if not is_traced(left):
        return left and right()
    return if_value(left, right, lambda: left, state, "and")


def or_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """`left or right`."""
    if not is_traced(left):
        return left or right()
    return if_value(left, lambda: left, right, state, "or")


def not_(x: Any) -> Any:
    """`not x`."""
    return ew.logical_not(truth(x)) if is_traced(x) else not x


def if_expression(test: Any, then: Thunk, other: Thunk, state: State | None = None) -> Any:
    """`then if test else other`."""
    if not is_traced(test):
        return then() if test else other()
    return if_value(test, then, other, state)


def decided(left: Any) -> Any:
    """What decides whether the operand after it runs, which binds a name that is not ours to see.

    Raises:
        ConcreteValueError: it is traced.
    """
    if is_traced(left):
        raise ConcreteValueError(
            explain(
                f"`:=`{at(user_source())} stands in a comprehension or lambda, where a traced "
                "value decides whether it runs.",
                cure="write the comprehension as a `for` loop, the lambda as a `def`; or bind the "
                "name before it.",
            )
        )
    return left


def filtered(test: Any, what: str = "the filter of a comprehension") -> Any:
    """What a filter says of an item, which Python goes by.

    Raises:
        ConcreteValueError: it is traced.
    """
    if is_traced(test):
        raise ConcreteValueError(
            explain(
                f"{what}{at(user_source())} is {test!r}: how many items it lets through is only "
                "known when it runs.",
                cure="write it as a `for` loop that appends to a list.",
            )
        )
    return test


def compare(left: Any, name: str, right: Any, *links: tuple[str, Thunk]) -> Any:
    """`left < middle < right`: each operand once, and no further than needed."""
    found = _COMPARISONS[name](left, right)
    if not links:
        return found
    (following, thunk), rest = links[0], links[1:]
    return and_(found, lambda: compare(right, following, thunk(), *rest))


def text(*parts: Any) -> str:
    """An f-string: literal parts, and (value, conversion, spec) for each place."""
    return Text.of(parts)


def assert_(test: Any, message: Thunk) -> None:
    """`assert test, message`."""
    if is_traced(test):
        said = message()
        if said is None:
            effects.assert_(truth(test))
        else:
            effects.assert_(truth(test), "{}", said)
    elif __debug__ and not test:
        said = message()
        raise AssertionError(*([] if said is None else [said]))
