"""`bisect` with traced values: where a number belongs in a sorted list."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.conversions import as_weak
from wend.numpy import creating, reducing
from wend.numpy import elementwise as ew


def _staged(function: Callable[..., Any], count: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a function of `bisect` for a list or a number that is traced.

    In a sorted list the position is a count of items, and so it is for NaN.
    """

    def run(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
        if key is not None or hi is not None or lo != 0:
            raise UnsupportedError(
                explain(
                    f"{function.__name__}{at(user_source())} of traced values takes no lo, hi or "
                    "key.",
                    cure="take the part of the list, or the keys, before.",
                )
            )
        return as_weak(count(creating.asarray(a), x))

    return run


def _count_below(a: Any, x: Any) -> Any:
    return reducing.sum(ew.less(a, x))


def _count_up_to(a: Any, x: Any) -> Any:
    return reducing.sum(ew.logical_not(ew.less(x, a)))


STAGED = {
    bisect.bisect_left: _staged(bisect.bisect_left, _count_below),
    bisect.bisect_right: _staged(bisect.bisect_right, _count_up_to),  # also called `bisect`
}
