"""Builders for the pieces of syntax that rewritten code is made of."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from wend.capture.syntax.names import PREFIX, RUNTIME
from wend.capture.syntax.nodes import children

THUNK = f"{PREFIX}"
_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def name(identifier: str, *, store: bool = False) -> ast.Name:
    """Build a name, to load or to store."""
    return ast.Name(identifier, ast.Store() if store else ast.Load())


def assign(identifier: str, value: ast.expr | bool) -> ast.Assign:
    """Build `identifier = value`."""
    expression = ast.Constant(value) if isinstance(value, bool) else value
    return ast.Assign([name(identifier, store=True)], expression)


def runtime(function: str, *arguments: ast.expr) -> ast.Call:
    """Build a call of a runtime function."""
    return ast.Call(ast.Attribute(name(RUNTIME), function, ast.Load()), list(arguments), [])


def operation(node: ast.expr, operator: ast.AST, *operands: ast.expr) -> ast.Call:
    """Build what an operator becomes, where it stands: the runtime function of its name."""
    function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), type(operator).__name__, ast.Load())
    call = ast.Call(function, list(operands), [])
    if hasattr(node, "lineno"):
        call.lineno, call.col_offset = node.lineno, node.col_offset
        call.end_lineno, call.end_col_offset = node.end_lineno, node.end_col_offset
    return call


class Operations(ast.NodeTransformer):
    """Turn rewritten operators back into operators, for people to read."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or not is_runtime(node.func.value):
            return node
        kind: Any = getattr(ast, node.func.attr, object)
        if issubclass(kind, ast.unaryop):
            return ast.UnaryOp(kind(), *node.args)
        if issubclass(kind, ast.operator):
            left, right = node.args
            return ast.BinOp(left, kind(), right)
        if issubclass(kind, ast.cmpop):
            return ast.Compare(node.args[0], [kind()], node.args[1:])
        return node


def thunk(value: ast.expr) -> ast.Lambda:
    """Build `lambda: value`; its parameter's name tells it from the user's lambdas."""
    return ast.Lambda(ast.arguments([], [], ast.arg(THUNK), [], [], None, []), value)


def strings(items: Iterable[str]) -> ast.expr:
    """Build a tuple of strings."""
    return ast.Tuple([ast.Constant(item) for item in items], ast.Load())


def is_runtime(node: ast.expr) -> bool:
    """Return whether an expression is the runtime object itself."""
    return isinstance(node, ast.Name) and node.id == RUNTIME


def definition(function: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """Build a function definition, which has one more field from Python 3.12 on."""
    extra: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}
    return ast.FunctionDef(function, arguments, body, [], None, **extra)


def empty_arguments() -> ast.arguments:
    """Build an empty parameter list."""
    return ast.arguments([], [], None, [], [], None, [])


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Return the parameters of a function, of every kind, in order."""
    positional = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return positional + [
        argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None
    ]


def expression(path: str, context: ast.expr_context | None = None) -> ast.expr:
    """Build the expression that denotes a path."""
    context = context or ast.Load()
    owner, _, attribute = path.rpartition(".")
    if not owner:
        return ast.Name(attribute, context)
    return ast.Attribute(expression(owner), attribute, context)


def peeked(path: str) -> ast.expr:
    """Build the expression that looks at a path, as code will do itself."""
    owner, _, attribute = path.rpartition(".")
    if not owner:
        return name(path)
    return runtime("peek", peeked(owner), ast.Constant(attribute))


def declare_locals(names: Sequence[str]) -> list[ast.stmt]:
    """Build `if False: x = y = None`, which never runs but makes the names local."""
    if not names:
        return []
    unique = list(dict.fromkeys(names))
    targets: list[ast.expr] = [name(n, store=True) for n in unique]
    return [ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])]


def fill_positions(node: ast.AST, origin: ast.stmt) -> None:
    """Give nodes without a position the one of their parent, as Python itself does."""
    worklist = [(node, _position(origin))]
    for descendant, position in worklist:  # grows during the iteration
        attributes, inner = descendant.__dict__, children(descendant)
        if "lineno" not in attributes:
            if "lineno" in descendant._attributes:
                attributes.update(position)
        elif inner:
            position = _position(descendant)
        worklist.extend(zip(inner, itertools.repeat(position)))


def _position(node: Any) -> dict[str, int]:
    attributes = node.__dict__
    return {field: attributes[field] for field in _POSITION}


def at_first_line(new: ast.stmt, stmt: ast.stmt) -> ast.stmt:
    """Place a generated statement at the first line of the one it stands for."""
    if not hasattr(new, "lineno") and hasattr(stmt, "lineno"):
        ast.copy_location(new, stmt)
        if stmt.end_lineno != stmt.lineno and not isinstance(new, ast.FunctionDef):
            # One line only: a call is attributed to the last line of its callee.
            new.end_lineno = new.lineno
            new.end_col_offset = new.col_offset + len(type(stmt).__name__)
    return new


def located(stmts: Sequence[ast.stmt], origin: ast.stmt) -> list[ast.stmt]:
    """Give generated statements the position of `origin`; those of the user keep theirs.

    The nodes below them get their positions when the whole function is done.
    """
    return [s if hasattr(s, "lineno") else ast.copy_location(s, origin) for s in stmts]
