"""Which names `:=` binds, where an operand of `and`, `or`, a ternary or a chain may be skipped."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from wend.capture.syntax.nodes import children

_FUNCTIONS = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Names = frozenset[str]
NONE: Names = frozenset()


def perhaps_bound(nodes: Iterable[ast.AST]) -> Names:
    """The names that `:=` binds in operands that a traced value may skip.

    In comprehensions and lambdas only Python values decide what runs.
    """
    found: set[str] = set()
    for node in nodes:
        for skipped in _skipped(node):
            found |= targets(skipped)
        if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
            found |= perhaps_bound(children(node))
    return frozenset(found)


def _skipped(node: ast.AST) -> list[ast.expr]:
    """The operands of an expression that may be skipped."""
    match node:
        case ast.BoolOp(values=[_, *rest]) | ast.Compare(comparators=[_, *rest]):
            return rest
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
    return []


def targets(node: ast.AST) -> Names:
    """The names of the function that `:=` binds in an expression."""
    if isinstance(node, _FUNCTIONS):
        return NONE
    own = frozenset([node.target.id]) if isinstance(node, ast.NamedExpr) else NONE
    return own.union(*map(targets, children(node)))


def surely_bound(node: ast.AST) -> tuple[Names, Names]:
    """The names that `:=` has surely bound once an expression holds, and once it does not."""
    match node:
        case ast.NamedExpr(target=target, value=value):
            holds, fails = surely_bound(value)
            return holds | {target.id}, fails | {target.id}
        case ast.BoolOp(op=ast.And(), values=values):
            return _all_hold(surely_bound(value) for value in values)
        case ast.BoolOp(values=values):
            fails, holds = _all_hold(surely_bound(value)[::-1] for value in values)
            return holds, fails
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            holds, fails = surely_bound(operand)
            return fails, holds
        case ast.IfExp(test=test, body=body, orelse=orelse):
            (chosen, other), mine, theirs = map(surely_bound, (test, body, orelse))
            return (
                (chosen | mine[0]) & (other | theirs[0]),
                (chosen | mine[1]) & (other | theirs[1]),
            )
        case ast.Compare(left=left, comparators=[first, *rest]):
            always = surely_always([left, first])
            return always | surely_always(rest), always
    if isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
        return NONE, NONE
    always = surely_always(children(node))
    return always, always


def surely_always(nodes: Iterable[ast.AST]) -> Names:
    """The names that are surely bound once all these have been evaluated."""
    return NONE.union(*(frozenset.intersection(*surely_bound(node)) for node in nodes))


def _all_hold(values: Iterable[tuple[Names, Names]]) -> tuple[Names, Names]:
    """Of `and`: all operands hold, or one fails that all before it lead to."""
    before = NONE
    fails: Names | None = None
    for holds, not_holds in values:
        failing = before | not_holds
        fails = failing if fails is None else fails & failing
        before |= holds
    return before, fails or NONE
