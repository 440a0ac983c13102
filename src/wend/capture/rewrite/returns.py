"""`return` inside compound statements."""

from __future__ import annotations

import ast
import copy
from functools import partial

from wend.capture.rewrite.branches import Branches
from wend.capture.rewrite.jumps import LoopFlags, lower_body, never_falls_through
from wend.capture.rewrite.loops import Loops
from wend.capture.rewrite.patterns import is_value_match
from wend.capture.rewrite.sinking import sink_returns
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import (
    assign,
    at_first_line,
    located,
    name,
    runtime,
    strings,
    thunk,
)
from wend.capture.syntax.names import CONTINUATION, PREFIX, changed, contains, live_before

LOWERED = f"{PREFIX}lowered"  # marks statements whose exits are flags


class Returns(Loops, Branches):
    """Rewriting of statements that may end the function, each with its continuation."""

    def with_return(self, stmt: ast.stmt, continuation: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a statement that may end the function, with its continuation."""
        if isinstance(stmt, ast.If):
            return self.with_hoisted(stmt, lambda: self.if_return(stmt, continuation))
        if isinstance(stmt, ast.Match) and is_value_match(stmt):
            return self.block([*self.match_as_if(stmt), *continuation], set(), is_tail=True)
        flags = LoopFlags(self.scope.flag("broken"), self.scope.flag("skipped"))
        self.scope.variable(flags.returned)
        self.scope.variable(flags.value)
        initial: list[ast.stmt] = [
            assign(flag, False) for flag in (flags.broken, flags.skipped, flags.returned)
        ]
        final_return: ast.stmt = ast.Return(runtime("returned", thunk(name(flags.value))))
        if isinstance(stmt, (ast.For, ast.While)):
            return self.loop_with_return(stmt, continuation, flags, initial)
        if continuation or not never_falls_through([stmt]):  # a `with` may swallow an error
            final_return = ast.If(name(flags.returned), [final_return], [])
        lowered = [*initial, *lower_body([stmt], flags), final_return]
        for lowered_stmt in lowered[len(initial) : -1]:
            setattr(lowered_stmt, LOWERED, True)
        return self.block([*located(lowered, stmt), *continuation], set(), is_tail=True)

    def loop_with_return(
        self,
        stmt: ast.For | ast.While,
        continuation: list[ast.stmt],
        flags: LoopFlags,
        initial: list[ast.stmt],
    ) -> list[ast.stmt]:
        breaks = contains(stmt.body, (ast.Break,), in_loops=False)
        following = list(continuation)
        if stmt.orelse and breaks:
            loop_else = ast.If(ast.UnaryOp(ast.Not(), name(flags.broken)), stmt.orelse, [])
            following = [*located([loop_else], stmt.orelse[0]), *continuation]
        elif stmt.orelse:
            following = [*stmt.orelse, *continuation]
        if contains(stmt.body, (ast.Return,)):
            new_flag = partial(self.scope.flag, "late")
            sunk = sink_returns(stmt, self.scope.bound_before(stmt), new_flag)
            stmt = sunk.loop
            endings: dict[str, ast.stmt] = {**sunk.returns}
            initial = [*initial, *(assign(flag, False) for flag in sunk.returns)]
            if sunk.has_unsunk:
                endings[flags.returned] = ast.Return(runtime("returned", thunk(name(flags.value))))
            after: list[ast.stmt] = [
                ast.If(name(flag), [ending], []) for flag, ending in endings.items()
            ]
            if never_falls_through([stmt]):
                after[-1] = endings.popitem()[1]
            following = [*located(after, stmt), *following]
        initial = located(initial, stmt)
        live = live_before(following, set()) | self.scope.always_live
        stmt = copy.copy(stmt)
        stmt.orelse = []
        loop = self.with_hoisted(stmt, lambda: self.statement(stmt, live, flags))
        loop = [at_first_line(s, stmt) for s in loop]
        return [*initial, *loop, *self.block(following, set(), is_tail=True)]

    def if_return(self, stmt: ast.If, continuation: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite an `if` with a return: each arm runs the continuation and returns its value."""
        out: list[ast.stmt] = []
        following = continuation
        arms = list(self.arms(stmt))
        open_arms = [arm for arm in arms if not never_falls_through(arm)]
        if continuation and len(open_arms) == 2:
            continuation_name = self.scope.new("rest")
            out.append(
                self.scope.function(
                    continuation_name, self.block(continuation, set(), is_tail=True), continuation
                )
            )
            continuation_call = ast.Call(name(continuation_name), [], [])
            setattr(continuation_call, CONTINUATION, continuation)
            continuation = [ast.copy_location(ast.Return(continuation_call), continuation[0])]
        arms = [arm if never_falls_through(arm) else [*arm, *continuation] for arm in arms]
        names = [self.scope.new("then"), self.scope.new("else")]
        for arm_name, arm in zip(names, arms, strict=True):
            out.append(self.scope.function(arm_name, self.block(arm, set(), is_tail=True), arm))
        nodes = [*arms[0], *arms[1], *following]
        lasting_paths = strings(path for path in changed(nodes) if self.scope.outlives(path))
        setter, state = state_of(self.scope, nodes, None)
        call = runtime(
            "if_return", self.expressions.test(stmt.test), *map(name, names), lasting_paths, state
        )
        out += [setter, ast.Return(call)]
        return [at_first_line(new, stmt) for new in out]


def has_return(stmt: ast.stmt) -> bool:
    """Return whether a statement holds a `return` that is not lowered to a flag yet."""
    if isinstance(stmt, ast.Return) or hasattr(stmt, LOWERED):
        return False
    return contains([stmt], (ast.Return,))
