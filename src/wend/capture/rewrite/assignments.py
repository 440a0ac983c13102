"""Rewriting of assignments: one target and one owner for each, and calls of the runtime for items.

a[0], b[1] = f()             ->   t = f(); (t1, t2) = t; a[0] = t1; b[1] = t2
(a if t else b).append(x)    ->   if t: a.append(x)  else: b.append(x)
x[k] = v, x[k] += v, x += v  ->   calls of `set_item`, `set_item_in_place`, `in_place`
self.v = f() if self.v is None else self.v   ->   if self.v is None: self.v = f()
"""

from __future__ import annotations

import ast
import copy

from wend.capture.rewrite.syntax import all_arguments, assign, name, runtime, thunk
from wend.capture.syntax.names import PREFIX, changes, container_path, path_of
from wend.capture.syntax.nodes import Kinds, StatementTransformer, cloned, walk


# One target
def split_targets(node: ast.FunctionDef, kinds: Kinds) -> ast.FunctionDef:
    """Split the assignments that have subscripts among other targets, and calls of either owner."""
    is_mixed = any(map(_has_mixed_subscripts, kinds.get(ast.Assign, ())))
    if not is_mixed and not any(map(_has_either_owner, kinds.get(ast.Expr, ()))):
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


def _has_either_owner(node: ast.Expr) -> bool:
    match node.value:
        case ast.Call(func=ast.Attribute(value=ast.IfExp())):
            return True
    return False


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

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(ast.Attribute(value=ast.IfExp(test, then, other))):
                arms = []
                for owner in (then, other):
                    arm = cloned(node)
                    arm.value.func.value = owner
                    arms.append(arm)
                return ast.copy_location(ast.If(test, [arms[0]], [arms[1]]), node)
        return node

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


# Items
def rewrite_assignments(node: ast.FunctionDef, kinds: Kinds) -> ast.FunctionDef:
    """Rewrite `x[k] = v`, `x[k] += v`, and `x += v` of local names to runtime calls.

    Also `items[0].x = v` and `of()[k] = v`, which mutate objects that no name denotes. This is
    how a concrete array becomes a traced one when it meets traced values.
    """
    targets = [*kinds.get(ast.Subscript, ()), *kinds.get(ast.Attribute, ())]
    stored = (part for part in targets if isinstance(part.ctx, ast.Store))
    if ast.AugAssign not in kinds and not any(stored):
        return node
    local_names = {argument.arg for argument in all_arguments(node.args)}
    declared = [*kinds.get(ast.Global, ()), *kinds.get(ast.Nonlocal, ())]
    outer_names = {identifier for stmt in declared for identifier in stmt.names}
    local_names |= {path for path in changes(node.body).bound if "." not in path}
    clone = copy.copy(node)
    clone.body = _RewriteAssignments(local_names - outer_names).all_of(node.body)
    return clone


class _RewriteAssignments(StatementTransformer):
    # Nested functions have names of their own and are rewritten separately.
    def __init__(self, local_names: set[str]) -> None:
        self.local_names = local_names

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        match node.targets:
            case [ast.Subscript(value=ast.Name(id=array), slice=key)] if array in self.local_names:
                call = runtime("set_item", node.value, name(array), key_expression(key))
                return ast.copy_location(assign(array, call), node)
            case [ast.Attribute() as target] if path_of(target) is None:
                call = runtime("set_attribute", node.value, target.value, ast.Constant(target.attr))
                return ast.copy_location(ast.Expr(call), node)
            case [ast.Subscript() as target] if container_path(target) is None:
                call = runtime(
                    "set_item_of", node.value, target.value, key_expression(target.slice)
                )
                return ast.copy_location(ast.Expr(call), node)
            case [ast.Subscript(value=owner, slice=key)]:
                call = runtime("store_item", node.value, owner, key_expression(key))
                return ast.copy_location(ast.Expr(call), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        operator = ast.Constant(type(node.op).__name__)
        match node.target:
            case ast.Subscript(value=ast.Name(id=array), slice=key) if array in self.local_names:
                item = key_expression(key)
                if not isinstance(node.value, (ast.Name, ast.Constant)):  # they change nothing
                    item = runtime("item_before", name(array), item)
                call = runtime("set_item_in_place", name(array), item, operator, node.value)
            case ast.Name(id=array) if array in self.local_names:
                call = runtime("in_place", name(array), operator, node.value)
            case ast.Attribute(value=owner, attr=attribute) if path_of(node.target) is None:
                change = operator, thunk(node.value)
                call = runtime("change_attribute", owner, ast.Constant(attribute), *change)
                return ast.copy_location(ast.Expr(call), node)
            case ast.Subscript(value=owner, slice=key) if container_path(node.target) is None:
                call = runtime(
                    "change_item", owner, key_expression(key), operator, thunk(node.value)
                )
                return ast.copy_location(ast.Expr(call), node)
            case ast.Subscript(value=owner, slice=key):
                item = runtime("item_before", owner, key_expression(key))
                call = runtime("store_item_in_place", item, operator, node.value)
                return ast.copy_location(ast.Expr(call), node)
            case _:
                return node
        return ast.copy_location(assign(array, call), node)


def key_expression(key: ast.expr) -> ast.expr:
    """Return a key as an expression: slices become calls of `slice`."""
    if isinstance(key, ast.Slice):
        bounds = (bound or ast.Constant(None) for bound in (key.lower, key.upper, key.step))
        return ast.copy_location(runtime("slice", *bounds), key)
    if isinstance(key, ast.Tuple) and isinstance(key.ctx, ast.Load):
        return ast.copy_location(
            ast.Tuple([key_expression(item) for item in key.elts], ast.Load()), key
        )
    return key


# Attributes that are given a first value: `self.v = make() if self.v is None else self.v` becomes
# `if self.v is None: self.v = make()`, which sets none that has one.
def sets_first_values(kinds: Kinds) -> bool:
    """Return whether a function has such assignments."""
    return any(_first_value(assign) for assign in kinds.get(ast.Assign, ()))


def set_first_values(node: ast.FunctionDef) -> ast.FunctionDef:
    """Rewrite the assignments to attributes that keep a value which is not None."""
    new = ast.FunctionDef(**dict(ast.iter_fields(node)))
    ast.copy_location(new, node)
    new.body = _SetFirstValues().all_of(node.body)
    return new


class _SetFirstValues(StatementTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        first = _first_value(node)
        if first is None:
            return node
        target, value = node.targets[0], node.value
        assert isinstance(target, ast.Attribute) and isinstance(value, ast.IfExp)
        again = runtime("set_again", cloned(target.value), ast.Constant(target.attr))
        arms: list[ast.stmt] = [ast.Assign([target], first), ast.Expr(again)]
        if value.body is not first:
            arms.reverse()
        new = ast.If(value.test, arms[:1], arms[1:])
        return ast.fix_missing_locations(ast.copy_location(new, node))


def _first_value(node: ast.Assign) -> ast.expr | None:
    """Return what an attribute is set to if it is None, where it keeps its value otherwise."""
    (target, *others), value = node.targets, node.value
    if others or not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return None
    match value:
        case ast.IfExp(ast.Compare(tested, [ast.Is()], [ast.Constant(None)]), first, again):
            pass
        case ast.IfExp(ast.Compare(tested, [ast.IsNot()], [ast.Constant(None)]), again, first):
            pass
        case _:
            return None
    return first if all(_is_of_target(x, target) for x in (tested, again)) else None


def _is_of_target(node: ast.expr, target: ast.Attribute) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == ast.unparse(target)
