"""Prepares assignments: one target each.

a[0], b[1] = f()     ->   t = f(); (t1, t2) = t; a[0] = t1; b[1] = t2
"""

from __future__ import annotations

import ast

from wend.capture.rewrite.syntax import name
from wend.capture.syntax.names import PREFIX
from wend.capture.syntax.nodes import Kinds, StatementTransformer, walk


def prepared(node: ast.FunctionDef, kinds: Kinds) -> ast.FunctionDef:
    """The function with one target in each assignment that has parts of arrays among others.

    Args:
        node: the function.
        kinds: what is in it.
    """
    if not any(map(_has_parts_among_others, kinds.get(ast.Assign, ()))):
        return node
    new = ast.FunctionDef(**dict(ast.iter_fields(node)))
    ast.copy_location(new, node)
    new.body = _Preparation().all_of(node.body)
    return new


def _has_part(target: ast.expr) -> bool:
    return any(isinstance(inner, ast.Subscript) for inner in walk(target))


def _has_parts_among_others(node: ast.Assign) -> bool:
    is_plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
    return not is_plain and any(map(_has_part, node.targets))


class _Preparation(StatementTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        if not _has_parts_among_others(node):
            return [node]
        held = self._new()
        found: list[ast.stmt] = [ast.Assign([name(held, store=True)], node.value)]
        for target in node.targets:
            found += self._taken_apart(target, held)
        return [ast.fix_missing_locations(ast.copy_location(stmt, node)) for stmt in found]

    def _taken_apart(self, target: ast.expr, held: str) -> list[ast.stmt]:
        if not isinstance(target, (ast.Tuple, ast.List)) or not _has_part(target):
            return [ast.Assign([target], name(held))]
        items: list[ast.expr] = []
        after: list[ast.stmt] = []
        for item in target.elts:
            inner = item.value if isinstance(item, ast.Starred) else item
            if not _has_part(inner):
                items.append(item)
                continue
            part = self._new()
            stored: ast.expr = name(part, store=True)
            is_rest = isinstance(item, ast.Starred)
            items.append(ast.Starred(stored, ast.Store()) if is_rest else stored)
            after += self._taken_apart(inner, part)
        return [ast.Assign([ast.Tuple(items, ast.Store())], name(held)), *after]

    def _new(self) -> str:
        self.count += 1
        return f"{PREFIX}held{self.count}"
