"""Definite assignment: which reads of a function's variables may find them unbound.

A variable is definitely assigned where every path from the start of the function binds it, as in
the Java Language Specification, chapter 16. Loops may make no trip, and `try` may end anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from wend.capture.rewrite.walrus import NO_NAMES, bound_by_all, maybe_bound
from wend.capture.syntax.names import read
from wend.capture.syntax.nodes import children, inner_statements, walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Names = frozenset[str]
State = Names | None  # the names that are bound; None where control never comes


def possibly_unbound(
    body: Sequence[ast.stmt],
    params: Iterable[str],
    variables: Iterable[str],
    *,
    has_walrus: bool,
) -> Names:
    """Return the variables of which some read may find them unbound, in nested functions too.

    Those that a class body or a function without source rewriting reads are left out, and those
    that `:=` binds in an operand that may be skipped: they are resolved where they are bound.
    """
    analysis = _Analysis(frozenset(variables), has_walrus)
    analysis.block(body, frozenset(params))
    opaque = [stmt for stmt in _statements(body) if isinstance(stmt, ast.ClassDef)]
    return (
        frozenset(analysis.unbound) - read(opaque) - (maybe_bound(body) if has_walrus else NO_NAMES)
    )


def _statements(stmts: Iterable[ast.AST]) -> list[ast.AST]:
    statements = [*stmts]
    for stmt in statements:  # grows during the iteration
        statements += inner_statements(stmt)
    return statements


def _unbound_in(stmts: Iterable[ast.AST]) -> Names:
    """Return the names that statements unbind somewhere: by `del`, and as a handler ends."""
    names: set[str] = set()
    for part in (part for stmt in stmts for part in walk(stmt)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del):
            names.add(part.id)
        elif isinstance(part, ast.ExceptHandler) and part.name:
            names.add(part.name)
    return frozenset(names)


def _common(states: Iterable[State]) -> State:
    """Return what is bound on all paths that reach a point."""
    reached = [state for state in states if state is not None]
    return frozenset.intersection(*reached) if reached else None


class _Analysis:
    """A forward analysis of one function; `unbound` collects what may be read too early."""

    def __init__(self, variables: Names, has_walrus: bool) -> None:
        self.variables, self.has_walrus = variables, has_walrus
        self.unbound: set[str] = set()
        self.breaks: list[State] = []

    def reads(self, nodes: Iterable[ast.AST], bound: Names) -> None:
        self.unbound |= (read(nodes) & self.variables) - bound

    def evaluate(self, nodes: Sequence[ast.AST], bound: Names) -> Names:
        """Read expressions; return what is bound after them."""
        if not self.has_walrus:
            self.reads(nodes, bound)
            return bound
        for node in nodes:
            self.reads([node], bound | bound_by_all([node]))
        return bound | bound_by_all(nodes)

    def block(self, stmts: Iterable[ast.stmt], state: State) -> State:
        for stmt in stmts:
            if state is None:
                return None
            state = self.statement(stmt, state)
        return state

    def statement(self, stmt: ast.stmt, bound: Names) -> State:
        match stmt:
            case ast.If(test=test, body=body, orelse=orelse):
                bound = self.evaluate([test], bound)
                return _common([self.block(body, bound), self.block(orelse, bound)])
            case ast.While(test=test, body=body, orelse=orelse):
                bound = self.evaluate([test], bound - _unbound_in(body))  # as after a trip
                is_endless = isinstance(test, ast.Constant) and bool(test.value)
                return self.loop(body, orelse, bound, None if is_endless else bound)
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                bound = self.evaluate([iterable], bound) - _unbound_in(body)
                return self.loop(body, orelse, bound | _targets(target), bound)
            case ast.Try() | ast.TryStar():
                return self.try_(stmt, bound)
            case ast.With(items=items, body=body):
                for item in items:
                    bound = self.evaluate([item.context_expr], bound)
                    if item.optional_vars is not None:
                        bound |= _targets(item.optional_vars)
                end = self.block(body, bound)
                if end is None:  # a manager may swallow an exception
                    return bound - _unbound_in(body)
                return end
            case ast.Match(subject=subject, cases=cases):
                bound = self.evaluate([subject], bound)
                arms: list[State] = [bound]
                for case in cases:
                    entry = bound | _bound_by_pattern(case.pattern)
                    if case.guard is not None:
                        entry = self.evaluate([case.guard], entry)
                    arms.append(self.block(case.body, entry))
                return _common(arms)
            case ast.Return() | ast.Raise():
                self.evaluate(children(stmt), bound)
                return None
            case ast.Break():
                self.breaks.append(bound)
                return None
            case ast.Continue():
                return None
            case ast.Delete(targets=targets):
                self.reads(targets, bound)
                return bound - _unbound_in([stmt])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.reads([stmt], bound | {name} | _own_names(stmt))
                return bound | {name}
            case ast.ClassDef(name=name):
                self.reads([stmt], bound)
                return bound | {name}
        bound = self.evaluate(children(stmt), bound)
        if isinstance(stmt, ast.AugAssign):
            self.reads([ast.Expr(stmt.target)], bound)
            if isinstance(stmt.target, ast.Name) and stmt.target.id not in bound:
                self.unbound.add(stmt.target.id)
        if isinstance(stmt, ast.AnnAssign) and stmt.value is None:
            return bound
        return bound | _targets(stmt)

    def try_(self, stmt: ast.Try | ast.TryStar, bound: Names) -> State:
        """Analyse a `try`, whose body may end anywhere."""
        ends = [self.block(stmt.orelse, self.block(stmt.body, bound))]
        entry = bound - _unbound_in(stmt.body)
        for handler in stmt.handlers:
            names = frozenset([handler.name] if handler.name else [])
            end = self.block(handler.body, entry | names)
            ends.append(None if end is None else end - names)
        entry -= _unbound_in([*stmt.handlers, *stmt.orelse])
        end, final_end = _common(ends), self.block(stmt.finalbody, entry)
        if end is None or final_end is None:
            return None
        return (end - _unbound_in(stmt.finalbody)) | final_end

    def loop(
        self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], entry: Names, exhausted: State
    ) -> State:
        """Analyse a loop whose body starts with `entry`, and which is left with `exhausted`."""
        saved, self.breaks = self.breaks, []
        self.block(body, entry)
        breaks, self.breaks = self.breaks, saved
        end = _common([self.block(orelse, exhausted), *breaks])
        if breaks and exhausted is not None and end is not None:  # by `else`, or before a `break`
            self.unbound |= (end - entry) & self.variables
        return end


def _targets(node: ast.AST) -> Names:
    """Return the names that a target or a simple statement binds, outside of nested scopes."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return frozenset((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return frozenset(
        inner.id
        for part in _outer_parts(node)
        if isinstance(inner := part, ast.Name) and isinstance(inner.ctx, ast.Store)
    )


def _outer_parts(node: ast.AST) -> list[ast.AST]:
    parts = [node]
    for part in parts:  # grows during the iteration
        if not isinstance(
            part,
            (
                ast.Lambda,
                ast.ListComp,
                ast.SetComp,
                ast.DictComp,
                ast.GeneratorExp,
                ast.BoolOp,
                ast.IfExp,
            ),
        ):
            parts += children(part)
    return parts


def _bound_by_pattern(pattern: ast.pattern) -> Names:
    names = {getattr(part, "name", None) for part in walk(pattern)}
    names |= {part.rest for part in walk(pattern) if isinstance(part, ast.MatchMapping)}
    return frozenset(name for name in names if name is not None)


def _own_names(function: ast.AST) -> Names:
    """Return the parameters and variables of a nested function, which hide those around it."""
    return frozenset(
        part.arg if isinstance(part, ast.arg) else part.id
        for part in walk(function)
        if isinstance(part, ast.arg)
        or (isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    )
