"""`x[k] = v`, `x[k] += v` and `x += v` by way of the runtime."""

from __future__ import annotations

import ast
import copy

from wend.capture.rewrite.syntax import all_arguments, assign, name, runtime, thunk
from wend.capture.syntax.names import changes, place_of, root
from wend.capture.syntax.nodes import Kinds, StatementTransformer, walk


def with_assignments(node: ast.FunctionDef, kinds: Kinds) -> ast.FunctionDef:
    """`x[k] = v`, `x[k] += v` and `x += v` of the function's own names by way of the runtime.

    Also `items[0].x = v` and `of()[k] = v`, which change what no name tells. So an array that
    Python knows becomes a traced one where it meets traced values.
    """
    parts = [*kinds.get(ast.Subscript, ()), *kinds.get(ast.Attribute, ())]
    stored = (part for part in parts if isinstance(part.ctx, ast.Store))
    if ast.AugAssign not in kinds and not any(stored):
        return node
    own = {argument.arg for argument in all_arguments(node.args)}
    declared = [*kinds.get(ast.Global, ()), *kinds.get(ast.Nonlocal, ())]
    outer = {identifier for stmt in declared for identifier in stmt.names}
    own |= {place for place in changes(node.body).bound if "." not in place}
    new = copy.copy(node)
    new.body = _Assignments(own - outer).all_of(node.body)
    return new


class _Assignments(StatementTransformer):
    # Functions inside have names of their own, and get their turn when they are rewritten.
    def __init__(self, own: set[str]) -> None:
        self.own = own

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        match node.targets:
            case [ast.Subscript(value=ast.Name(id=array), slice=key)] if array in self.own:
                call = runtime("set_item", name(array), key_of(key), node.value)
                return ast.copy_location(assign(array, call), node)
            case [ast.Attribute() as target] if place_of(target) is None:
                call = runtime("set_attribute", node.value, target.value, ast.Constant(target.attr))
                return ast.copy_location(ast.Expr(call), node)
            case [ast.Subscript() as target] if root(target) is None:
                call = runtime("set_item_of", node.value, target.value, key_of(target.slice))
                return ast.copy_location(ast.Expr(call), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        operator = ast.Constant(type(node.op).__name__)
        match node.target:
            case ast.Subscript(value=ast.Name(id=array), slice=key) if array in self.own:
                arguments = name(array), key_of(key), operator, node.value
                call = runtime("set_item_in_place", *arguments)
            case ast.Name(id=array) if array in self.own:
                call = runtime("in_place", name(array), operator, node.value)
            case ast.Attribute(value=owner, attr=attribute) if place_of(node.target) is None:
                change = operator, thunk(node.value)
                call = runtime("change_attribute", owner, ast.Constant(attribute), *change)
                return ast.copy_location(ast.Expr(call), node)
            case ast.Subscript(value=owner, slice=key) if root(node.target) is None:
                call = runtime("change_item", owner, key_of(key), operator, thunk(node.value))
                return ast.copy_location(ast.Expr(call), node)
            case _:
                return node
        return ast.copy_location(assign(array, call), node)


def is_known_key(key: ast.expr) -> bool:
    """Whether a key is written out: then no traced value is in it."""
    return all(
        isinstance(node, (ast.Constant, ast.Slice, ast.Tuple))
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub))
        for node in walk(key)
    )


def key_of(key: ast.expr) -> ast.expr:
    """A key as an expression of its own: slices as calls of `slice`."""
    if isinstance(key, ast.Slice):
        bounds = (bound or ast.Constant(None) for bound in (key.lower, key.upper, key.step))
        return ast.copy_location(runtime("slice", *bounds), key)
    if isinstance(key, ast.Tuple) and isinstance(key.ctx, ast.Load):
        return ast.copy_location(ast.Tuple([key_of(item) for item in key.elts], ast.Load()), key)
    return key
