"""`return` inside of other statements."""

from __future__ import annotations

import ast
import copy
from functools import partial

from wend.capture.rewrite.branches import Branches
from wend.capture.rewrite.jumps import Flags, leaves, lower_body
from wend.capture.rewrite.loops import Loops
from wend.capture.rewrite.patterns import is_value_match
from wend.capture.rewrite.sink_returns import with_late_returns
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import assign, at_head, located, name, runtime, strings, thunk
from wend.capture.syntax.names import (
    PREFIX,
    REST,
    changed,
    contains,
    live_before,
)

LOWERED = f"{PREFIX}lowered"  # marks statements whose exits are flags


class Returns(Loops, Branches):
    """Statements that may end the function, each with all that follows it."""

    def returning(self, stmt: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A statement that may end the function, with all that follows it."""
        if isinstance(stmt, ast.If):
            return self.with_hoisted(stmt, lambda: self.if_return(stmt, rest))
        if isinstance(stmt, ast.Match) and is_value_match(stmt):
            return self.block([*self.match_as_if(stmt), *rest], set(), is_tail=True)
        flags = Flags(self.scope.flag("broken"), self.scope.flag("skipped"))
        self.scope.variable(flags.returned)
        self.scope.variable(flags.value)
        start: list[ast.stmt] = [
            assign(flag, False) for flag in (flags.broken, flags.skipped, flags.returned)
        ]
        ending: ast.stmt = ast.Return(runtime("returned", thunk(name(flags.value))))
        if isinstance(stmt, (ast.For, ast.While)):
            return self.returning_loop(stmt, rest, flags, start)
        if not leaves([stmt]):
            ending = ast.If(name(flags.returned), [ending], [])
        lowered = [*start, *lower_body([stmt], flags), ending]
        for new in lowered[len(start) : -1]:
            setattr(new, LOWERED, True)
        return self.block([*located(lowered, stmt), *rest], set(), is_tail=True)

    def returning_loop(
        self, stmt: ast.For | ast.While, rest: list[ast.stmt], flags: Flags, start: list[ast.stmt]
    ) -> list[ast.stmt]:
        breaks = contains(stmt.body, (ast.Break,), in_loops=False)
        following = list(rest)
        if stmt.orelse and breaks:
            ended = ast.If(ast.UnaryOp(ast.Not(), name(flags.broken)), stmt.orelse, [])
            following = [*located([ended], stmt.orelse[0]), *rest]
        elif stmt.orelse:
            following = [*stmt.orelse, *rest]
        if contains(stmt.body, (ast.Return,)):
            new_flag = partial(self.scope.flag, "late")
            found = with_late_returns(stmt, self.scope.bound_before(stmt), new_flag)
            stmt = found.loop
            endings: dict[str, ast.stmt] = {**found.returns}
            start = [*start, *(assign(flag, False) for flag in found.returns)]
            if found.some_stay:
                value = ast.Return(runtime("returned", thunk(name(flags.value))))
                endings[flags.returned] = value
            after: list[ast.stmt] = [
                ast.If(name(flag), [ending], []) for flag, ending in endings.items()
            ]
            if leaves([stmt]):
                after[-1] = endings.popitem()[1]
            following = [*located(after, stmt), *following]
        start = located(start, stmt)
        live = live_before(following, set()) | self.scope.always_live
        stmt = copy.copy(stmt)
        stmt.orelse = []
        loop = self.with_hoisted(stmt, lambda: self.statement(stmt, live, flags))
        loop = [at_head(s, stmt) for s in loop]
        return [*start, *loop, *self.block(following, set(), is_tail=True)]

    def if_return(self, stmt: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """`if` with a return: each arm goes on to what follows, and gives the return value."""
        out: list[ast.stmt] = []
        following = rest
        arms = list(self.arms(stmt))
        going_on = [arm for arm in arms if not leaves(arm)]
        if rest and len(going_on) == 2:
            tail = self.scope.new("rest")
            out.append(self.scope.function(tail, self.block(rest, set(), is_tail=True), rest))
            going_on_there = ast.Call(name(tail), [], [])
            setattr(going_on_there, REST, rest)
            rest = [ast.copy_location(ast.Return(going_on_there), rest[0])]
        arms = [arm if leaves(arm) else [*arm, *rest] for arm in arms]
        names = [self.scope.new("then"), self.scope.new("else")]
        for arm_name, arm in zip(names, arms, strict=True):
            out.append(self.scope.function(arm_name, self.block(arm, set(), is_tail=True), arm))
        nodes = [*arms[0], *arms[1], *following]
        lasting = strings(place for place in changed(nodes) if self.scope.outlives(place))
        setter, state = state_of(self.scope, nodes, None)
        call = runtime("if_return", self.visit(stmt.test), *map(name, names), lasting, state)
        out += [setter, ast.Return(call)]
        return [at_head(new, stmt) for new in out]


def may_return(stmt: ast.stmt) -> bool:
    """Whether a statement holds a `return` that is no flag yet."""
    if isinstance(stmt, ast.Return) or hasattr(stmt, LOWERED):
        return False
    return contains([stmt], (ast.Return,))
