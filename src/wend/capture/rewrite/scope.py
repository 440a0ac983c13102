"""The names of a function that is being rewritten, and functions made inside it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from wend.capture.rewrite.syntax import all_arguments, definition, no_arguments
from wend.capture.rewrite.walrus import NONE, Names, perhaps_bound, surely_bound
from wend.capture.syntax.names import PREFIX, changes, read
from wend.capture.syntax.nodes import Kinds, Transformer, cloned, inner_statements


class Scope:
    """The names of one function.

    Args:
        node: its definition.
        kinds: what is in it.
        numbers: how many names were made by now, of the functions around it too.

    Attributes:
        bound: what its statements bind, attributes too.
        locals, globals, outer: its own variables, `global` ones, `nonlocal` ones.
        shared: variables that several functions change, which are places of their own.
        always_live: names that nested functions read, or that outlive the function.
        flags: variables that were made for it.
    """

    def __init__(self, node: ast.FunctionDef, kinds: Kinds, numbers: list[int]) -> None:
        self.numbers = numbers
        arguments = node.args
        self.stores = [n for n in kinds.get(ast.Name, ()) if isinstance(n.ctx, ast.Store)]
        self.params = [argument.arg for argument in all_arguments(arguments)]
        self.globals: set[str] = set()
        self.outer: set[str] = set()
        nested: list[ast.FunctionDef] = []
        for inner in own_statements(node.body):
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
        # Most functions have no `:=`, and nothing to look for.
        self.has_walrus = ast.NamedExpr in kinds
        self.bound = bound = [*changes(node.body).bound]
        self.locals = {*self.params, *(p for p in bound if "." not in p)}
        self.locals -= self.globals | self.outer
        self.flags: list[str] = []

    def bound_before(self, stmt: ast.stmt) -> set[str]:
        """The variables that may be bound before a statement."""
        return {*self.params, *(n.id for n in self.stores if n.lineno < stmt.lineno)}

    def new(self, kind: str) -> str:
        self.numbers[0] += 1
        return f"{PREFIX}{kind}{self.numbers[0]}"

    def flag(self, kind: str) -> str:
        """A new variable of the function."""
        return self.variable(self.new(kind))

    def variable(self, identifier: str) -> str:
        if identifier not in self.locals:
            self.locals.add(identifier)
            self.flags.append(identifier)
        return identifier

    def perhaps_bound(self, nodes: Iterable[ast.AST]) -> Names:
        """The names that `:=` binds in operands that a traced value may skip."""
        return perhaps_bound(nodes) if self.has_walrus else NONE

    def surely_bound(self, node: ast.AST) -> tuple[Names, Names]:
        """The names that `:=` has surely bound once an expression holds, and once it does not."""
        return surely_bound(node) if self.has_walrus else (NONE, NONE)

    def outlives_some(self, names: Names) -> bool:
        """Whether other functions may see one of these variables."""
        return any(self.outlives(one) or one in self.shared for one in names)

    def outlives(self, place: str) -> bool:
        """Whether a place is still there when the function has ended."""
        return "." in place or place in self.globals or place in self.outer

    def kept(self, places: Iterable[str], live: set[str]) -> list[str]:
        """The places that control flow must carry: the live ones, and all attributes."""
        return [p for p in places if "." in p or p in live or p in self.always_live]

    def function(
        self, function: str, body: Sequence[ast.stmt], origin: Sequence[ast.stmt]
    ) -> ast.FunctionDef:
        """A function of these statements that changes the variables of this one."""
        names = [
            place
            for place in changes(origin).bound
            if place in self.locals or place in self.globals or place in self.outer
        ]
        statements: list[ast.stmt] = [*self.declarations(names), *body]
        return definition(function, no_arguments(), statements or [ast.Pass()])

    def declarations(self, names: Sequence[str]) -> list[ast.stmt]:
        declared: list[ast.stmt] = []
        outside = [n for n in names if n in self.globals]
        inside = [n for n in names if n not in self.globals]
        if outside:
            declared.append(ast.Global(outside))
        if inside:
            declared.append(ast.Nonlocal(inside))
        return declared


def own_statements(stmts: Iterable[ast.AST]) -> list[ast.AST]:
    """Statements of a function, at any depth, those of nested functions and classes left out."""
    found = [*stmts]
    for stmt in found:  # it grows on the way
        if not isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found += inner_statements(stmt)
    return found


class _Mangle(Transformer):
    """Gives private names of a class the form that Python gives them."""

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


def mangled(node: ast.FunctionDef, owner: str) -> ast.FunctionDef:
    """A method of class `owner` with its private names as Python has them."""
    new = _Mangle(owner).visit(cloned(node))
    assert isinstance(new, ast.FunctionDef)
    return new
