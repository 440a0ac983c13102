"""Computes what a `return` in a loop gives after the loop, where it is the same.

    while …:                          while …:
        …                                 …
        if test: return x      ->         if test: returned = True; break
                                      if returned: return x

So it may be an array that the loop changes in place, or a list that grows there, and what the loop
carries anyway is not carried twice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from wend.capture.rewrite.jumps import LATE
from wend.capture.rewrite.syntax import assign, located
from wend.capture.syntax.names import (
    changed,
    contains,
    live_before,
    read,
)
from wend.capture.syntax.nodes import StatementTransformer, cloned, walk

_STAYING = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True, slots=True)
class LateReturns:
    """A loop, the returns to make after it, each where its flag is set, and whether others stay."""

    loop: ast.For | ast.While
    returns: dict[str, ast.Return]
    some_stay: bool


def with_late_returns(
    loop: ast.For | ast.While, bound: Collection[str], new_flag: Callable[[], str]
) -> LateReturns:
    """A loop whose returns give their values after it, where these are the same there.

    Args:
        loop: the loop.
        bound: the variables that may be bound before it.
        new_flag: makes a flag.
    """
    places = {place.partition(".")[0] for place in changed([loop])}
    # What is live where a trip begins is carried anyway.
    carried = live_before([loop], set()) & set(bound)
    moved = _Moved(places - carried, new_flag)
    return LateReturns(moved.generic_visit(cloned(loop)), moved.returns, moved.some_stay)


class _Moved(StatementTransformer):
    """Takes the values out of returns."""

    def __init__(self, passing: set[str], new_flag: Callable[[], str]) -> None:
        self.passing, self.new_flag = passing, new_flag
        self.flags: dict[str, str] = {}
        self.returns: dict[str, ast.Return] = {}
        self.some_stay = False

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value or ast.Constant(None)
        if read([value]) & self.passing or any(isinstance(v, _STAYING) for v in walk(value)):
            self.some_stay = True
            return node
        shown = ast.dump(value)
        if shown not in self.flags:
            self.flags[shown] = flag = self.new_flag()
            self.returns[flag] = node
        late = ast.Return(None)
        setattr(late, LATE, True)
        return located([assign(self.flags[shown], True), late], node)

    def _as_it_is(self, node: ast.stmt) -> ast.stmt:
        # What else it does comes between the return and the end of the loop.
        self.some_stay |= contains([node], (ast.Return,))
        return node

    visit_With = visit_Try = visit_TryStar = _as_it_is
