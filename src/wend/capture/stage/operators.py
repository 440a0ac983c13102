"""`and`, `or`, `not`, conditional expressions, comparison chains and `assert` on traced values."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.heap.container_phis import is_same_object
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
    "Is": is_same_object,
    "IsNot": lambda a, b: not is_same_object(a, b),
    "In": lambda a, b: _in(a, b),
    "NotIn": lambda a, b: not_(_in(a, b)),
}


# Containers that look for an item by `==`
_EQ_CONTAINERS = (list, tuple, set, frozenset, dict, range, deque)


def _in(item: Any, container: Any) -> Any:
    """Return `item in container`."""
    if isinstance(container, TracedRange):
        return container.contains(item)
    if isinstance(container, Staged):
        return reducing.any(ew.equal(container, item))
    if isinstance(item, Staged) and isinstance(container, np.ndarray):
        return reducing.any(ew.equal(container, item))
    if not isinstance(container, _EQ_CONTAINERS) or not (
        isinstance(item, Staged) or any(isinstance(element, Staged) for element in container)
    ):
        if isinstance(item, ShownText):
            raise item.looked_at()
        return item in one_shot_iterators.consume(container)
    result: Any = False
    for element in container:
        is_match = element is item or element == item
        if isinstance(is_match, Staged):
            result = is_match if result is False else ew.logical_or(result, is_match)
        elif is_match:
            return True
    return result


def and_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """Return `left and right`; the right side runs only if the left one holds."""
    if not is_traced(left):
        return left and right()
    return if_value(left, right, lambda: left, state, "and")


def or_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """Return `left or right`."""
    if not is_traced(left):
        return left or right()
    return if_value(left, lambda: left, right, state, "or")


def not_(x: Any) -> Any:
    """Return `not x`."""
    return ew.logical_not(truth(x)) if is_traced(x) else not x


def if_expression(test: Any, then: Thunk, other: Thunk, state: State | None = None) -> Any:
    """Return `then if test else other`."""
    if not is_traced(test):
        return then() if test else other()
    return if_value(test, then, other, state)


def require_concrete(left: Any) -> Any:
    """Check the left side of an operator whose right side binds a name that is out of reach.

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


def check_filter(test: Any, what: str = "the filter of a comprehension") -> Any:
    """Check the result of a filter, which decides in Python.

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
    """Return `left < middle < right`, with each operand evaluated once, and only if needed."""
    result = _COMPARISONS[name](left, right)
    if not links:
        return result
    (following, thunk), remaining = links[0], links[1:]
    return and_(result, lambda: compare(right, following, thunk(), *remaining))


def text(*parts: Any) -> str:
    """Build an f-string from literal parts, and (value, conversion, spec) for each field."""
    return Text.of(parts)


def assert_(test: Any, message: Thunk) -> None:
    """Run `assert test, message`."""
    if is_traced(test):
        message_value = message()
        if message_value is None:
            effects.assert_(truth(test))
        else:
            effects.assert_(truth(test), "{}", message_value)
    elif __debug__ and not test:
        message_value = message()
        raise AssertionError(*([] if message_value is None else [message_value]))
