"""`and`, `or`, `not`, `a if c else b`, chained comparisons and `assert`, on what may be traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from wend.capture.branches import if_value
from wend.capture.state import State
from wend.capture.truth import truth
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.trace import effects

Thunk = Callable[[], Any]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


def and_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """`left and right`; the right side runs only if the left one holds."""
    if not isinstance(left, Staged):
        return left and right()
    return if_value(left, right, lambda: left, state)


def or_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """`left or right`."""
    if not isinstance(left, Staged):
        return left or right()
    return if_value(left, lambda: left, right, state)


def not_(x: Any) -> Any:
    """`not x`."""
    return ew.logical_not(truth(x)) if isinstance(x, Staged) else not x


def if_expression(test: Any, then: Thunk, other: Thunk, state: State | None = None) -> Any:
    """`then if test else other`."""
    if not isinstance(test, Staged):
        return then() if test else other()
    return if_value(test, then, other, state)


def compare(left: Any, name: str, right: Any, *links: tuple[str, Thunk]) -> Any:
    """`left < middle < right`: each operand once, and no further than needed."""
    found = _COMPARISONS[name](left, right)
    if not links:
        return found
    (following, thunk), rest = links[0], links[1:]
    return and_(found, lambda: compare(right, following, thunk(), *rest))


def assert_(test: Any, message: Thunk) -> None:
    """`assert test, message`."""
    if isinstance(test, Staged):
        said = message()
        text = "" if said is None else str(said).replace("{", "{{").replace("}", "}}")
        effects.assert_(truth(test), text)
    elif __debug__ and not test:
        said = message()
        raise AssertionError(*([] if said is None else [said]))
