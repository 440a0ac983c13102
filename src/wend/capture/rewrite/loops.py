"""`while` and `for`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from wend.capture.rewrite.blocks import Blocks
from wend.capture.rewrite.jumps import Flags, has_exit, lower_body
from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import assign, at_head, located, name, runtime, thunk
from wend.capture.rewrite.walrus import targets
from wend.capture.syntax.names import (
    contains,
    live_at_end,
    live_before,
    may_leave_early,
    read,
)
from wend.capture.syntax.nodes import StatementTransformer, cloned


class Loops(Blocks):
    """Loops: their tests and bodies become functions, their exits flags."""

    def while_(
        self, stmt: ast.While, after: set[str], flags: Flags | None = None
    ) -> list[ast.stmt]:
        exit_test = _middle_exit(stmt)
        if exit_test is not None:
            place = stmt.body.index(exit_test)
            first, last = stmt.body[:place], stmt.body[place + 1 :]
            goes_on: ast.expr = ast.UnaryOp(ast.Not(), exit_test.test)
            ast.copy_location(goes_on, exit_test.test)
            return self.loop(stmt, first, goes_on, last, after, always=True)
        flags = flags or self.loop_flags(stmt)
        tells_breaks = bool(stmt.orelse) or (flags is not None and flags.broken in after)
        if flags is not None and not tells_breaks and targets(stmt.test):
            # What the test binds is kept when the loop is left by a `break`.
            leave = ast.If(ast.UnaryOp(ast.Not(), stmt.test), [ast.Break()], [])
            endless = ast.While(ast.Constant(True), located([leave], stmt) + stmt.body, [])
            return self.while_(ast.copy_location(endless, stmt), after, flags)
        if flags is None:
            out = self.loop(stmt, [], stmt.test, stmt.body, live_before(stmt.orelse, after))
            return out + self.block(stmt.orelse, after)
        going: ast.expr = ast.UnaryOp(ast.Not(), name(flags.broken))
        always = isinstance(stmt.test, ast.Constant) and bool(stmt.test.value)
        test = going if always else ast.BoolOp(ast.And(), [going, stmt.test])
        ast.copy_location(test, stmt.test)
        body = [assign(flags.skipped, False), *lower_body(stmt.body, flags)]
        body = located(body, stmt)
        late = live_at_end(stmt.body, stmt.orelse, after) | {flags.broken}
        out = [
            *self.start_flags(flags, stmt),
            *self.loop(stmt, [], test, body, late, always=always),
        ]
        return out + self.loop_else(stmt, flags, after)

    def loop(
        self,
        stmt: ast.stmt,
        first: Sequence[ast.stmt],
        test: ast.expr,
        body: Sequence[ast.stmt],
        after: set[str],
        *,
        always: bool = False,
    ) -> list[ast.stmt]:
        """A loop that runs `first`, leaves unless `test` holds, and runs `body`."""
        perhaps, (holds, fails) = self.scope.perhaps_bound([test]), self.scope.surely_bound(test)
        body = [*self.settled(perhaps, holds, stmt), *body]
        head = self.head(after, [*first, ast.Expr(test), *body])
        late = live_before(list(body), head) | after | self.scope.always_live
        out: list[ast.stmt] = []
        names = [self.scope.new("test"), self.scope.new("body")]
        testing = [*self.block(first, late | read([test])), ast.Return(self.visit(test))]
        out.append(self.scope.function(names[0], testing, [*first, ast.Expr(test)]))
        out.append(self.scope.function(names[1], self.block(body, head), body))
        setter, state = state_of(self.scope, [*first, test, *body], head | after | late)
        out.append(setter)
        call = runtime("while_", *map(name, names), state, ast.Constant(always))
        out += [ast.Expr(call), *self.settled(perhaps, fails, stmt)]
        return [at_head(new, stmt) for new in out]

    def head(self, after: set[str], iteration: Sequence[ast.stmt]) -> set[str]:
        """The names that are live where an iteration starts."""
        # After the last one, or after the test, comes what follows the loop.
        once = after | live_before(iteration, after)
        return after | live_before(iteration, once) | self.scope.always_live

    def for_(self, stmt: ast.For, after: set[str], flags: Flags | None = None) -> list[ast.stmt]:
        flags = flags or self.loop_flags(stmt)
        item = self.scope.new("item")
        body: list[ast.stmt] = [
            ast.copy_location(ast.Assign([stmt.target], name(item)), stmt.target)
        ]
        if flags is None:
            body += stmt.body
        else:
            body += [assign(flags.skipped, False), *lower_body(stmt.body, flags)]
        body = located(body, stmt)
        late = live_at_end(stmt.body, stmt.orelse, after) | ({flags.broken} if flags else set())
        head = self.head(late, body)
        out: list[ast.stmt] = []
        function = self.scope.new("body")
        made = self.scope.function(function, self.block(body, head), body)
        made.args = ast.arguments([], [ast.arg(item)], None, [], [], None, [])
        out.append(made)
        setter, state = state_of(self.scope, body, head | late)
        out.append(setter)
        broken: ast.expr = thunk(name(flags.broken)) if flags else ast.Constant(None)
        call = runtime("for_", self.visit(stmt.iter), name(function), state, broken)
        out.append(ast.Expr(call))
        start = self.start_flags(flags, stmt) if flags else []
        done = [*start, *(at_head(new, stmt) for new in out)]
        if flags is None:
            return done + self.block(stmt.orelse, after)
        return done + self.loop_else(stmt, flags, after)

    def loop_flags(self, stmt: ast.For | ast.While) -> Flags | None:
        if not may_leave_early(stmt.body):
            return None
        return Flags(self.scope.flag("broken"), self.scope.flag("skipped"))

    def start_flags(self, flags: Flags, stmt: ast.stmt) -> list[ast.stmt]:
        start = [assign(flags.broken, False), assign(flags.skipped, False)]
        return [ast.copy_location(new, stmt) for new in start]

    def loop_else(self, stmt: ast.For | ast.While, flags: Flags, after: set[str]) -> list[ast.stmt]:
        if not stmt.orelse:
            return []
        ended = ast.If(ast.UnaryOp(ast.Not(), name(flags.broken)), stmt.orelse, [])
        return self.block([ast.copy_location(ended, stmt)], after)


def _middle_exit(stmt: ast.While) -> ast.If | None:
    """The `if c: break` of a `while True` that is left there and nowhere else."""
    if not (isinstance(stmt.test, ast.Constant) and stmt.test.value) or stmt.orelse:
        return None
    exits_found = [s for s in stmt.body if has_exit(s)]
    if len(exits_found) != 1:
        return None
    (found,) = exits_found
    if isinstance(found, ast.If) and not found.orelse and len(found.body) == 1:
        return found if isinstance(found.body[0], ast.Break) else None
    return None


def without_exits_in_else(scope: Scope, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Loops whose `else` leaves more than it, with an `if` in its place."""
    return [new for stmt in stmts for new in _without_exit_in_else(scope, stmt)]


def _without_exit_in_else(scope: Scope, stmt: ast.stmt) -> list[ast.stmt]:
    if not contains([stmt], (ast.For, ast.While)):
        return [stmt]
    stmt = copy.copy(stmt)
    for field in ("body", "orelse", "finalbody"):
        if hasattr(stmt, field):
            setattr(stmt, field, without_exits_in_else(scope, getattr(stmt, field)))
    for field in ("handlers", "cases"):
        if hasattr(stmt, field):
            parts = [copy.copy(part) for part in getattr(stmt, field)]
            for part in parts:
                part.body = without_exits_in_else(scope, part.body)
            setattr(stmt, field, parts)
    if not isinstance(stmt, (ast.For, ast.While)) or not contains(
        stmt.orelse, (ast.Break, ast.Continue, ast.Return)
    ):
        return [stmt]
    otherwise, stmt.orelse = stmt.orelse, []
    if not contains(stmt.body, (ast.Break,), in_loops=False):
        return [stmt, *otherwise]
    left = scope.flag("left")
    stmt.body = [_MarkBreaks(left).visit(cloned(inner)) for inner in stmt.body]
    unless = ast.If(ast.UnaryOp(ast.Not(), name(left)), otherwise, [])
    start, ending = located([assign(left, False), unless], otherwise[0])
    return [start, stmt, ending]


class _MarkBreaks(StatementTransformer):
    """Sets a flag before each `break` of a loop."""

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def visit_Break(self, node: ast.Break) -> Any:
        return [*located([assign(self.flag, True)], node), node]

    def visit_For(self, node: ast.For) -> ast.For:
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        return node
