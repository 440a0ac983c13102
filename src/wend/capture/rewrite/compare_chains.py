"""Chained comparisons that bind names on the way, as the `and` they stand for."""

from __future__ import annotations

import ast

from wend.capture.rewrite.syntax import name
from wend.capture.rewrite.walrus import targets
from wend.capture.syntax.names import PREFIX
from wend.capture.syntax.nodes import Kinds, Transformer


def without_binding_chains(
    node: ast.FunctionDef, numbers: list[int], kinds: Kinds
) -> ast.FunctionDef:
    """A function with `a < b < (c := d)` as `a < (t := b) and t < (c := d)`."""
    if ast.NamedExpr in kinds:
        _Chains(numbers).generic_visit(node)
    return node


class _Chains(Transformer):
    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        # Functions inside get their turn when they are rewritten.
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if not any(map(targets, node.comparators[1:])):
            return node
        tests: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops[:-1], node.comparators[:-1], strict=True):
            self.numbers[0] += 1
            kept = f"{PREFIX}middle{self.numbers[0]}"
            held = ast.copy_location(ast.NamedExpr(name(kept, store=True), right), right)
            tests.append(ast.copy_location(ast.Compare(left, [op], [held]), right))
            left = name(kept)
        last = ast.Compare(left, [node.ops[-1]], [node.comparators[-1]])
        tests.append(ast.copy_location(last, node.comparators[-1]))
        return ast.copy_location(ast.BoolOp(ast.And(), tests), node)
