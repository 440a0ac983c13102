"""Chained comparisons that bind names in the middle, rewritten as `and`."""

from __future__ import annotations

import ast

from wend.capture.rewrite.syntax import name
from wend.capture.rewrite.walrus import walrus_targets
from wend.capture.syntax.names import PREFIX
from wend.capture.syntax.nodes import Kinds, Transformer


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
