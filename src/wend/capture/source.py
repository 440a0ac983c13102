"""Lookup of the syntax tree of a function in its source file."""

from __future__ import annotations

import ast
import linecache
from types import CodeType

from wend.capture.syntax.nodes import cloned

FunctionNode = ast.FunctionDef | ast.Lambda

# File -> its lines, as linecache holds them, and its functions by first line.
_MAX_INDEXED_FILES = 64  # a notebook makes one file of each cell
_indexes: dict[str, tuple[list[str], dict[int, list[FunctionNode]]]] = {}


def function_node(code: CodeType) -> FunctionNode | None:
    """Return the definition that a code object was compiled from, or None without source.

    Several functions may start on one line (lambdas); the positions of the bytecode tell them
    apart.
    """
    definition = _parse_definition(code)
    if definition is not None:
        return definition
    candidates = _functions_by_line(code.co_filename).get(code.co_firstlineno, [])
    matches = [node for node in candidates if _has_name_of(node, code)]
    if len(matches) > 1:
        exact = [node for node in matches if _encloses(node, code)]
        matches = exact or matches
    return cloned(matches[-1]) if matches else None


def _parse_definition(code: CodeType) -> ast.FunctionDef | None:
    """Parse a definition without the rest of its file, which may be long; None if in doubt.

    It extends from its first line to the first line after its last instruction that is not
    indented more deeply.
    """
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno - 1
    if not 0 <= first < len(lines) or not lines[first].lstrip().startswith(("def ", "@")):
        return None
    indent = _indentation(lines[first])
    end = _last_line(code)
    while end < len(lines) and (
        not lines[end].strip() or lines[end].lstrip()[0] == "#" or _indentation(lines[end]) > indent
    ):
        end += 1
    text = "".join(lines[first:end])
    try:
        # Empty lines before the definition keep its line numbers.
        padding = "\n" * (first - 1) + "if 1:\n" if indent else "\n" * first
        (node,) = ast.parse(padding + text).body
        if indent and first == 0:
            ast.increment_lineno(node, -1)
    except (SyntaxError, ValueError):
        return None
    if isinstance(node, ast.If):
        if len(node.body) != 1:
            return None
        node = node.body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return None
    return node


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_line(code: CodeType) -> int:
    """Return the last line of any instruction of `code` and of the functions nested in it."""
    inner = [_last_line(c) for c in code.co_consts if isinstance(c, CodeType)]
    return max([code.co_firstlineno, *inner, *(end for _, end, *_ in code.co_positions() if end)])


def _functions_by_line(file: str) -> dict[int, list[FunctionNode]]:
    """Return the functions of a file by first line; the file is read again if it changed."""
    lines = linecache.getlines(file)
    if file not in _indexes or _indexes[file][0] is not lines:
        _indexes.pop(file, None)
        if len(_indexes) >= _MAX_INDEXED_FILES:
            del _indexes[next(iter(_indexes))]
        _indexes[file] = lines, _index("".join(lines), file)
    return _indexes[file][1]


def _index(text: str, file: str) -> dict[int, list[FunctionNode]]:
    functions: dict[int, list[FunctionNode]] = {}
    try:
        tree = ast.parse(text, file)
    except SyntaxError:
        return functions
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            functions.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.FunctionDef):
            lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
            functions.setdefault(min(lines), []).append(node)
    return functions


def _has_name_of(node: FunctionNode, code: CodeType) -> bool:
    return code.co_name == ("<lambda>" if isinstance(node, ast.Lambda) else node.name)


def _encloses(node: ast.AST, code: CodeType) -> bool:
    """Return whether the last instruction of `code` lies inside the node's body."""
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
