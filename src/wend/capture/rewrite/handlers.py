"""`try`, and `with contextlib.suppress(…)`."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from typing import Any

from wend.base.handling.handler_blocks import only_reraises
from wend.capture.rewrite.blocks import Blocks
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import (
    all_arguments,
    assign,
    at_first_line,
    located,
    name,
    runtime,
    strings,
    thunk,
)
from wend.capture.syntax.names import RETURNED, changed, live_before, read
from wend.capture.syntax.nodes import Transformer, by_kind, cloned, walk

# What NumPy may make of a floating-point error
_FLOAT_ERRORS = frozenset(["FloatingPointError", "RuntimeWarning", "Warning"])


class Handlers(Blocks):
    """Rewriting of `try`: its parts become functions.

    try: a              def _wend_try1(): a
    except E as e: b    def _wend_except2(_wend_error3): e = _wend_error3; b
    else: c         ->  def _wend_else4(): c
                        _wend_.try_(_wend_try1, ((lambda: E, True, 2, _wend_except2),),
                                    _wend_else4, live variables, state)
    """

    cleanups = 0  # how many blocks with a `finally` are around

    def try_(self, stmt: ast.Try, after: set[str]) -> list[ast.stmt]:
        if not stmt.finalbody:
            return self.handled(stmt, after)
        inner: list[ast.stmt] = stmt.body
        if stmt.handlers:
            handled = ast.Try(stmt.body, stmt.handlers, stmt.orelse, [])
            inner = [ast.copy_location(handled, stmt)]
        live = live_before(stmt.finalbody, after)
        names = [self.scope.new("try"), self.scope.new("finally")]
        self.cleanups += 1
        body = self.block(inner, live | read(stmt.finalbody))
        self.cleanups -= 1
        out: list[ast.stmt] = [
            self.scope.function(names[0], body, inner),
            self.scope.function(names[1], self.block(stmt.finalbody, after), stmt.finalbody),
        ]
        nodes = [*inner, *stmt.finalbody]
        setter, state = state_of(self.scope, nodes, None)
        line = ast.Constant(stmt.finalbody[0].lineno)
        live_names = strings(self.scope.carried_paths(changed(nodes), after))
        call = runtime("try_finally", *map(name, names), line, live_names, state)
        return [at_first_line(part, stmt) for part in (*out, setter, ast.Expr(call))]

    def handled(self, stmt: ast.Try, after: set[str]) -> list[ast.stmt]:
        """Rewrite a `try` without `finally`."""
        live = after | read([*stmt.handlers, *stmt.orelse])
        names = [self.scope.new("try"), self.scope.new("else")]
        body = self.watched(stmt, self.block(stmt.body, live))
        out = [
            self.scope.function(names[0], body, stmt.body),
            self.scope.function(names[1], self.block(stmt.orelse, after), stmt.orelse),
        ]
        clauses: list[ast.expr] = []
        for handler in stmt.handlers:
            function = self.handler(handler, after)
            out.append(function)
            kind = handler.type
            fields: list[ast.expr] = [
                ast.Constant(None) if kind is None else thunk(self.visit(kind)),
                ast.Constant(kind is None or _is_static(kind)),
                ast.Constant(handler.lineno),
                ast.Constant(only_reraises(handler)),
                ast.Constant(not self.cleanups and _returns(handler.body)),
                name(function.name),
            ]
            clauses.append(ast.Tuple(fields, ast.Load()))
        nodes = [*stmt.body, *stmt.handlers, *stmt.orelse]
        setter, state = state_of(self.scope, nodes, None)
        live_names = strings(self.scope.carried_paths(changed(nodes), after))
        parts = name(names[0]), ast.Tuple(clauses, ast.Load()), name(names[1])
        call = runtime("try_", *parts, live_names, state)
        return [at_first_line(part, stmt) for part in (*out, setter, ast.Expr(call))]

    def handler(self, handler: ast.ExceptHandler, after: set[str]) -> ast.FunctionDef:
        """Return the function of a handler, which takes the exception."""
        error = self.scope.new("error")
        body = [*self.check_caught(handler), *self.block(handler.body, after)]
        if handler.name is not None:
            unbind = [
                assign(handler.name, ast.Constant(None)),
                ast.Delete([ast.Name(handler.name, ast.Del())]),
            ]
            bound = [assign(handler.name, name(error)), ast.Try(body, [], [], unbind)]
            body = located(bound, handler.body[0])
        origin = ast.Try([], [handler], [], [])
        function = self.scope.function(self.scope.new("except"), body, [origin])
        function.args = ast.arguments([], [ast.arg(error)], None, [], [], None, [])
        return function

    def try_star(self, stmt: ast.TryStar, after: set[str]) -> list[ast.stmt]:
        """Rewrite the parts of a `try` that handles groups, which stays one."""
        live = after | read([*stmt.handlers, *stmt.orelse, *stmt.finalbody])
        caught = [
            ast.copy_location(
                ast.ExceptHandler(
                    h.type, h.name, [*self.check_caught(h), *self.block(h.body, live)]
                ),
                h,
            )
            for h in stmt.handlers
        ]
        body = self.watched(stmt, self.block(stmt.body, live))
        orelse, final = self.block(stmt.orelse, live), self.block(stmt.finalbody, after)
        if not final:
            return [ast.TryStar(body, caught, orelse, [])]
        first = final[0]
        final[:0] = located([ast.Expr(runtime("begin_finally"))], first)
        watch = ast.withitem(runtime("watch_finally"))
        return located([ast.With([watch], [ast.TryStar(body, caught, orelse, final)])], first)

    @staticmethod
    def watched(stmt: ast.Try | ast.TryStar, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the rewritten body of a `try`, watched if a handler asks for float errors."""
        types = [handler.type for handler in stmt.handlers if handler.type is not None]
        asked = sorted(_FLOAT_ERRORS & read(types))
        if not asked:
            return body
        watch = runtime("refuse_float_operations", ast.Constant(f"except {asked[0]}"))
        return located([ast.With([ast.withitem(watch)], body)], body[0])

    @staticmethod
    def check_caught(handler: ast.ExceptHandler) -> list[ast.stmt]:
        return located([ast.Expr(runtime("check_caught"))], handler.body[0])


def _returns(body: list[ast.stmt]) -> bool:
    """Return whether the function returns at the end of a handler whose exits are flags."""
    return any(
        isinstance(stmt, ast.Assign)
        and isinstance(stmt.targets[0], ast.Name)
        and stmt.targets[0].id == RETURNED
        for stmt in body
    )


def _is_static(kind: ast.expr) -> bool:
    """Return whether the classes of a handler are names, or attributes of names."""
    if isinstance(kind, ast.Tuple):
        return all(map(_is_static, kind.elts))
    while isinstance(kind, ast.Attribute):
        kind = kind.value
    return isinstance(kind, ast.Name)


# `with contextlib.suppress(…)` is a `try` whose handler does nothing, which is recorded
def suppress_by_handlers(node: ast.FunctionDef, outside: Mapping[str, Any]) -> ast.FunctionDef:
    """Rewrite the `with` statements of a function that are known to suppress exceptions.

    Args:
        node: the function.
        outside: the globals, and what its closure holds.
    """
    kinds = by_kind(node)
    if not any(_is_candidate(stmt) for stmt in kinds.get(ast.With, ())):
        return node
    own = {n.id for n in kinds[ast.Name] if not isinstance(n.ctx, ast.Load)}
    functions = (*kinds.get(ast.FunctionDef, ()), *kinds.get(ast.Lambda, ()))
    own |= {argument.arg for fun in functions for argument in all_arguments(fun.args)}
    own |= {n.asname or n.name for n in kinds.get(ast.alias, ())}
    own |= {fun.name for fun in kinds.get(ast.FunctionDef, ()) if fun is not node}
    names = {key: value for key, value in outside.items() if key not in own}
    node = cloned(node)
    node.body = _Suppressions(names).all_of(node.body)
    return node


def _is_candidate(stmt: ast.With) -> bool:
    """Return whether a `with` has the form `with suppress(A, B):`, of classes that names hold."""
    match stmt.items:
        case [ast.withitem(ast.Call(ast.Name() | ast.Attribute(ast.Name()), [_, *_], []), None)]:
            call = stmt.items[0].context_expr
            assert isinstance(call, ast.Call)
            return all(isinstance(x, (ast.Name, ast.Attribute)) for x in call.args)
    return False


class _Suppressions(Transformer):
    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def visit_With(self, stmt: ast.With) -> Any:
        self.generic_visit(stmt)
        call = stmt.items[0].context_expr
        if not _is_candidate(stmt) or not isinstance(call, ast.Call):
            return stmt
        if self._value(call.func) is not contextlib.suppress or _returns_text(stmt):
            return stmt
        classes = call.args[0]
        if len(call.args) > 1:
            classes = ast.copy_location(ast.Tuple(call.args, ast.Load()), call)
        handler = ast.ExceptHandler(classes, None, located([ast.Pass()], stmt))
        guarded = ast.Try(stmt.body, [ast.copy_location(handler, stmt)], [], [])
        check = ast.Expr(runtime("check_suppress", call.func, *cloned(call.args)))
        return [*located([check], stmt), ast.copy_location(guarded, stmt)]

    def _value(self, expression: ast.expr) -> Any:
        """Return what a name, or an attribute of one, stands for outside the function."""
        if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
            is_of_module = self.names.get(expression.value.id) is contextlib
            return vars(contextlib).get(expression.attr) if is_of_module else None
        return self.names.get(expression.id) if isinstance(expression, ast.Name) else None


def _returns_text(stmt: ast.With) -> bool:
    """Return whether a block returns a text; a trace for each path does so, but not in a `try`."""
    returned = (part.value for part in walk(stmt) if isinstance(part, ast.Return))
    return any(
        isinstance(value, ast.JoinedStr)
        or (isinstance(value, ast.Constant) and isinstance(value.value, str))
        for value in returned
    )
