"""Lowering of `break`, `continue` and `return` inside loops to flags, and of loop `else` to `if`.

Afterwards every statement of a loop's body either runs or is skipped by an `if`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from wend.base.lazy.dataclass import dataclass
from wend.capture.rewrite.syntax import assign, name
from wend.capture.syntax.names import PREFIX, RETURN_VALUE, RETURNED, contains
from wend.capture.syntax.nodes import walk

# Marks a `return` whose value is computed after the loop
SUNK = f"{PREFIX}late"

_EXITS = (ast.Return, ast.Break, ast.Continue)


@dataclass(frozen=True, slots=True)
class LoopFlags:
    """The flag variables of one loop; `returned` and `value` belong to the function."""

    broken: str
    skipped: str
    returned: str = RETURNED
    value: str = RETURN_VALUE


def never_falls_through(stmts: Sequence[ast.stmt]) -> bool:
    """Return whether control never reaches the end of these statements."""
    return any(map(_never_falls_through, stmts))


def _never_falls_through(stmt: ast.stmt) -> bool:
    match stmt:
        case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
            return True
        case ast.If(body=body, orelse=orelse):
            return never_falls_through(body) and never_falls_through(orelse)
        case ast.With(body=body):
            return never_falls_through(body)
        case ast.Try(body=body, handlers=handlers, orelse=orelse):
            handled = all(never_falls_through(handler.body) for handler in handlers)
            return handled and never_falls_through([*body, *orelse])
        case ast.While(test=ast.Constant(value=value), body=body):
            return bool(value) and not contains(body, (ast.Break,), in_loops=False)
    return False


def lower_body(stmts: Sequence[ast.stmt], flags: LoopFlags) -> list[ast.stmt]:
    """Lower the exits in a loop's body to flags."""
    lowered: list[ast.stmt] = []
    for position, stmt in enumerate(stmts):
        following = stmts[position + 1 :]
        if isinstance(stmt, (ast.Break, ast.Continue, ast.Return)):
            return lowered + [ast.copy_location(s, stmt) for s in _set_exit_flags(stmt, flags)]
        if not has_exit(stmt):
            lowered.append(stmt)
            continue
        if (
            isinstance(stmt, ast.If)
            and never_falls_through(stmt.body)
            and not _any_has_exit(stmt.orelse)
        ):
            # if c: …; break   else: …   following   ->   if c: …; flag   else: …; following
            merged = ast.If(
                stmt.test,
                lower_body(stmt.body, flags),
                [*stmt.orelse, *lower_body(following, flags)],
            )
            return [*lowered, ast.copy_location(merged, stmt)]
        lowered.append(_lower_nested(stmt, flags))
        if following:
            guard = _unless_exited(lower_body(following, flags), flags)
            lowered.append(ast.copy_location(guard, following[0]))
        return lowered
    return lowered


def _unless_exited(stmts: list[ast.stmt], flags: LoopFlags) -> ast.If:
    exited = ast.BoolOp(ast.Or(), [name(flags.broken), name(flags.skipped)])
    return ast.If(ast.UnaryOp(ast.Not(), exited), stmts, [])


def _set_exit_flags(stmt: ast.stmt, flags: LoopFlags) -> Iterator[ast.stmt]:
    if isinstance(stmt, ast.Continue):
        yield assign(flags.skipped, True)
        return
    if isinstance(stmt, ast.Return):
        if not hasattr(stmt, SUNK):
            yield assign(flags.value, stmt.value or ast.Constant(None))
        yield assign(flags.returned, True)
    yield assign(flags.broken, True)


def has_exit(stmt: ast.stmt) -> bool:
    """Return whether a statement may leave the iteration of the enclosing loop."""
    exits = contains([stmt], (ast.Break, ast.Continue), in_loops=False) and not isinstance(
        stmt, (ast.For, ast.While)
    )
    return exits or contains([stmt], (ast.Return,))


def exit_of_finally(node: ast.AST) -> ast.Return | ast.Break | ast.Continue | None:
    """Return the statement that leaves a `finally`, if there is one."""
    for inner in walk(node):
        if isinstance(inner, (ast.Try, ast.TryStar)):
            for stmt in inner.finalbody:
                if has_exit(stmt):
                    return next(
                        descendant for descendant in walk(stmt) if isinstance(descendant, _EXITS)
                    )
    return None


def _any_has_exit(stmts: Sequence[ast.stmt]) -> bool:
    return any(map(has_exit, stmts))


def _lower_nested(stmt: ast.stmt, flags: LoopFlags) -> ast.stmt:
    """Lower the exits inside a compound statement to flags."""
    match stmt:
        case ast.If(test=test, body=body, orelse=orelse):
            lowered: ast.stmt = ast.If(test, lower_body(body, flags), lower_body(orelse, flags))
        case ast.With(items=items, body=body):
            lowered = ast.With(items, lower_body(body, flags))
        case (
            ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final)
            | ast.TryStar(body=body, handlers=handlers, orelse=orelse, finalbody=final)
        ):
            caught = [
                ast.copy_location(ast.ExceptHandler(h.type, h.name, lower_body(h.body, flags)), h)
                for h in handlers
            ]
            lowered_else = lower_body(orelse, flags)
            if orelse and _any_has_exit(body):
                # An exit from the `try` skips its `else`.
                lowered_else = [ast.copy_location(_unless_exited(lowered_else, flags), orelse[0])]
            lowered = type(stmt)(lower_body(body, flags), caught, lowered_else, final)
        case ast.Match(subject=subject, cases=cases):
            lowered = ast.Match(
                subject,
                [ast.match_case(c.pattern, c.guard, lower_body(c.body, flags)) for c in cases],
            )
        case ast.For() | ast.While():
            # A return in an inner loop exits this one as well.
            propagate = ast.If(name(flags.returned), [assign(flags.broken, True)], [])
            block = ast.If(ast.Constant(True), [stmt, ast.copy_location(propagate, stmt)], [])
            return ast.copy_location(block, stmt)
        case _:
            raise SyntaxError(f"an exit from a loop inside {type(stmt).__name__}")
    return ast.copy_location(lowered, stmt)
