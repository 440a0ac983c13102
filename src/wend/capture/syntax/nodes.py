"""Traversal and transformation of syntax trees, faster than with the module `ast`.

Operators and contexts are skipped: they characterize a node and have no children.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

_LEAVES = frozenset(
    {
        ast.Name,
        ast.Constant,
        ast.Pass,
        ast.Break,
        ast.Continue,
        ast.Global,
        ast.Nonlocal,
        ast.alias,
        ast.arg,
    }
)
# Fields that hold operators, contexts, strings or numbers.
_NON_NODE_FIELDS = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "type_comment", "kwd_attrs"})
_FIELDS_WITH_NONE = frozenset({"keys", "kw_defaults"})  # lists with None for an absent node
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_STATEMENT_PARENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
_SHARED = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)


class _NodeFields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields that may hold nodes, by node class."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        fields = (
            () if kind in _LEAVES else tuple(f for f in kind._fields if f not in _NON_NODE_FIELDS)
        )
        return self.setdefault(kind, fields)


class _BlockFields(_NodeFields):
    """The fields that hold statements, or the handlers and cases around these."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        fields = (
            tuple(f for f in _BLOCKS if f in kind._fields)
            if issubclass(kind, _STATEMENT_PARENTS)
            else ()
        )
        return self.setdefault(kind, fields)


_FIELDS = _NodeFields()
_BLOCK_FIELDS = _BlockFields()


def children(node: ast.AST) -> list[ast.AST]:
    """Return the direct children of a node, in order."""
    attributes = node.__dict__
    result: list[ast.AST] = []
    for field in _FIELDS[type(node)]:
        value = attributes.get(field)
        if value is None:
            continue
        if type(value) is not list:
            if isinstance(value, ast.AST):
                result.append(value)
        elif field in _FIELDS_WITH_NONE:
            result += [item for item in value if item is not None]
        else:
            result += value
    return result


def inner_statements(node: ast.AST) -> list[ast.AST]:
    """Return the statements directly below one, or the handlers and cases that hold them."""
    result: list[ast.AST] = []
    for field in _BLOCK_FIELDS[type(node)]:
        result += getattr(node, field)
    return result


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all its descendants in breadth-first order."""
    nodes = [node]
    for inner in nodes:  # grows during the iteration
        if type(inner) not in _LEAVES:
            nodes += children(inner)
    return nodes


Kinds = dict[type[ast.AST], list[Any]]


def by_kind(node: ast.AST) -> Kinds:
    """Group a node and its descendants by node class."""
    groups: Kinds = {}
    for inner in walk(node):
        groups.setdefault(type(inner), []).append(inner)
    return groups


def cloned(node: Any) -> Any:
    """Return a copy of a syntax tree, faster than `copy.deepcopy`."""
    if type(node) is list:
        return [cloned(item) for item in node]
    # All trees share the singletons `Load()` and `Add()`, which may carry foreign attributes:
    # IPython attaches the tree of the last traceback to them.
    if not isinstance(node, ast.AST) or isinstance(node, _SHARED):
        return node
    kind = type(node)
    clone = kind.__new__(kind)  # from 3.13 on the constructor warns of missing fields
    attributes = clone.__dict__
    attributes.update(node.__dict__)
    for field in _FIELDS[kind]:
        value = attributes.get(field)
        if value is not None:
            attributes[field] = cloned(value)
    return clone


class Visitor:
    """A fast `ast.NodeVisitor`: `visit_X` gets the nodes of class X."""

    _handlers: dict[type, Callable[[Any, Any], Any]]

    def __init_subclass__(cls) -> None:
        cls._handlers = {}

    def visit(self, node: ast.AST) -> Any:
        """Return the result of the method for this class of node."""
        kind = type(node)
        handlers = self._handlers
        if kind not in handlers:
            cls = type(self)
            handlers[kind] = getattr(cls, f"visit_{kind.__name__}", cls.generic_visit)
        return handlers[kind](self, node)

    def generic_visit(self, node: ast.AST) -> Any:
        """Visit the direct children of a node."""
        for child in children(node):
            self.visit(child)


class Transformer(Visitor):
    """A fast `ast.NodeTransformer`: a method returns a replacement, or a list among statements."""

    fields = _FIELDS

    def generic_visit(self, node: ast.AST) -> Any:
        """Replace the direct children of a node by their transforms."""
        attributes = node.__dict__
        for field in self.fields[type(node)]:
            value = attributes.get(field)
            if type(value) is list:
                value[:] = self.all_of(value)
            elif isinstance(value, ast.AST):
                attributes[field] = self.visit(value)
        return node

    def all_of(self, nodes: Sequence[Any]) -> list[Any]:
        """Return the transforms of some nodes."""
        result: list[Any] = []
        for node in nodes:
            replacement = node if node is None else self.visit(node)
            if type(replacement) is list:
                result += replacement
            else:
                result.append(replacement)
        return result


class StatementTransformer(Transformer):
    """A transformer of statements; expressions and nested scopes stay unchanged."""

    fields = _BLOCK_FIELDS

    def _leave_unchanged(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _leave_unchanged
