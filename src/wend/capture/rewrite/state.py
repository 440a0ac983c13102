"""What tells the runtime which variables and objects some code may change."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.syntax import (
    definition,
    expression,
    name,
    runtime,
    strings,
    thunk,
)
from wend.capture.syntax.names import PREFIX, changes


def state_of(
    scope: Scope, nodes: Sequence[ast.AST], live: set[str] | None
) -> tuple[ast.FunctionDef, ast.expr]:
    """The setter of what some code may change, to define first, and its state.

    Args:
        scope: the names of the function.
        nodes: the code.
        live: the names that control flow must carry; None: all that are changed.
    """
    found = changes(nodes)
    kept = [
        p
        for p in found.places
        if "." not in p
        and p not in scope.shared
        and p in scope.locals
        and (live is None or p in live or p in scope.always_live or p in found.mutated)
    ]
    values = f"{PREFIX}values"
    body: list[ast.stmt] = scope.declarations(kept)
    if kept:
        targets = ast.Tuple([name(place, store=True) for place in kept], ast.Store())
        body.append(ast.Assign([targets], name(values)))
    for place in kept:
        gone = ast.Delete([ast.Name(place, ast.Del())])
        body.append(ast.If(runtime("is_unbound", name(place)), [gone], []))
    arguments = ast.arguments([], [ast.arg(values)], None, [], [], None, [])
    setter = definition(scope.new("set"), arguments, body or [ast.Pass()])
    heap: list[ast.expr] = []
    for place in found.places:
        base, _, attribute = place.rpartition(".")
        if base:
            kind = "attribute" if place in found.bound else "holder"
            heap.append(_heap_entry(kind, place, base, attribute))
        elif place in scope.shared:
            heap.append(_heap_entry("variable", place, place))
        if place in found.mutated and place not in found.rebound:
            heap.append(_heap_entry("contents", place, place))
    state = runtime(
        "State",
        strings(kept),
        ast.Tuple([thunk(name(place)) for place in kept], ast.Load()),
        name(setter.name),
        ast.Tuple(heap, ast.Load()),
        strings(p for p in kept if live is not None and p not in live | scope.always_live),
        strings(p for p in kept if p in found.mutated and p not in found.rebound),
    )
    return setter, state


def _heap_entry(kind: str, label: str, base: str, attribute: str | None = None) -> ast.expr:
    parts = [
        ast.Constant(kind),
        ast.Constant(label),
        thunk(expression(base)),
        ast.Constant(attribute),
    ]
    return ast.Tuple(parts, ast.Load())


def touches(scope: Scope, stmt: ast.stmt) -> list[ast.stmt]:
    """Tell of the changes that a statement makes outside the variables of the function."""
    found = changes(own_expressions(stmt))
    out: list[ast.expr] = []
    for place in found.bound:
        base, _, attribute = place.rpartition(".")
        if base:
            out.append(
                runtime(
                    "log_write_attribute",
                    thunk(expression(base)),
                    ast.Constant(attribute),
                    ast.Constant(place),
                )
            )
        elif place in scope.shared:
            out.append(runtime("log_write_variable", thunk(name(place)), ast.Constant(place)))
    out += [
        runtime("log_write_contents", thunk(expression(place)), ast.Constant(place))
        for place in found.mutated
    ]
    return [ast.copy_location(ast.Expr(call), stmt) for call in out]


def own_expressions(stmt: ast.stmt) -> list[ast.AST]:
    """What a statement evaluates itself, the statements in it left out."""
    match stmt:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(iter=iterable):
            return [iterable]
        case ast.With(items=items):
            return list(items)
        case ast.Match(subject=subject):
            return [subject]
        case (
            ast.Try() | ast.TryStar() | ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef()
        ):
            return []
    return [stmt]
