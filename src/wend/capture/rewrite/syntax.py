"""Pieces of syntax that rewritten code is made of."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from wend.capture.syntax.names import PREFIX
from wend.capture.syntax.nodes import children

RUNTIME = f"{PREFIX}_"
THUNK = f"{PREFIX}"
_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def name(identifier: str, *, store: bool = False) -> ast.Name:
    """A name to read, or to bind."""
    return ast.Name(identifier, ast.Store() if store else ast.Load())


def assign(identifier: str, value: ast.expr | bool) -> ast.Assign:
    """`identifier = value`."""
    expression = ast.Constant(value) if isinstance(value, bool) else value
    return ast.Assign([name(identifier, store=True)], expression)


def runtime(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of a function of the runtime."""
    return ast.Call(ast.Attribute(name(RUNTIME), function, ast.Load()), list(arguments), [])


def thunk(value: ast.expr) -> ast.Lambda:
    """`lambda: value`; the name of what it ignores tells it from lambdas of the user."""
    return ast.Lambda(ast.arguments([], [], ast.arg(THUNK), [], [], None, []), value)


def strings(items: Iterable[str]) -> ast.expr:
    """A tuple of strings."""
    return ast.Tuple([ast.Constant(item) for item in items], ast.Load())


def is_runtime(node: ast.expr) -> bool:
    """Whether an expression is the runtime itself."""
    return isinstance(node, ast.Name) and node.id == RUNTIME


def definition(function: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """A function; Python 3.12 gives functions one field more."""
    extra: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}
    return ast.FunctionDef(function, arguments, body, [], None, **extra)


def no_arguments() -> ast.arguments:
    """The arguments of a function without any."""
    return ast.arguments([], [], None, [], [], None, [])


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """The arguments of a function of every kind, in order."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [a for a in (arguments.vararg, arguments.kwarg) if a is not None]


def expression(place: str, context: ast.expr_context | None = None) -> ast.expr:
    """The expression that names a place."""
    context = context or ast.Load()
    base, _, attribute = place.rpartition(".")
    if not base:
        return ast.Name(attribute, context)
    return ast.Attribute(expression(base), attribute, context)


def binding(names: Sequence[str]) -> list[ast.stmt]:
    """A statement that never runs, but makes names local: `if False: x = y = None`."""
    if not names:
        return []
    unique = list(dict.fromkeys(names))
    targets: list[ast.expr] = [name(n, store=True) for n in unique]
    return [ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])]


def with_positions(node: ast.AST, origin: ast.stmt) -> None:
    """Give a position to whatever has none: that of what it stands in, as Python's own does."""
    waiting = [(node, _position(origin))]
    for found, position in waiting:  # it grows on the way
        own = found.__dict__
        if "lineno" not in own:
            if "lineno" in found._attributes:
                own.update(position)
            waiting += [(child, position) for child in children(found)]
        elif below := children(found):
            position = _position(found)
            waiting += [(child, position) for child in below]


def _position(node: Any) -> dict[str, int]:
    own = node.__dict__
    return {field: own[field] for field in _POSITION}


def at_head(new: ast.stmt, stmt: ast.stmt) -> ast.stmt:
    """A statement that was made, at the first line of the one it stands for."""
    if not hasattr(new, "lineno") and hasattr(stmt, "lineno"):
        ast.copy_location(new, stmt)
        if stmt.end_lineno != stmt.lineno and not isinstance(new, ast.FunctionDef):
            # One line only: the line of a call is the last one of what is called.
            new.end_lineno = new.lineno
            new.end_col_offset = new.col_offset + len(type(stmt).__name__)
    return new


def located(stmts: Sequence[ast.stmt], origin: ast.stmt) -> list[ast.stmt]:
    """Statements that were made, with positions; those of the user's keep theirs.

    What is in them gets its positions when all is done.
    """
    return [s if hasattr(s, "lineno") else ast.copy_location(s, origin) for s in stmts]
