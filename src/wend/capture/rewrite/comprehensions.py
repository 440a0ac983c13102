"""Comprehensions and generator expressions with filters, of which a run decides what passes."""

from __future__ import annotations

import ast

from wend.capture.rewrite.syntax import all_arguments, definition, name, runtime
from wend.capture.rewrite.walrus import Names
from wend.capture.syntax.names import PREFIX
from wend.capture.syntax.nodes import cloned, walk

SOURCE = f"{PREFIX}source"
_RESULT = f"{PREFIX}list"
_SUSPENDING_OR_BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def is_filtered(node: ast.expr) -> bool:
    """Return whether a comprehension has filters, and can be written as a loop."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return False
    if not any(generator.ifs for generator in node.generators):
        return False
    is_async = any(generator.is_async for generator in node.generators)
    return not is_async and not any(isinstance(part, _SUSPENDING_OR_BINDING) for part in walk(node))


def searched(function: ast.expr, items: ast.GeneratorExp) -> ast.expr:
    """Build the items of `any` or `all` without filters, if they are those builtins.

    any(e for t in items if c)   ->   bool(c) and bool(e) for t in items
    all(e for t in items if c)   ->   not c or bool(e) for t in items

    `bool` is written as two `not`: both parts need one type where the run decides between them.
    """
    assert isinstance(function, ast.Name)
    joined = cloned(items)
    last = joined.generators[-1]
    passes = last.ifs[0] if len(last.ifs) == 1 else ast.BoolOp(ast.And(), last.ifs)
    fails, holds = _negated(passes), _negated(_negated(joined.elt))
    if function.id == "any":
        joined.elt = ast.BoolOp(ast.And(), [_negated(fails), holds])
    else:
        joined.elt = ast.BoolOp(ast.Or(), [fails, holds])
    last.ifs = []
    is_builtin = runtime("is_builtin", name(function.id), ast.Constant(function.id))
    result = ast.copy_location(ast.IfExp(is_builtin, joined, items), items)
    return ast.fix_missing_locations(result)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def filter_function(function: str, node: ast.ListComp | ast.GeneratorExp) -> ast.FunctionDef:
    """Build a comprehension as a function with a loop: a run may decide how many items pass.

    [e for t in items if c]   ->   def _wend_filter1(_wend_source):
                                       _wend_list = []
                                       for t in _wend_source:
                                           if c:
                                               _wend_list.append(e)
                                       return _wend_list
    """
    append = ast.Attribute(name(_RESULT), "append", ast.Load())
    body: list[ast.stmt] = [ast.Expr(ast.Call(append, [cloned(node.elt)], []))]
    ast.copy_location(body[0], node.elt)
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            body = [ast.copy_location(ast.If(cloned(test), body, []), test)]
        source = name(SOURCE) if generator is node.generators[0] else cloned(generator.iter)
        loop = ast.For(cloned(generator.target), source, body, [])
        body = [ast.copy_location(loop, generator.iter)]
    start = ast.Assign([name(_RESULT, store=True)], ast.List([], ast.Load()))
    statements = [start, *body, ast.Return(name(_RESULT))]
    for stmt in (start, statements[-1]):
        ast.copy_location(stmt, node)
    arguments = ast.arguments([], [ast.arg(SOURCE)], None, [], [], None, [])
    return ast.copy_location(definition(function, arguments, statements), node)


def bound_in(node: ast.expr) -> Names:
    """Return the names that a lambda or comprehension binds for the expressions in it."""
    if isinstance(node, ast.Lambda):
        return frozenset(argument.arg for argument in all_arguments(node.args))
    generators = getattr(node, "generators", ())
    targets = (part for generator in generators for part in walk(generator.target))
    return frozenset(part.id for part in targets if isinstance(part, ast.Name))
