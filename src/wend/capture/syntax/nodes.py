"""Going through syntax trees, faster than the module `ast` does.

Operators and contexts are left out: they tell what a node is, and hold nothing.
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
# Fields of operators and contexts, of text, and of numbers.
_NO_NODES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "type_comment", "kwd_attrs"})
_WITH_GAPS = frozenset({"keys", "kw_defaults"})  # None where there is no node
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
_SHARED = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        own = () if kind in _LEAVES else tuple(f for f in kind._fields if f not in _NO_NODES)
        return self.setdefault(kind, own)


class _BlockFields(_Fields):
    """Those that hold statements, or what holds these."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        own = tuple(f for f in _BLOCKS if f in kind._fields) if issubclass(kind, _HOLDERS) else ()
        return self.setdefault(kind, own)


_FIELDS = _Fields()
_BLOCK_FIELDS = _BlockFields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, in order."""
    own = node.__dict__
    found: list[ast.AST] = []
    for field in _FIELDS[type(node)]:
        value = own.get(field)
        if value is None:
            continue
        if type(value) is not list:
            if isinstance(value, ast.AST):
                found.append(value)
        elif field in _WITH_GAPS:
            found += [item for item in value if item is not None]
        else:
            found += value
    return found


def inner_statements(node: ast.AST) -> list[ast.AST]:
    """The statements right below one; those in a `try` or `match` come with what holds them."""
    found: list[ast.AST] = []
    for field in _BLOCK_FIELDS[type(node)]:
        found += getattr(node, field)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, level by level."""
    found = [node]
    for inner in found:  # it grows on the way
        if type(inner) not in _LEAVES:
            found += children(inner)
    return found


Kinds = dict[type[ast.AST], list[Any]]


def by_kind(node: ast.AST) -> Kinds:
    """A node and all below it, those of each kind together."""
    found: Kinds = {}
    for inner in walk(node):
        found.setdefault(type(inner), []).append(inner)
    return found


def cloned(node: Any) -> Any:
    """A copy of a syntax tree, faster than `copy.deepcopy`."""
    if type(node) is list:
        return [cloned(item) for item in node]
    # Every tree shares its `Load()` and `Add()` with all others. So they may hold anything: IPython
    # hangs the tree of the last traceback on them.
    if not isinstance(node, ast.AST) or isinstance(node, _SHARED):
        return node
    kind = type(node)
    new = kind.__new__(kind)  # without a warning from 3.13 on that fields are missing
    own = new.__dict__
    own.update(node.__dict__)
    for field in _FIELDS[kind]:
        value = own.get(field)
        if value is not None:
            own[field] = cloned(value)
    return new


class Visitor:
    """As `ast.NodeVisitor`; `visit_X` gets the nodes of kind X."""

    _handlers: dict[type, Callable[[Any, Any], Any]]

    def __init_subclass__(cls) -> None:
        cls._handlers = {}

    def visit(self, node: ast.AST) -> Any:
        """What the method for this kind of node gives."""
        kind = type(node)
        handlers = self._handlers
        if kind not in handlers:
            own = type(self)
            handlers[kind] = getattr(own, f"visit_{kind.__name__}", own.generic_visit)
        return handlers[kind](self, node)

    def generic_visit(self, node: ast.AST) -> Any:
        """Visit what is right below a node."""
        for child in children(node):
            self.visit(child)


class Transformer(Visitor):
    """As `ast.NodeTransformer`: a node becomes what its method gives, a list among statements."""

    fields = _FIELDS

    def generic_visit(self, node: ast.AST) -> Any:
        """Put in place of what is right below a node what becomes of it."""
        own = node.__dict__
        for field in self.fields[type(node)]:
            value = own.get(field)
            if type(value) is list:
                value[:] = self.all_of(value)
            elif isinstance(value, ast.AST):
                own[field] = self.visit(value)
        return node

    def all_of(self, nodes: Sequence[Any]) -> list[Any]:
        """What becomes of some nodes."""
        new: list[Any] = []
        for node in nodes:
            became = node if node is None else self.visit(node)
            if type(became) is list:
                new += became
            else:
                new.append(became)
        return new


class StatementTransformer(Transformer):
    """One that leaves expressions, and functions and classes inside, as they are."""

    fields = _BLOCK_FIELDS

    def _as_it_is(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _as_it_is
