"""What the parts of the rewriting share: blocks of statements, and names that may be unbound."""

from __future__ import annotations

import ast
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from wend.capture.rewrite.expressions import Expressions
from wend.capture.rewrite.jumps import Flags
from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.state import own_expressions, touches
from wend.capture.rewrite.syntax import assign, at_head, located, name, runtime, thunk
from wend.capture.rewrite.walrus import Names
from wend.capture.syntax.names import SETTLES
from wend.capture.syntax.nodes import Kinds, cloned


class Blocks(ABC):
    """One function that is being rewritten."""

    def __init__(self, node: ast.FunctionDef, kinds: Kinds, numbers: list[int]) -> None:
        self.node = node
        self.scope = Scope(node, kinds, numbers)
        self.expressions = Expressions(self.scope)

    @abstractmethod
    def block(
        self, stmts: Sequence[ast.stmt], after: set[str], *, is_tail: bool = False
    ) -> list[ast.stmt]:
        """Rewrite statements.

        Args:
            stmts: the statements.
            after: the names that may be read after them.
            is_tail: whether the function ends after them; else they hold no `return`.
        """

    @abstractmethod
    def statement(
        self, stmt: ast.stmt, after: set[str], flags: Flags | None = None
    ) -> list[ast.stmt]:
        """Rewrite one statement; `flags` are those of a loop that has them already."""

    def visit(self, expression: ast.expr) -> ast.expr:
        # A copy: what code changes and reads is asked of the code as it was written.
        new = self.expressions.visit(cloned(expression))
        assert isinstance(new, ast.expr)
        return new

    def with_hoisted(self, stmt: ast.stmt, rewrite: Callable[[], list[ast.stmt]]) -> list[ast.stmt]:
        """A statement rewritten, after the functions that its expressions need."""
        outer, self.expressions.hoisted = self.expressions.hoisted, []
        with self.expressions.of(self.scope.perhaps_bound(own_expressions(stmt))):
            new = rewrite()
        touched = touches(self.scope, stmt)
        hoisted, self.expressions.hoisted = self.expressions.hoisted, outer
        return [*touched, *hoisted, *new]

    def split(self, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements whose heads may leave a name unbound, with these heads before them."""
        out: list[ast.stmt] = []
        for stmt in stmts:
            field = {ast.For: "iter", ast.Match: "subject"}.get(type(stmt))
            if field is not None and self.scope.perhaps_bound([getattr(stmt, field)]):
                held = self.scope.flag("head")
                head = assign(held, getattr(stmt, field))
                stmt = copy.copy(stmt)
                setattr(stmt, field, ast.copy_location(name(held), head.value))
                out += located([head], stmt)
            out.append(stmt)
        return out

    def settled(self, names: Names, sure: Names, origin: ast.stmt) -> list[ast.stmt]:
        """Names that an expression has perhaps bound: the sure ones are, the others no longer."""
        out: list[ast.stmt] = []
        for one in sorted(names):
            if one in sure:
                now: ast.stmt = assign(one, runtime("surely", name(one)))
            else:
                now = ast.Delete([ast.Name(one, ast.Del())])
            settles = ast.If(runtime("is_perhaps", thunk(name(one))), [now], [])
            setattr(settles, SETTLES, True)
            out.append(at_head(settles, origin))
        return out

    def arms(self, stmt: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """What an `if` runs if its test holds, and else."""
        names, (holds, fails) = (
            self.scope.perhaps_bound([stmt.test]),
            self.scope.surely_bound(stmt.test),
        )
        return (
            [*self.settled(names, holds, stmt), *stmt.body],
            [*self.settled(names, fails, stmt), *stmt.orelse],
        )
