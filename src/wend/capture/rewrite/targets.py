"""Prepares assignments: one target each, and arrays that helpers may have changed looked up anew.

a[0], b[1] = f()     ->   t = f(); (t1, t2) = t; a[0] = t1; b[1] = t2
y = np.zeros(3)
helper(y, x)         ->   helper(y, x); y = the traced array that y has become
"""

from __future__ import annotations

import ast
import builtins

from wend.capture.names import PREFIX
from wend.capture.nodes import Kinds, StatementTransformer, walk
from wend.capture.rewrite.syntax import name

CREATORS = frozenset(
    {
        "zeros",
        "ones",
        "empty",
        "full",
        "eye",
        "identity",
        "arange",
        "linspace",
        "array",
        "ndarray",
        "copy",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
    }
)


def prepared(node: ast.FunctionDef, kinds: Kinds, runtime: str) -> ast.FunctionDef:
    """The function with its assignments prepared.

    Args:
        node: the function.
        kinds: what is in it.
        runtime: what the runtime is called.
    """
    assignments = kinds.get(ast.Assign, ())
    made = {
        target.id
        for stmt in assignments
        if _is_creation(stmt.value)
        for target in stmt.targets
        if isinstance(target, ast.Name)
    }
    if not made and not any(map(_has_parts_among_others, assignments)):
        return node
    declared = [*kinds.get(ast.Global, ()), *kinds.get(ast.Nonlocal, ())]
    shared = {identifier for stmt in declared for identifier in stmt.names}
    new = ast.FunctionDef(**dict(ast.iter_fields(node)))
    ast.copy_location(new, node)
    new.body = _Preparation(made - shared, runtime).all_of(node.body)
    return new


def _is_creation(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(attr=made) | ast.Name(id=made)):
            return made in CREATORS
    return False


def _has_part(target: ast.expr) -> bool:
    return any(isinstance(inner, ast.Subscript) for inner in walk(target))


def _has_parts_among_others(node: ast.Assign) -> bool:
    is_plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
    return not is_plain and any(map(_has_part, node.targets))


class _Preparation(StatementTransformer):
    def __init__(self, made: set[str], runtime: str) -> None:
        self.made, self.runtime = made, runtime
        self.count = 0

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        return [*self._single(node), *self._looked_up(node)]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        return [node, *self._looked_up(node)]

    def visit_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        return [node, *self._looked_up(node)]

    # One target each
    def _single(self, node: ast.Assign) -> list[ast.stmt]:
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

    # Arrays made here that are given to helpers
    def _looked_up(self, stmt: ast.stmt) -> list[ast.stmt]:
        if not self.made:
            return []
        assigned = {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and _stores(n)}
        given: dict[str, None] = {}
        for call in ast.walk(stmt):
            if isinstance(call, ast.Call) and self._is_helper(call.func):
                arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
                given |= {
                    argument.id: None
                    for argument in arguments
                    if isinstance(argument, ast.Name) and argument.id in self.made
                }
        found: list[ast.stmt] = []
        for array in given:
            if array in assigned:
                continue
            function = ast.Attribute(name(self.runtime), "current_array", ast.Load())
            look = ast.Assign([name(array, store=True)], ast.Call(function, [name(array)], []))
            found.append(ast.fix_missing_locations(ast.copy_location(look, stmt)))
        return found

    def _is_helper(self, function: ast.expr) -> bool:
        """Whether it may be a function of the user's, which may change what it is given."""
        return isinstance(function, ast.Name) and not hasattr(builtins, function.id)


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
