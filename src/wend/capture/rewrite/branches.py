"""`if`, and `match` on values, classes and sequences of known length."""

from __future__ import annotations

import ast

from wend.capture.rewrite.blocks import Blocks
from wend.capture.rewrite.patterns import case_as_if, is_value_match
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import assign, located, name, runtime, strings
from wend.capture.syntax.names import changed
from wend.capture.syntax.nodes import by_kind


class Branches(Blocks):
    """Rewriting of branches: their arms become functions."""

    def if_(self, stmt: ast.If, after: set[str]) -> list[ast.stmt]:
        if isinstance(stmt.test, ast.Constant):
            return self.block(stmt.body if stmt.test.value else stmt.orelse, after)
        out: list[ast.stmt] = []
        arms, arm_names = self.arms(stmt), []
        for kind, body in zip(("then", "else"), arms, strict=True):
            arm_names.append(self.scope.new(kind))
            out.append(self.scope.function(arm_names[-1], self.block(body, after), body))
        nodes = [*arms[0], *arms[1]]
        live = strings(self.scope.carried_paths(changed(nodes), after))
        setter, state = state_of(self.scope, nodes, None)
        call = runtime("if_", self.visit(stmt.test), *map(name, arm_names), live, state)
        return [*out, setter, ast.Expr(call)]

    def match(self, stmt: ast.Match, after: set[str]) -> list[ast.stmt]:
        if is_value_match(stmt):
            return self.block(self.match_as_if(stmt), after)
        cases = [
            ast.match_case(c.pattern, c.guard and self.visit(c.guard), self.block(c.body, after))
            for c in stmt.cases
        ]
        subject = self.visit(stmt.subject)
        if ast.MatchClass in by_kind(stmt):
            subject = runtime("decomposed", subject)
        return [ast.Match(subject, cases)]

    def match_as_if(self, stmt: ast.Match) -> list[ast.stmt]:
        """Rewrite a `match` to a chain of `if`."""
        subject = self.scope.flag("subject")
        branches: list[ast.stmt] = []
        for case in reversed(stmt.cases):
            branches = [case_as_if(case, subject, branches)]
        return located([assign(subject, stmt.subject), *branches], stmt)
