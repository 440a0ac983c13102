"""`and`, `or`, `not`, `a if c else b`, chained comparisons and `assert`, on what may be traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from wend.eager.dispatch import Staged
from wend.ir.dtypes import BOOL
from wend.numpy import elementwise as ew
from wend.trace import effects
from wend.trace.control import check_predicate, cond

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


def truth(x: Any) -> Any:
    """What Python would take for the truth of a traced scalar, as a traced bool."""
    if x.type.shape == () and x.type.dtype != BOOL:
        return ew.not_equal(x, 0)
    check_predicate(x, "the truth of a traced array")
    return x


def and_(left: Any, right: Callable[[], Any]) -> Any:
    """`left and right`; the right side runs only if the left one holds."""
    if not isinstance(left, Staged):
        return left and right()
    return cond(truth(left), right, lambda: left)


def or_(left: Any, right: Callable[[], Any]) -> Any:
    """`left or right`."""
    if not isinstance(left, Staged):
        return left or right()
    return cond(truth(left), lambda: left, right)


def not_(x: Any) -> Any:
    """`not x`."""
    return ew.logical_not(truth(x)) if isinstance(x, Staged) else not x


def if_expression(test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """`then if test else other`."""
    if not isinstance(test, Staged):
        return then() if test else other()
    return cond(truth(test), then, other)


def compare(left: Any, *links: tuple[str, Callable[[], Any]]) -> Any:
    """`left < middle < right`: each operand once, and no further than needed."""
    (name, thunk), rest = links[0], links[1:]
    right = thunk()
    found = _COMPARISONS[name](left, right)
    return and_(found, lambda: compare(right, *rest)) if rest else found


def assert_(test: Any, message: Callable[[], Any]) -> None:
    """`assert test, message`."""
    if isinstance(test, Staged):
        said = message()
        text = "" if said is None else str(said).replace("{", "{{").replace("}", "}}")
        effects.assert_(truth(test), text)
    elif __debug__:
        if not test:
            said = message()
            raise AssertionError(*([] if said is None else [said]))
