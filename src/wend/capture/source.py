"""Finds the syntax tree of a function, in the user's own file."""

from __future__ import annotations

import ast
import linecache
from types import CodeType

from wend.capture.syntax.nodes import cloned

FunctionNode = ast.FunctionDef | ast.Lambda

# For each file: its lines, as linecache holds them, and its functions by where they start.
_FILES = 64  # of so many: each cell of a notebook is one
_indexes: dict[str, tuple[list[str], dict[int, list[FunctionNode]]]] = {}


def function_node(code: CodeType) -> FunctionNode | None:
    """Return a definition like the one a code object comes from; None where there is no source.

    Several may start on one line (lambdas): the positions of the bytecode tell them apart.
    """
    alone = _parsed_alone(code)
    if alone is not None:
        return alone
    starting = _functions_of(code.co_filename).get(code.co_firstlineno, [])
    found = [node for node in starting if _is_named(node, code)]
    if len(found) > 1:
        exact = [node for node in found if _holds(node, code)]
        found = exact or found
    return cloned(found[-1]) if found else None


def _parsed_alone(code: CodeType) -> ast.FunctionDef | None:
    """The definition, parsed without the rest of its file, which may be long; None if in doubt.

    It goes from its first line to the first one after its last instruction that stands no further
    in than it does.
    """
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno - 1
    if not 0 <= first < len(lines) or not lines[first].lstrip().startswith(("def ", "@")):
        return None
    inside = _indentation(lines[first])
    end = _last_line(code)
    while end < len(lines) and (
        not lines[end].strip() or lines[end].lstrip()[0] == "#" or _indentation(lines[end]) > inside
    ):
        end += 1
    text = "".join(lines[first:end])
    try:
        # Empty lines before it, so that it keeps its place.
        before = "\n" * (first - 1) + "if 1:\n" if inside else "\n" * first
        (node,) = ast.parse(before + text).body
        if inside and first == 0:
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
    """The last line that an instruction comes from, those of functions inside included."""
    inner = [_last_line(c) for c in code.co_consts if isinstance(c, CodeType)]
    return max([code.co_firstlineno, *inner, *(end for _, end, *_ in code.co_positions() if end)])


def _functions_of(file: str) -> dict[int, list[FunctionNode]]:
    """The functions of a file by their first lines; read again where the file has changed."""
    lines = linecache.getlines(file)
    if file not in _indexes or _indexes[file][0] is not lines:
        _indexes.pop(file, None)
        if len(_indexes) >= _FILES:
            del _indexes[next(iter(_indexes))]
        _indexes[file] = lines, _index("".join(lines), file)
    return _indexes[file][1]


def _index(text: str, file: str) -> dict[int, list[FunctionNode]]:
    found: dict[int, list[FunctionNode]] = {}
    try:
        tree = ast.parse(text, file)
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.FunctionDef):
            lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
            found.setdefault(min(lines), []).append(node)
    return found


def _is_named(node: FunctionNode, code: CodeType) -> bool:
    return code.co_name == ("<lambda>" if isinstance(node, ast.Lambda) else node.name)


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
