"""The names of a function that is being rewritten, and the functions outlined from it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from wend.capture.rewrite.definite_assignment import possibly_unbound
from wend.capture.rewrite.syntax import all_arguments, definition, empty_arguments
from wend.capture.rewrite.walrus import (
    NO_NAMES,
    Names,
    definitely_bound,
    maybe_bound,
    walrus_targets,
)
from wend.capture.syntax.names import PREFIX, changes, read
from wend.capture.syntax.nodes import Kinds, Transformer, cloned, inner_statements

Node = TypeVar("Node", bound=ast.AST)

# Names that nothing binds again
_CONSTANTS = frozenset({"__class__", "__debug__"})
# Statements after which a variable may be unbound
_BRANCHING = (ast.If, ast.While, ast.For, ast.Try, ast.TryStar, ast.Match, ast.Delete)


class Enclosing(NamedTuple):
    """The names that functions around a function bind.

    Attributes:
        captured: those of functions that are captured with it.
        closure: those of the function's closure.
        possibly_unbound: those of the captured ones that a read may find unbound.
    """

    captured: frozenset[str] = frozenset()
    closure: frozenset[str] = frozenset()
    possibly_unbound: frozenset[str] = frozenset()


class Scope:
    """The names of one function.

    `counter` is the number of names generated so far, shared with the enclosing functions.

    Attributes:
        stores: the `Name` nodes that bind.
        params: the parameters, in order.
        bound: the paths that its statements bind.
        locals, globals, outer: its local, `global` and `nonlocal` names.
        shared: variables that several functions change; they are heap locations.
        always_live: names that nested functions read, or that outlive the function.
        has_walrus: whether it contains a `:=`.
        flags: variables generated for it.
        possibly_unbound: its variables that some read may find unbound.
        enclosing: the names of the functions around it.
    """

    def __init__(
        self,
        node: ast.FunctionDef,
        kinds: Kinds,
        counter: list[int],
        enclosing: Enclosing,
    ) -> None:
        self.counter = counter
        self.enclosing = enclosing
        self.stores = [n for n in kinds.get(ast.Name, ()) if isinstance(n.ctx, ast.Store)]
        self.params = [argument.arg for argument in all_arguments(node.args)]
        self.globals: set[str] = set()
        self.outer: set[str] = set()
        nested: list[ast.FunctionDef] = []
        for inner in statements_of(node.body):
            if isinstance(inner, ast.Global):
                self.globals.update(inner.names)
            elif isinstance(inner, ast.Nonlocal):
                self.outer.update(inner.names)
            elif isinstance(inner, ast.FunctionDef):
                nested.append(inner)
        lambdas = kinds.get(ast.Lambda, ())
        self.always_live = read(nested) | read(lambdas) | self.globals | self.outer
        declared = [*kinds.get(ast.Global, ()), *kinds.get(ast.Nonlocal, ())]
        self.shared = {shared for stmt in declared for shared in stmt.names}
        # Most functions have no `:=`, so the analysis is skipped.
        self.has_walrus = ast.NamedExpr in kinds
        self.bound = bound = [*changes(node.body).bound]
        self.locals = {*self.params, *(p for p in bound if "." not in p)}
        self.locals -= self.globals | self.outer
        self.flags: list[str] = []
        self.possibly_unbound = NO_NAMES
        if not kinds.keys().isdisjoint(_BRANCHING):
            variables = self.locals.difference(self.params, self.shared)
            self.possibly_unbound = possibly_unbound(
                node.body, self.params, variables, has_walrus=self.has_walrus
            )

    def inner(self) -> Enclosing:
        """Return what a nested function has around it."""
        around = self.enclosing
        return Enclosing(
            around.captured | self.locals,
            around.closure - self.locals,
            (around.possibly_unbound - self.locals) | self.possibly_unbound,
        )

    def origin(self, identifier: str) -> str | None:
        """Return "closure" or "global" for a name that comes from outside of captured code."""
        if identifier in self.locals or identifier.startswith(PREFIX) or identifier in _CONSTANTS:
            return None
        if identifier not in self.globals:
            if identifier in self.enclosing.closure:
                return "closure"
            if identifier in self.enclosing.captured:
                return None
        return "global"

    def may_be_unbound(self, identifier: str) -> bool:
        """Return whether reads of a name check that this run has bound it."""
        if identifier in self.locals:
            return identifier in self.possibly_unbound
        return identifier in self.enclosing.possibly_unbound

    def bound_before(self, stmt: ast.stmt) -> set[str]:
        """Return the variables that may be bound before a statement."""
        return {*self.params, *(n.id for n in self.stores if n.lineno < stmt.lineno)}

    def new(self, kind: str) -> str:
        self.counter[0] += 1
        return f"{PREFIX}{kind}{self.counter[0]}"

    def flag(self, kind: str) -> str:
        """Add a generated variable to the function."""
        return self.variable(self.new(kind))

    def variable(self, identifier: str) -> str:
        if identifier not in self.locals:
            self.locals.add(identifier)
            self.flags.append(identifier)
        return identifier

    def binds(self, node: ast.AST) -> bool:
        """Return whether `:=` binds one of the function's names in an expression."""
        return self.has_walrus and bool(walrus_targets(node))

    def maybe_bound(self, nodes: Iterable[ast.AST]) -> Names:
        """Return the names that `:=` binds in operands that a traced value may skip."""
        return maybe_bound(nodes) if self.has_walrus else NO_NAMES

    def definitely_bound(self, node: ast.AST) -> tuple[Names, Names]:
        """Return the names that `:=` has bound if an expression holds, and if it does not."""
        return definitely_bound(node) if self.has_walrus else (NO_NAMES, NO_NAMES)

    def outlives_some(self, names: Names) -> bool:
        """Return whether other functions may see one of these variables."""
        return any(self.outlives(identifier) or identifier in self.shared for identifier in names)

    def outlives(self, path: str) -> bool:
        """Return whether a path still exists after the function has returned."""
        return "." in path or path in self.globals or path in self.outer

    def carried_paths(self, paths: Iterable[str], live: set[str]) -> list[str]:
        """Return the paths that control flow must carry: the live ones, and all attributes."""
        return [path for path in paths if "." in path or path in live or path in self.always_live]

    def function(
        self, function: str, body: Sequence[ast.stmt], origin: Sequence[ast.stmt]
    ) -> ast.FunctionDef:
        """Outline statements as a function that assigns this function's variables."""
        names = [
            path
            for path in changes(origin).bound
            if path in self.locals or path in self.globals or path in self.outer
        ]
        statements: list[ast.stmt] = [*self.declarations(names), *body]
        return definition(function, empty_arguments(), statements or [ast.Pass()])

    def declarations(self, names: Sequence[str]) -> list[ast.stmt]:
        declared: list[ast.stmt] = []
        outside = [n for n in names if n in self.globals]
        inside = [n for n in names if n not in self.globals]
        if outside:
            declared.append(ast.Global(outside))
        if inside:
            declared.append(ast.Nonlocal(inside))
        return declared


def statements_of(stmts: Iterable[ast.AST]) -> list[ast.AST]:
    """Return the statements of a function at any depth, outside of nested scopes."""
    statements = [*stmts]
    for stmt in statements:  # grows during the iteration
        if not isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            statements += inner_statements(stmt)
    return statements


class _Mangle(Transformer):
    """Applies Python's name mangling to the private names of a class."""

    def __init__(self, owner: str) -> None:
        self.owner = owner.lstrip("_")

    def mangled(self, identifier: str) -> str:
        private = identifier.startswith("__") and not identifier.endswith("__") and self.owner
        return f"_{self.owner}{identifier}" if private else identifier

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.mangled(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        node.attr = self.mangled(node.attr)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.mangled(node.arg)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


def mangled(node: Node, owner: str) -> Node:
    """Return a part of class `owner` with its private names mangled, as Python does."""
    clone: Node = _Mangle(owner).visit(cloned(node))
    return clone
