"""Descriptions, for the runtime, of the variables and heap locations that code may change."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.syntax import definition, name, peeked, runtime, strings, thunk
from wend.capture.syntax.names import PREFIX, changes, path_of
from wend.capture.syntax.nodes import cloned


def state_of(
    scope: Scope, nodes: Sequence[ast.AST], live: set[str] | None
) -> tuple[ast.FunctionDef, ast.expr]:
    """Return the setter of what code may change, to be defined first, and its `State`.

    `live` are the names that control flow must carry; None for all that change.
    """
    effects = changes(nodes)
    paths = [
        path
        for path in effects.paths
        if "." not in path
        and path not in scope.shared
        and path in scope.locals
        and (live is None or path in live or path in scope.always_live or path in effects.mutated)
    ]
    values_name = f"{PREFIX}values"
    body: list[ast.stmt] = scope.declarations(paths)
    if paths:
        targets = ast.Tuple([name(path, store=True) for path in paths], ast.Store())
        body.append(ast.Assign([targets], name(values_name)))
    for path in paths:
        unbind = ast.Delete([ast.Name(path, ast.Del())])
        body.append(ast.If(runtime("is_unbound", name(path)), [unbind], []))
    arguments = ast.arguments([], [ast.arg(values_name)], None, [], [], None, [])
    setter = definition(scope.new("set"), arguments, body or [ast.Pass()])
    heap: list[ast.expr] = []
    for path in effects.paths:
        owner, _, attribute = path.rpartition(".")
        if owner:
            kind = "attribute" if path in effects.bound else "holder"
            heap.append(_heap_entry(kind, path, owner, attribute))
        elif path in scope.shared:
            heap.append(_heap_entry("variable", path, path))
        if path in effects.mutated and path not in effects.rebound:
            heap.append(_heap_entry("contents", path, path))
    state = runtime(
        "State",
        strings(paths),
        ast.Tuple([thunk(name(path)) for path in paths], ast.Load()),
        name(setter.name),
        ast.Tuple(heap, ast.Load()),
        strings(
            path for path in paths if live is not None and path not in live | scope.always_live
        ),
        strings(path for path in paths if path in effects.mutated and path not in effects.rebound),
        strings(path for path in paths if path in scope.possibly_unbound),
    )
    return setter, state


def _heap_entry(kind: str, label: str, owner: str, attribute: str | None = None) -> ast.expr:
    fields = [
        ast.Constant(kind),
        ast.Constant(label),
        thunk(peeked(owner)),
        ast.Constant(attribute),
    ]
    return ast.Tuple(fields, ast.Load())


def write_log_calls(scope: Scope, stmt: ast.stmt) -> list[ast.stmt]:
    """Return the calls that log a statement's writes outside the function's variables."""
    effects = changes(head_expressions(stmt))
    calls: list[ast.expr] = []
    if isinstance(stmt, ast.Delete):
        targets = [x for x in stmt.targets if isinstance(x, ast.Attribute)]
        owners = [(path_of(target.value), target.attr) for target in targets]
        calls += [
            runtime("deleted_from", peeked(owner), ast.Constant(attribute))
            for owner, attribute in owners
            if owner is not None
        ]
    if isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Attribute):
        held_by = path_of(stmt.target.value)
        holder = cloned(stmt.target.value) if held_by is None else peeked(held_by)
        calls.append(runtime("read_held", thunk(holder), ast.Constant(stmt.target.attr)))
    for path in effects.bound:
        owner, _, attribute = path.rpartition(".")
        if owner:
            calls.append(
                runtime(
                    "log_write_attribute",
                    thunk(peeked(owner)),
                    ast.Constant(attribute),
                    ast.Constant(path),
                )
            )
        elif path in scope.shared:
            calls.append(runtime("log_write_variable", thunk(name(path)), ast.Constant(path)))
    for path in effects.mutated:
        how = [ast.Constant(path in effects.stores), ast.Constant(effects.stores.get(path, False))]
        calls.append(runtime("log_write_contents", thunk(peeked(path)), ast.Constant(path), *how))
    return [ast.copy_location(ast.Expr(call), stmt) for call in calls]


def head_expressions(stmt: ast.stmt) -> list[ast.AST]:
    """Return what a statement evaluates itself, without the statements inside it."""
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
