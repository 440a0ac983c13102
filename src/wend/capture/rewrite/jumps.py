"""Turns `break`, `continue` and `return` inside loops into flags, and loop `else` into an `if`.

After this, every statement of a loop's body runs or is skipped by an `if`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wend.capture.rewrite.syntax import assign, name
from wend.capture.syntax.names import (
    PREFIX,
    RETURN_VALUE,
    RETURNED,
    contains,
)
from wend.capture.syntax.nodes import walk

# Marks a `return` whose value is computed after the loop
LATE = f"{PREFIX}late"

_EXITS = (ast.Return, ast.Break, ast.Continue)


@dataclass(frozen=True, slots=True)
class Flags:
    """The names of the flags of one loop; `returned` and `value` are the function's."""

    broken: str
    skipped: str
    returned: str = RETURNED
    value: str = RETURN_VALUE


def leaves(stmts: Sequence[ast.stmt]) -> bool:
    """Whether control never runs off the end of these statements."""
    return any(map(_leaves, stmts))


def _leaves(stmt: ast.stmt) -> bool:
    match stmt:
        case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
            return True
        case ast.If(body=body, orelse=orelse):
            return leaves(body) and leaves(orelse)
        case ast.With(body=body):
            return leaves(body)
        case ast.While(test=ast.Constant(value=value), body=body):
            return bool(value) and not contains(body, (ast.Break,), in_loops=False)
    return False


def lower_body(stmts: Sequence[ast.stmt], flags: Flags) -> list[ast.stmt]:
    """A loop's body with its exits as flags."""
    lowered: list[ast.stmt] = []
    for position, stmt in enumerate(stmts):
        rest = stmts[position + 1 :]
        if isinstance(stmt, (ast.Break, ast.Continue, ast.Return)):
            return lowered + [ast.copy_location(s, stmt) for s in _exit(stmt, flags)]
        if not has_exit(stmt):
            lowered.append(stmt)
            continue
        if isinstance(stmt, ast.If) and leaves(stmt.body) and not _has_exit_in(stmt.orelse):
            # if c: …; break   else: …   rest   ->   if c: …; flag   else: …; rest
            both = ast.If(
                stmt.test,
                lower_body(stmt.body, flags),
                [*stmt.orelse, *lower_body(rest, flags)],
            )
            return [*lowered, ast.copy_location(both, stmt)]
        lowered.append(_lower_inside(stmt, flags))
        if rest:
            guard = _unless_left(lower_body(rest, flags), flags)
            lowered.append(ast.copy_location(guard, rest[0]))
        return lowered
    return lowered


def _unless_left(stmts: list[ast.stmt], flags: Flags) -> ast.If:
    left = ast.BoolOp(ast.Or(), [name(flags.broken), name(flags.skipped)])
    return ast.If(ast.UnaryOp(ast.Not(), left), stmts, [])


def _exit(stmt: ast.stmt, flags: Flags) -> Iterator[ast.stmt]:
    if isinstance(stmt, ast.Continue):
        yield assign(flags.skipped, True)
        return
    if isinstance(stmt, ast.Return):
        if not hasattr(stmt, LATE):
            yield assign(flags.value, stmt.value or ast.Constant(None))
        yield assign(flags.returned, True)
    yield assign(flags.broken, True)


def has_exit(stmt: ast.stmt) -> bool:
    """Whether a statement may leave the iteration of the loop it stands in."""
    exits = contains([stmt], (ast.Break, ast.Continue), in_loops=False) and not isinstance(
        stmt, (ast.For, ast.While)
    )
    return exits or contains([stmt], (ast.Return,))


def exit_of_finally(node: ast.AST) -> ast.Return | ast.Break | ast.Continue | None:
    """The statement by which a `finally` is left, if any is."""
    for inner in walk(node):
        if isinstance(inner, (ast.Try, ast.TryStar)):
            for stmt in inner.finalbody:
                if has_exit(stmt):
                    return next(own for own in walk(stmt) if isinstance(own, _EXITS))
    return None


def _has_exit_in(stmts: Sequence[ast.stmt]) -> bool:
    return any(map(has_exit, stmts))


def _lower_inside(stmt: ast.stmt, flags: Flags) -> ast.stmt:
    """A statement that holds others, with their exits as flags."""
    match stmt:
        case ast.If(test=test, body=body, orelse=orelse):
            new: ast.stmt = ast.If(test, lower_body(body, flags), lower_body(orelse, flags))
        case ast.With(items=items, body=body):
            new = ast.With(items, lower_body(body, flags))
        case (
            ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final)
            | ast.TryStar(body=body, handlers=handlers, orelse=orelse, finalbody=final)
        ):
            caught = [
                ast.copy_location(ast.ExceptHandler(h.type, h.name, lower_body(h.body, flags)), h)
                for h in handlers
            ]
            otherwise = lower_body(orelse, flags)
            if orelse and _has_exit_in(body):
                # An exit from the `try` passes by its `else`.
                otherwise = [ast.copy_location(_unless_left(otherwise, flags), orelse[0])]
            new = type(stmt)(lower_body(body, flags), caught, otherwise, final)
        case ast.Match(subject=subject, cases=cases):
            new = ast.Match(
                subject,
                [ast.match_case(c.pattern, c.guard, lower_body(c.body, flags)) for c in cases],
            )
        case ast.For() | ast.While():
            # A return in an inner loop leaves this one as well.
            seen = ast.If(name(flags.returned), [assign(flags.broken, True)], [])
            block = ast.If(ast.Constant(True), [stmt, ast.copy_location(seen, stmt)], [])
            return ast.copy_location(block, stmt)
        case _:
            raise SyntaxError(f"an exit from a loop inside {type(stmt).__name__}")
    return ast.copy_location(new, stmt)
