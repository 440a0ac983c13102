"""Splitting of assignments so that each has one target.

a[0], b[1] = f()     ->   t = f(); (t1, t2) = t; a[0] = t1; b[1] = t2
"""

from __future__ import annotations

import ast

from wend.capture.rewrite.syntax import name
from wend.capture.syntax.names import PREFIX
from wend.capture.syntax.nodes import Kinds, StatementTransformer, walk


def split_targets(node: ast.FunctionDef, kinds: Kinds) -> ast.FunctionDef:
    """Split the assignments that have subscripts among other targets."""
    if not any(map(_has_mixed_subscripts, kinds.get(ast.Assign, ()))):
        return node
    new = ast.FunctionDef(**dict(ast.iter_fields(node)))
    ast.copy_location(new, node)
    new.body = _SplitTargets().all_of(node.body)
    return new


def _has_subscript(target: ast.expr) -> bool:
    return any(isinstance(inner, ast.Subscript) for inner in walk(target))


def _has_mixed_subscripts(node: ast.Assign) -> bool:
    is_plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
    return not is_plain and any(map(_has_subscript, node.targets))


class _SplitTargets(StatementTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        if not _has_mixed_subscripts(node):
            return [node]
        temporary = self._new_temporary()
        statements: list[ast.stmt] = [ast.Assign([name(temporary, store=True)], node.value)]
        for target in node.targets:
            statements += self._unpacked(target, temporary)
        return [ast.fix_missing_locations(ast.copy_location(stmt, node)) for stmt in statements]

    def _unpacked(self, target: ast.expr, temporary: str) -> list[ast.stmt]:
        if not isinstance(target, (ast.Tuple, ast.List)) or not _has_subscript(target):
            return [ast.Assign([target], name(temporary))]
        items: list[ast.expr] = []
        remaining: list[ast.stmt] = []  # from the first subscript on, so that the order stays
        for item in target.elts:
            inner = item.value if isinstance(item, ast.Starred) else item
            if not remaining and not _has_subscript(inner):
                items.append(item)
                continue
            item_temporary = self._new_temporary()
            stored: ast.expr = name(item_temporary, store=True)
            items.append(
                ast.Starred(stored, ast.Store()) if isinstance(item, ast.Starred) else stored
            )
            remaining += self._unpacked(inner, item_temporary)
        return [ast.Assign([ast.Tuple(items, ast.Store())], name(temporary)), *remaining]

    def _new_temporary(self) -> str:
        self.count += 1
        return f"{PREFIX}held{self.count}"
