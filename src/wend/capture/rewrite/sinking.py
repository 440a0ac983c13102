"""Sinking: what a loop does before it leaves is done after the loop, where that is equal.

A `return` computes its value there:

    while …:                          while …:
        …                                 …
        if test: return x      ->         if test: returned = True; break
                                      if returned: return x

The value may then be an array that the loop updates in place, or a list that grows there, and
values that the loop carries anyway are not carried twice. So does what a `for` does to the list
that it goes through:

    for v in items:                   for v in items:
        …                                 …
        if test:               ->         if test: changed = True; break
            items.remove(v)           if changed: items.remove(v)
            break

Nothing goes through the list then when it changes, so that its length may be traced.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from typing import Any

from wend.base.lazy.dataclass import dataclass
from wend.capture.rewrite.jumps import SUNK
from wend.capture.rewrite.syntax import assign, located, name
from wend.capture.syntax.names import PREFIX, changed, contains, live_before, read
from wend.capture.syntax.nodes import StatementTransformer, cloned, walk

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)
_NOT_SINKABLE = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)  # have rewriters of their own
_WRAPPERS = frozenset({"enumerate", "zip", "reversed"})


# Returns
@dataclass(frozen=True, slots=True)
class SunkReturns:
    """A loop whose returns were sunk.

    Attributes:
        loop: the rewritten loop.
        returns: the returns to make after the loop, by their flags.
        has_unsunk: whether some returns stay in the loop.
    """

    loop: ast.For | ast.While
    returns: dict[str, ast.Return]
    has_unsunk: bool


def sink_returns(
    loop: ast.For | ast.While, bound: Collection[str], new_flag: Callable[[], str]
) -> SunkReturns:
    """Sink the returns of a loop whose values are the same after it.

    `bound` are the variables that may be bound before it.
    """
    changed_names = {path.partition(".")[0] for path in changed([loop])}
    # Names that are live at the start of a trip are carried anyway.
    carried = live_before([loop], set()) & set(bound)
    transformer = _SinkReturns(changed_names - carried, new_flag)
    return SunkReturns(
        transformer.generic_visit(cloned(loop)), transformer.returns, transformer.has_unsunk
    )


class _SinkReturns(StatementTransformer):
    """Replaces returns by flags and collects them."""

    def __init__(self, loop_locals: set[str], new_flag: Callable[[], str]) -> None:
        self.loop_locals, self.new_flag = loop_locals, new_flag
        self.flags: dict[str, str] = {}
        self.returns: dict[str, ast.Return] = {}
        self.has_unsunk = False

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value or ast.Constant(None)
        if read([value]) & self.loop_locals or any(
            isinstance(v, _NOT_SINKABLE) for v in walk(value)
        ):
            self.has_unsunk = True
            return node
        key = ast.dump(value)
        if key not in self.flags:
            self.flags[key] = flag = self.new_flag()
            self.returns[flag] = node
        sunk = ast.Return(None)
        setattr(sunk, SUNK, True)
        return located([assign(self.flags[key], True), sunk], node)

    def _keep_returns(self, node: ast.stmt) -> ast.stmt:
        # Its other effects come between the return and the end of the loop.
        self.has_unsunk |= contains([node], (ast.Return,))
        return node

    visit_With = visit_Try = visit_TryStar = _keep_returns


# Changes
def sink_changes(node: ast.FunctionDef, counter: list[int]) -> ast.FunctionDef:
    """Move what changes the list of a `for`, and leaves it at once, behind the loop; in place."""
    if any(isinstance(inner, ast.For) for inner in walk(node)):
        _sink_in_block(node.body, counter)
    return node


def _sink_in_block(block: list[ast.stmt], counter: list[int]) -> None:
    for position, stmt in reversed([*enumerate(block)]):
        if isinstance(stmt, _SCOPES):
            continue
        for part in (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            for field in ("body", "orelse", "finalbody"):
                _sink_in_block(getattr(part, field, []), counter)
        if isinstance(stmt, ast.For) and (paths := _paths_of(stmt.iter)):
            sinker = _Sinker(counter, paths)
            sinker.sink_in(stmt.body)
            block[position : position + 1] = [*sinker.before, stmt, *sinker.after]


def _paths_of(iterable: ast.expr) -> frozenset[str]:
    """Return the names and attributes whose items an iterable gives."""
    match iterable:
        case ast.Name() | ast.Attribute():
            return frozenset({ast.dump(iterable)})
        case ast.Call(func=ast.Name(id=called), args=args) if called in _WRAPPERS:
            return frozenset().union(*map(_paths_of, args))
    return frozenset()


class _Sinker:
    """Sinks the changes in the body of a loop; `before` and `after` are to stand around it."""

    def __init__(self, counter: list[int], paths: frozenset[str]) -> None:
        self.counter, self.paths = counter, paths
        self.before: list[ast.stmt] = []
        self.after: list[ast.stmt] = []

    def sink_in(self, block: list[ast.stmt]) -> None:
        for k, stmt in enumerate(block):
            if self._changes(stmt) and self._leaves(block[k + 1 :]):
                block[k:] = self._sink(block[k:])
                return
            if isinstance(stmt, ast.If):  # a `try` or `with` does more before the loop is left
                self.sink_in(stmt.body)
                self.sink_in(stmt.orelse)

    def _changes(self, stmt: ast.stmt) -> bool:
        """Return whether a statement calls a method of the list, or deletes items of it."""
        match stmt:
            case ast.Delete(targets=[ast.Subscript(value=owner)]):
                return ast.dump(owner) in self.paths
            case (
                ast.Expr(value=ast.Call(func=ast.Attribute(value=owner)))
                | ast.Assign(value=ast.Call(func=ast.Attribute(value=owner)))
            ):
                return _is_simple(stmt) and ast.dump(owner) in self.paths
        return False

    def _leaves(self, following: Sequence[ast.stmt]) -> bool:
        """Return whether statements leave the loop, with nothing but simple ones before."""
        last = next((stmt for stmt in following if not _is_simple(stmt)), None)
        return isinstance(last, (ast.Break, ast.Return))

    def _sink(self, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return what stands in the loop for a change, and what follows up to its exit."""
        self.counter[0] += 1
        flag = f"{PREFIX}changed{self.counter[0]}"
        end = next(k for k, stmt in enumerate(stmts) if not _is_simple(stmt))
        first, leave = stmts[0], stmts[end]
        body = [*stmts[: end + isinstance(leave, ast.Return)]]
        self.before += located([assign(flag, False)], first)
        self.after += located([ast.If(name(flag), body, [])], first)
        return located([assign(flag, True), ast.Break()], leave)


def _is_simple(stmt: ast.stmt) -> bool:
    return isinstance(stmt, _SIMPLE) and not any(isinstance(v, _NOT_SINKABLE) for v in walk(stmt))
