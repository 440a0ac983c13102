"""`while` and `for`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from wend.capture.rewrite.blocks import Blocks
from wend.capture.rewrite.jumps import LoopFlags, has_exit, lower_body
from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import assign, at_first_line, located, name, runtime, thunk
from wend.capture.syntax.names import contains, has_early_exit, live_at_end, live_before, read
from wend.capture.syntax.nodes import StatementTransformer, cloned


class Loops(Blocks):
    """Rewriting of loops: tests and bodies become functions, exits become flags."""

    def while_(
        self, stmt: ast.While, after: set[str], flags: LoopFlags | None = None
    ) -> list[ast.stmt]:
        exit_test = _single_break(stmt)
        if exit_test is not None:
            index = stmt.body.index(exit_test)
            leading, trailing = stmt.body[:index], stmt.body[index + 1 :]
            continues: ast.expr = ast.UnaryOp(ast.Not(), exit_test.test)
            ast.copy_location(continues, exit_test.test)
            return self.loop(stmt, leading, continues, trailing, after, always=True)
        flags = flags or self.loop_flags(stmt)
        reports_break = bool(stmt.orelse) or (flags is not None and flags.broken in after)
        if flags is not None and not reports_break and self.scope.binds(stmt.test):
            # The names that the test binds stay bound when a `break` ends the loop.
            exit_if = ast.If(ast.UnaryOp(ast.Not(), stmt.test), [ast.Break()], [])
            endless = ast.While(ast.Constant(True), located([exit_if], stmt) + stmt.body, [])
            return self.while_(ast.copy_location(endless, stmt), after, flags)
        if flags is None:
            out = self.loop(stmt, [], stmt.test, stmt.body, live_before(stmt.orelse, after))
            return out + self.block(stmt.orelse, after)
        not_broken: ast.expr = ast.UnaryOp(ast.Not(), name(flags.broken))
        is_endless = isinstance(stmt.test, ast.Constant) and bool(stmt.test.value)
        test = not_broken if is_endless else ast.BoolOp(ast.And(), [not_broken, stmt.test])
        ast.copy_location(test, stmt.test)
        body = [assign(flags.skipped, False), *lower_body(stmt.body, flags)]
        body = located(body, stmt)
        live_at_exit = live_at_end(stmt.body, stmt.orelse, after) | {flags.broken}
        out = [
            *self.initial_flags(flags, stmt),
            *self.loop(stmt, [], test, body, live_at_exit, always=is_endless),
        ]
        return out + self.loop_else(stmt, flags, after)

    def loop(
        self,
        stmt: ast.stmt,
        leading: Sequence[ast.stmt],
        test: ast.expr,
        body: Sequence[ast.stmt],
        after: set[str],
        *,
        always: bool = False,
    ) -> list[ast.stmt]:
        """Rewrite a loop that runs `leading`, exits unless `test` holds, and runs `body`."""
        maybe_bound, (holds, fails) = (
            self.scope.maybe_bound([test]),
            self.scope.definitely_bound(test),
        )
        body = [*self.resolve_maybe_bound(maybe_bound, holds, stmt), *body]
        live_at_head = self.live_at_head(after, [*leading, ast.Expr(test), *body])
        live_after_test = live_before(list(body), live_at_head) | after | self.scope.always_live
        out: list[ast.stmt] = []
        names = [self.scope.new("test"), self.scope.new("body")]
        test_body = [
            *self.block(leading, live_after_test | read([test])),
            ast.Return(self.expressions.test(test)),
        ]
        out.append(self.scope.function(names[0], test_body, [*leading, ast.Expr(test)]))
        out.append(self.scope.function(names[1], self.block(body, live_at_head), body))
        setter, state = state_of(
            self.scope, [*leading, test, *body], live_at_head | after | live_after_test
        )
        out.append(setter)
        call = runtime("while_", *map(name, names), state, ast.Constant(always))
        out += [ast.Expr(call), *self.resolve_maybe_bound(maybe_bound, fails, stmt)]
        return [at_first_line(part, stmt) for part in out]

    def live_at_head(self, after: set[str], iteration: Sequence[ast.stmt]) -> set[str]:
        """Return the names that are live where an iteration starts."""
        # The last iteration, or the test, is followed by the code after the loop.
        live_next = after | live_before(iteration, after)
        return after | live_before(iteration, live_next) | self.scope.always_live

    def for_(
        self, stmt: ast.For, after: set[str], flags: LoopFlags | None = None
    ) -> list[ast.stmt]:
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
        live_at_exit = live_at_end(stmt.body, stmt.orelse, after) | (
            {flags.broken} if flags else set()
        )
        live_at_head = self.live_at_head(live_at_exit, body)
        out: list[ast.stmt] = []
        body_name = self.scope.new("body")
        definition = self.scope.function(body_name, self.block(body, live_at_head), body)
        definition.args = ast.arguments([], [ast.arg(item)], None, [], [], None, [])
        out.append(definition)
        setter, state = state_of(self.scope, body, live_at_head | live_at_exit)
        out.append(setter)
        broken: ast.expr = thunk(name(flags.broken)) if flags else ast.Constant(None)
        out.append(ast.Expr(runtime("for_", self.visit(stmt.iter), name(body_name), state, broken)))
        initial = self.initial_flags(flags, stmt) if flags else []
        result = [*initial, *(at_first_line(part, stmt) for part in out)]
        if flags is None:
            return result + self.block(stmt.orelse, after)
        return result + self.loop_else(stmt, flags, after)

    def loop_flags(self, stmt: ast.For | ast.While) -> LoopFlags | None:
        if not has_early_exit(stmt.body):
            return None
        return LoopFlags(self.scope.flag("broken"), self.scope.flag("skipped"))

    def initial_flags(self, flags: LoopFlags, stmt: ast.stmt) -> list[ast.stmt]:
        assignments = [assign(flags.broken, False), assign(flags.skipped, False)]
        return [ast.copy_location(stmt_new, stmt) for stmt_new in assignments]

    def loop_else(
        self, stmt: ast.For | ast.While, flags: LoopFlags, after: set[str]
    ) -> list[ast.stmt]:
        if not stmt.orelse:
            return []
        unless_broken = ast.If(ast.UnaryOp(ast.Not(), name(flags.broken)), stmt.orelse, [])
        return self.block([ast.copy_location(unless_broken, stmt)], after)


def _single_break(stmt: ast.While) -> ast.If | None:
    """Return the `if c: break` of a `while True` that has no other exit."""
    if not (isinstance(stmt.test, ast.Constant) and stmt.test.value) or stmt.orelse:
        return None
    exits = [s for s in stmt.body if has_exit(s)]
    if len(exits) != 1:
        return None
    (exit_stmt,) = exits
    if isinstance(exit_stmt, ast.If) and not exit_stmt.orelse and len(exit_stmt.body) == 1:
        return exit_stmt if isinstance(exit_stmt.body[0], ast.Break) else None
    return None


def move_exits_out_of_else(scope: Scope, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Replace a loop `else` that holds exits by an `if` after the loop."""
    return [result for stmt in stmts for result in _move_exits_out_of_else(scope, stmt)]


def _move_exits_out_of_else(scope: Scope, stmt: ast.stmt) -> list[ast.stmt]:
    if not contains([stmt], (ast.For, ast.While)):
        return [stmt]
    stmt = copy.copy(stmt)
    for field in ("body", "orelse", "finalbody"):
        if hasattr(stmt, field):
            setattr(stmt, field, move_exits_out_of_else(scope, getattr(stmt, field)))
    for field in ("handlers", "cases"):
        if hasattr(stmt, field):
            parts = [copy.copy(part) for part in getattr(stmt, field)]
            for part in parts:
                part.body = move_exits_out_of_else(scope, part.body)
            setattr(stmt, field, parts)
    if not isinstance(stmt, (ast.For, ast.While)) or not contains(
        stmt.orelse, (ast.Break, ast.Continue, ast.Return)
    ):
        return [stmt]
    loop_else, stmt.orelse = stmt.orelse, []
    if not contains(stmt.body, (ast.Break,), in_loops=False):
        return [stmt, *loop_else]
    left_flag = scope.flag("left")
    stmt.body = _MarkBreaks(left_flag).all_of(cloned(stmt.body))
    unless = ast.If(ast.UnaryOp(ast.Not(), name(left_flag)), loop_else, [])
    initial, final = located([assign(left_flag, False), unless], loop_else[0])
    return [initial, stmt, final]


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
