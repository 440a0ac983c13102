"""Rewrites a function so that its control flow goes through the runtime.

Bodies of loops and branches become functions inside the function; they change its variables by
`nonlocal`, so closures stay live and the statements stay as the user wrote them, line for line.

    while test: body        def _wend_test1(): return test
                     ->     def _wend_body1(): nonlocal x; body
                            _wend_.while_(_wend_test1, _wend_body1, state of (x,))
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Sequence

from wend.capture.rewrite.assignment_targets import prepared
from wend.capture.rewrite.compare_chains import without_binding_chains
from wend.capture.rewrite.expressions import without_annotations
from wend.capture.rewrite.jumps import Flags
from wend.capture.rewrite.loops import without_exits_in_else
from wend.capture.rewrite.returns import Returns, may_return
from wend.capture.rewrite.scope import mangled
from wend.capture.rewrite.subscripts import with_assignments
from wend.capture.rewrite.syntax import (
    assign,
    at_head,
    binding,
    definition,
    located,
    name,
    runtime,
    thunk,
)
from wend.capture.rewrite.walrus import NONE
from wend.capture.syntax.names import (
    SETTLES,
    live_after,
    read,
    yields_in_parts,
)
from wend.capture.syntax.nodes import by_kind, cloned

# Statements that hold no others
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Assert, ast.Delete)


def rewrite_function(node: ast.FunctionDef) -> ast.FunctionDef:
    """Return the definition with its control flow rewritten; decorators and annotations go."""
    return _rewritten(node, [0])


def _rewritten(node: ast.FunctionDef, numbers: list[int]) -> ast.FunctionDef:
    kinds = by_kind(node)
    node = prepared(without_binding_chains(node, numbers, kinds), kinds)
    return _Function(with_assignments(node, kinds), kinds, numbers).rewritten()


class _Function(Returns):
    """One function that is being rewritten."""

    def rewritten(self) -> ast.FunctionDef:
        node = self.node
        body = self.block(without_exits_in_else(self.scope, node.body), set(), is_tail=True)
        bound = [p for p in self.scope.bound if p in self.scope.locals - {*self.scope.params}]
        local = [*bound, *self.scope.flags]
        arguments = without_annotations(node.args, self.expressions)
        new = definition(node.name, arguments, [*binding(local), *body] or [ast.Pass()])
        return ast.copy_location(new, node)

    def block(
        self, stmts: Sequence[ast.stmt], after: set[str], *, is_tail: bool = False
    ) -> list[ast.stmt]:
        """Rewrite statements.

        Args:
            stmts: the statements.
            after: the names that may be read after them.
            is_tail: whether the function ends after them; else they hold no `return`.
        """
        out: list[ast.stmt] = []
        stmts = self.split(stmts)
        for position, (stmt, later) in enumerate(zip(stmts, live_after(stmts, after), strict=True)):
            if is_tail and may_return(stmt):
                return out + self.returning(stmt, list(stmts[position + 1 :]))
            live = later | self.scope.always_live
            new = self.with_hoisted(stmt, functools.partial(self.statement, stmt, live))
            out += [at_head(one, stmt) for one in new]
            if isinstance(stmt, _SIMPLE):
                sure = (
                    self.scope.surely_bound(stmt.test)[0] if isinstance(stmt, ast.Assert) else NONE
                )
                out += self.settled(self.scope.perhaps_bound([stmt]), sure, stmt)
        return out

    def statement(
        self, stmt: ast.stmt, after: set[str], flags: Flags | None = None
    ) -> list[ast.stmt]:
        if hasattr(stmt, SETTLES):
            return [stmt]
        match stmt:
            case ast.If():
                return self.if_(stmt, after)
            case ast.While():
                return self.while_(stmt, after, flags)
            case ast.For():
                return self.for_(stmt, after, flags)
            case ast.Match():
                return self.match(stmt, after)
            case ast.FunctionDef() if not yields_in_parts(stmt):
                return [self.nested(stmt)]
            case ast.ClassDef():
                return [self.nested_class(stmt)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [stmt]  # it is run piece by piece
            case ast.Raise():
                check = ast.Expr(runtime("check_raise"))
                return [*located([check], stmt), self.expressions.visit(cloned(stmt))]
            case ast.Assert(test=test, msg=message):
                said = message or ast.Constant(None)
                call = runtime("assert_", self.visit(test), thunk(self.visit(said)))
                return [ast.Expr(call)]
            case ast.With(items=items, body=body):
                items = [
                    ast.withitem(
                        runtime("context", self.visit(item.context_expr)), item.optional_vars
                    )
                    for item in items
                ]
                settled = self.settled(self.scope.perhaps_bound(stmt.items), NONE, stmt)
                return [ast.With(items, self.block([*settled, *body], after))]
            case ast.Return(value=ast.expr() as value) if self.scope.outlives_some(
                self.scope.perhaps_bound([value])
            ):
                held = self.scope.flag("value")
                settled = self.settled(self.scope.perhaps_bound([value]), NONE, stmt)
                returned: list[ast.stmt] = [ast.Return(name(held))]
                return [assign(held, self.visit(value)), *settled, *returned]
            case (
                ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final)
                | ast.TryStar(body=body, handlers=handlers, orelse=orelse, finalbody=final)
            ):
                late = after | read([*handlers, *orelse, *final])
                caught = [
                    ast.copy_location(
                        ast.ExceptHandler(
                            h.type, h.name, [*self.checked(h), *self.block(h.body, late)]
                        ),
                        h,
                    )
                    for h in handlers
                ]
                return [
                    type(stmt)(
                        self.block(body, late),
                        caught,
                        self.block(orelse, late),
                        self.block(final, after),
                    )
                ]
        return [self.expressions.visit(cloned(stmt))]

    def nested(self, stmt: ast.FunctionDef) -> ast.FunctionDef:
        new = _rewritten(stmt, self.scope.numbers)
        new.decorator_list = [self.visit(decorator) for decorator in stmt.decorator_list]
        return new

    def nested_class(self, stmt: ast.ClassDef) -> ast.ClassDef:
        """A class with its methods rewritten."""
        new = copy.copy(stmt)
        new.body = [
            self.nested(mangled(inner, stmt.name))
            if isinstance(inner, ast.FunctionDef) and not yields_in_parts(inner)
            else inner
            for inner in stmt.body
        ]
        return new

    @staticmethod
    def checked(handler: ast.ExceptHandler) -> list[ast.stmt]:
        check = ast.Expr(runtime("check_caught"))
        return located([check], handler.body[0])
