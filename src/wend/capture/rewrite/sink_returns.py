"""Sinking of returns: a `return` in a loop computes its value after the loop where that is equal.

    while …:                          while …:
        …                                 …
        if test: return x      ->         if test: returned = True; break
                                      if returned: return x

The value may then be an array that the loop updates in place, or a list that grows there, and
values that the loop carries anyway are not carried twice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from typing import Any

from wend.base.lazy.dataclass import dataclass
from wend.capture.rewrite.jumps import SUNK
from wend.capture.rewrite.syntax import assign, located
from wend.capture.syntax.names import changed, contains, live_before, read
from wend.capture.syntax.nodes import StatementTransformer, cloned, walk

_NOT_SINKABLE = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True, slots=True)
class SunkReturns:
    """A loop whose returns were sunk.

    Attributes:
        loop: the rewritten loop.
        returns: the returns to make after the loop, by their flags.
        has_unsunk: whether some returns stay in the loop.
    """

    loop: ast.For | ast.While
    returns: dict[str, ast.Return]
    has_unsunk: bool


def sink_returns(
    loop: ast.For | ast.While, bound: Collection[str], new_flag: Callable[[], str]
) -> SunkReturns:
    """Sink the returns of a loop whose values are the same after it.

    `bound` are the variables that may be bound before it.
    """
    changed_names = {path.partition(".")[0] for path in changed([loop])}
    # Names that are live at the start of a trip are carried anyway.
    carried = live_before([loop], set()) & set(bound)
    transformer = _SinkReturns(changed_names - carried, new_flag)
    return SunkReturns(
        transformer.generic_visit(cloned(loop)), transformer.returns, transformer.has_unsunk
    )


class _SinkReturns(StatementTransformer):
    """Replaces returns by flags and collects them."""

    def __init__(self, loop_locals: set[str], new_flag: Callable[[], str]) -> None:
        self.loop_locals, self.new_flag = loop_locals, new_flag
        self.flags: dict[str, str] = {}
        self.returns: dict[str, ast.Return] = {}
        self.has_unsunk = False

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value or ast.Constant(None)
        if read([value]) & self.loop_locals or any(
            isinstance(v, _NOT_SINKABLE) for v in walk(value)
        ):
            self.has_unsunk = True
            return node
        key = ast.dump(value)
        if key not in self.flags:
            self.flags[key] = flag = self.new_flag()
            self.returns[flag] = node
        sunk = ast.Return(None)
        setattr(sunk, SUNK, True)
        return located([assign(self.flags[key], True), sunk], node)

    def _keep_returns(self, node: ast.stmt) -> ast.stmt:
        # Its other effects come between the return and the end of the loop.
        self.has_unsunk |= contains([node], (ast.Return,))
        return node

    visit_With = visit_Try = visit_TryStar = _keep_returns
