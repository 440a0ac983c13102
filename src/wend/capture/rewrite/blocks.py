"""The part that all rewriters share: blocks of statements and maybe-bound names."""

from __future__ import annotations

import ast
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from wend.capture.rewrite.expressions import Expressions
from wend.capture.rewrite.jumps import LoopFlags
from wend.capture.rewrite.scope import Enclosing, Scope
from wend.capture.rewrite.state import head_expressions, write_log_calls
from wend.capture.rewrite.syntax import assign, at_first_line, located, name, runtime, thunk
from wend.capture.rewrite.walrus import Names
from wend.capture.syntax.names import RESOLVES_UNBOUND
from wend.capture.syntax.nodes import Kinds, cloned


class Blocks(ABC):
    """One function that is being rewritten."""

    def __init__(
        self, node: ast.FunctionDef, kinds: Kinds, counter: list[int], enclosing: Enclosing
    ) -> None:
        self.node = node
        self.scope = Scope(node, kinds, counter, enclosing)
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
        self, stmt: ast.stmt, after: set[str], flags: LoopFlags | None = None
    ) -> list[ast.stmt]:
        """Rewrite one statement; `flags` are those of a loop that already has them."""

    def visit(self, expression: ast.expr) -> ast.expr:
        # A copy: changes and reads are computed on the code as the user wrote it.
        rewritten = self.expressions.visit(cloned(expression))
        assert isinstance(rewritten, ast.expr)
        return rewritten

    def with_hoisted(self, stmt: ast.stmt, rewrite: Callable[[], list[ast.stmt]]) -> list[ast.stmt]:
        """Rewrite a statement, after the functions that its expressions need."""
        saved, self.expressions.hoisted = self.expressions.hoisted, []
        with self.expressions.of(self.scope.maybe_bound(head_expressions(stmt))):
            rewritten = rewrite()
        log_calls = write_log_calls(self.scope, stmt)
        hoisted, self.expressions.hoisted = self.expressions.hoisted, saved
        return [*log_calls, *hoisted, *rewritten]

    def split_heads(self, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Move statement heads that may leave a name unbound before their statements."""
        out: list[ast.stmt] = []
        for stmt in stmts:
            field = {ast.For: "iter", ast.Match: "subject"}.get(type(stmt))
            if field is not None and self.scope.maybe_bound([getattr(stmt, field)]):
                temporary = self.scope.flag("head")
                head = assign(temporary, getattr(stmt, field))
                stmt = copy.copy(stmt)
                setattr(stmt, field, ast.copy_location(name(temporary), head.value))
                out += located([head], stmt)
            out.append(stmt)
        return out

    def resolve_maybe_bound(
        self, names: Names, definite: Names, origin: ast.stmt
    ) -> list[ast.stmt]:
        """Unwrap maybe-bound names that are definitely bound now, and unbind the others."""
        out: list[ast.stmt] = []
        for identifier in sorted(names):
            if identifier in definite:
                action: ast.stmt = assign(identifier, runtime("surely", name(identifier)))
            else:
                action = ast.Delete([ast.Name(identifier, ast.Del())])
            resolve = ast.If(runtime("is_perhaps", thunk(name(identifier))), [action], [])
            setattr(resolve, RESOLVES_UNBOUND, True)
            out.append(at_first_line(resolve, origin))
        return out

    def arms(self, stmt: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Return the statements of an `if` for either outcome of its test."""
        names, (holds, fails) = (
            self.scope.maybe_bound([stmt.test]),
            self.scope.definitely_bound(stmt.test),
        )
        return (
            [*self.resolve_maybe_bound(names, holds, stmt), *stmt.body],
            [*self.resolve_maybe_bound(names, fails, stmt), *stmt.orelse],
        )
