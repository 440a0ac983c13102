"""Private names of methods, as Python has them."""

from __future__ import annotations

import ast

from wend.capture.nodes import Transformer, cloned


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
