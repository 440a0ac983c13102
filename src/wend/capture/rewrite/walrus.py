"""Names that `:=` binds: their definite assignment, and chained comparisons that bind them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from wend.capture.rewrite.syntax import name
from wend.capture.syntax.names import PREFIX
from wend.capture.syntax.nodes import Kinds, Transformer, children

_FUNCTIONS = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Names = frozenset[str]
NO_NAMES: Names = frozenset()


def maybe_bound(nodes: Iterable[ast.AST]) -> Names:
    """Return the names that `:=` binds in operands that a traced value may skip.

    In comprehensions and lambdas only Python values decide which operands run.
    """
    names: set[str] = set()
    for node in nodes:
        for operand in _skippable_operands(node):
            names |= walrus_targets(operand)
        if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
            names |= maybe_bound(children(node))
    return frozenset(names)


def _skippable_operands(node: ast.AST) -> list[ast.expr]:
    """Return the operands of an expression that may be skipped."""
    match node:
        case ast.BoolOp(values=[_, *remaining]) | ast.Compare(comparators=[_, *remaining]):
            return remaining
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
    return []


def walrus_targets(node: ast.AST) -> Names:
    """Return the enclosing function's names that `:=` binds in an expression."""
    if isinstance(node, _FUNCTIONS):
        return NO_NAMES
    names = frozenset([node.target.id]) if isinstance(node, ast.NamedExpr) else NO_NAMES
    return names.union(*map(walrus_targets, children(node)))


def definitely_bound(node: ast.AST) -> tuple[Names, Names]:
    """Return the names that `:=` has bound if an expression holds, and if it does not."""
    match node:
        case ast.NamedExpr(target=target, value=value):
            holds, fails = definitely_bound(value)
            return holds | {target.id}, fails | {target.id}
        case ast.BoolOp(op=ast.And(), values=values):
            return _all_hold(definitely_bound(value) for value in values)
        case ast.BoolOp(values=values):
            fails, holds = _all_hold(definitely_bound(value)[::-1] for value in values)
            return holds, fails
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            holds, fails = definitely_bound(operand)
            return fails, holds
        case ast.IfExp(test=test, body=body, orelse=orelse):
            (chosen, other), then_names, else_names = map(definitely_bound, (test, body, orelse))
            return (
                (chosen | then_names[0]) & (other | else_names[0]),
                (chosen | then_names[1]) & (other | else_names[1]),
            )
        case ast.Compare(left=left, comparators=[first, *remaining]):
            always = bound_by_all([left, first])
            return always | bound_by_all(remaining), always
    if isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
        return NO_NAMES, NO_NAMES
    always = bound_by_all(children(node))
    return always, always


def bound_by_all(nodes: Iterable[ast.AST]) -> Names:
    """Return the names that are bound once all these nodes have been evaluated."""
    return NO_NAMES.union(*(frozenset.intersection(*definitely_bound(node)) for node in nodes))


def _all_hold(values: Iterable[tuple[Names, Names]]) -> tuple[Names, Names]:
    """Combine the operands of `and`: all hold, or one fails after the previous ones held."""
    bound = NO_NAMES
    fails: Names | None = None
    for names_if_true, names_if_false in values:
        failing = bound | names_if_false
        fails = failing if fails is None else fails & failing
        bound |= names_if_true
    return bound, fails or NO_NAMES


def expand_binding_chains(
    node: ast.FunctionDef, counter: list[int], kinds: Kinds
) -> ast.FunctionDef:
    """Rewrite `a < b < (c := d)` to `a < (t := b) and t < (c := d)`."""
    if ast.NamedExpr in kinds:
        _Chains(counter).generic_visit(node)
    return node


class _Chains(Transformer):
    def __init__(self, counter: list[int]) -> None:
        self.counter = counter

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        # Nested functions are rewritten separately.
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if not any(map(walrus_targets, node.comparators[1:])):
            return node
        tests: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops[:-1], node.comparators[:-1], strict=True):
            self.counter[0] += 1
            identifier = f"{PREFIX}middle{self.counter[0]}"
            operand = ast.copy_location(ast.NamedExpr(name(identifier, store=True), right), right)
            tests.append(ast.copy_location(ast.Compare(left, [op], [operand]), right))
            left = name(identifier)
        last = ast.Compare(left, [node.ops[-1]], [node.comparators[-1]])
        tests.append(ast.copy_location(last, node.comparators[-1]))
        return ast.copy_location(ast.BoolOp(ast.And(), tests), node)
