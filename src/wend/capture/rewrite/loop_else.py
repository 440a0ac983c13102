"""Loops whose `else` leaves more than it: an `if` after the loop stands for it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from wend.capture.names import contains
from wend.capture.nodes import StatementTransformer, cloned
from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.syntax import assign, located, name


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
