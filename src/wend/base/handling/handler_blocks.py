"""The bodies of `try` and `with` statements in the text of a file, found by its lines."""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from wend.base.lazy.dataclass import dataclass
from wend.base.source import line_of


@dataclass(frozen=True, slots=True)
class HandlerBlock:
    """The body of a `try` that has handlers, or of a `with`.

    Attributes:
        function: the name of the function that it belongs to, and that function's first line.
        first, column, last: its first line and the column where it starts, and its last line.
        is_try: whether it is that of a plain `try`, which captured code replaces.
        takes_groups: whether its handlers are `except*`, which catch groups with what they name.
        clauses: the line of each handler, and what it catches: the class of an `except`, None if
            that has none, or an item of a `with`.
    """

    function: tuple[str, int]
    first: int
    column: int
    last: int
    clauses: tuple[tuple[int, ast.expr | ast.withitem | None], ...]
    is_try: bool
    takes_groups: bool


# File -> its lines, as linecache holds them, and its blocks, the innermost last.
_MAX_INDEXED_FILES = 64
_indexes: dict[str, tuple[list[str], list[HandlerBlock]]] = {}


def enclosing_blocks(frame: FrameType) -> list[HandlerBlock]:
    """Return the blocks of a frame's function around the instruction at which it is."""
    code, line = frame.f_code, line_of(frame)
    blocks = [
        block
        for block in blocks_of(code.co_filename)
        if block.function[0] == code.co_name
        and block.first <= line <= block.last
        and (line > block.first or _column(frame) >= block.column)
    ]
    innermost = max((block.function[1] for block in blocks), default=0)
    return [block for block in blocks if block.function[1] == innermost]


def _column(frame: FrameType) -> int:
    """Return the column of the instruction at which a frame is."""
    positions = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    _, _, column, _ = next(positions, (None, None, None, None))
    return sys.maxsize if column is None else column


def blocks_of(file: str) -> list[HandlerBlock]:
    """Return the blocks of a file; it is read again if it has changed."""
    lines = linecache.getlines(file)
    if file not in _indexes or _indexes[file][0] is not lines:
        _indexes.pop(file, None)
        if len(_indexes) >= _MAX_INDEXED_FILES:
            del _indexes[next(iter(_indexes))]
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            tree = ast.Module([], [])
        _indexes[file] = lines, [*_blocks_in(tree, ("<module>", 0))]
    return _indexes[file][1]


def _blocks_in(node: ast.AST, function: tuple[str, int]) -> Iterator[HandlerBlock]:
    """Yield the blocks inside a node, each before those in it."""
    for child in ast.iter_child_nodes(node):
        inner = function
        clauses: list[tuple[int, Any]] = []
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                inner = child.name, child.lineno
            case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
                clauses = [(h.lineno, h.type) for h in handlers if not only_reraises(h)]
            case ast.With(items=items):
                clauses = [(child.lineno, item) for item in items]
        if clauses:
            assert isinstance(child, (ast.Try, ast.TryStar, ast.With))
            start, last = child.body[0], child.body[-1].end_lineno or child.lineno
            kinds = isinstance(child, ast.Try), isinstance(child, ast.TryStar)
            yield HandlerBlock(
                function, start.lineno, start.col_offset, last, tuple(clauses), *kinds
            )
        yield from _blocks_in(child, inner)


def only_reraises(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler is a bare `raise`."""
    (stmt, *others) = handler.body
    return isinstance(stmt, ast.Raise) and stmt.exc is None and not others
