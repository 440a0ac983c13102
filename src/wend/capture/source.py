"""Finds the syntax tree of a function, in the user's own file."""

from __future__ import annotations

import ast
import linecache
from types import CodeType

FunctionNode = ast.FunctionDef | ast.Lambda

_trees: dict[str, tuple[int, ast.Module]] = {}


def function_node(code: CodeType) -> FunctionNode | None:
    """Return the definition that a code object was compiled from; None where there is no source.

    Several may start on one line (lambdas): the positions of the bytecode tell them apart.
    """
    tree = _file_tree(code.co_filename)
    if tree is None:
        return None
    found = [node for node in ast.walk(tree) if _starts_at(node, code)]
    if len(found) > 1:
        exact = [node for node in found if _holds(node, code)]
        found = exact if exact else found
    return found[-1] if found else None  # type: ignore[return-value]


def _file_tree(file: str) -> ast.Module | None:
    text = "".join(linecache.getlines(file))
    if not text:
        return None
    key = hash(text)
    if file not in _trees or _trees[file][0] != key:
        try:
            _trees[file] = key, ast.parse(text, file)
        except SyntaxError:
            return None
    return _trees[file][1]


def _starts_at(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return False
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first == code.co_firstlineno


def _holds(node: ast.AST, code: CodeType) -> bool:
    """Whether the code's last instruction lies inside the node's body."""
    body = node.body if isinstance(node, ast.Lambda) else node
    assert isinstance(body, (ast.expr, ast.FunctionDef))
    spans = [
        (line, column, end)
        for line, last, column, end in code.co_positions()
        if line is not None and line == last and column is not None and end and end > column
    ]
    if not spans:
        return False
    line, column, end = spans[-1]
    assert body.end_lineno is not None and body.end_col_offset is not None
    starts_inside = (body.lineno, body.col_offset) <= (line, column)
    return starts_inside and (line, end) <= (body.end_lineno, body.end_col_offset)
