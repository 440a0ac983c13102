"""`match` on values as a chain of `if`."""

from __future__ import annotations

import ast

from wend.capture.names import changed
from wend.capture.nodes import cloned
from wend.capture.rewrite.syntax import assign, name


def is_value_match(stmt: ast.Match) -> bool:
    """Whether a `match` compares its subject with values only."""
    return all(_is_value_pattern(case.pattern) for case in stmt.cases)


def _is_value_pattern(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton() | ast.MatchAs(pattern=None):
            return True
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _is_value_pattern(inner) and not changed([inner])
        case ast.MatchOr(patterns=patterns):
            return all(map(_is_value_pattern, patterns)) and not changed([pattern])
    return False


def case_as_if(case: ast.match_case, subject: str, otherwise: list[ast.stmt]) -> ast.stmt:
    """`case pattern if guard: body` as an `if` on the subject."""
    body = list(case.body)
    test = _pattern_test(case.pattern, subject)
    bound = case.pattern.name if isinstance(case.pattern, ast.MatchAs) else None
    if bound:
        binding = assign(bound, name(subject))
        if case.guard is not None:
            body = [ast.If(case.guard, body, cloned(otherwise))]
        body = [binding, *body]
    elif case.guard is not None:
        test = case.guard if test is None else ast.BoolOp(ast.And(), [test, case.guard])
    return ast.If(test or ast.Constant(True), body, otherwise)


def _pattern_test(pattern: ast.pattern, subject: str) -> ast.expr | None:
    """The test that a pattern stands for; None: it always matches."""
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(name(subject), [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            return ast.Compare(name(subject), [ast.Is()], [ast.Constant(value)])
        case ast.MatchAs(pattern=inner) if inner is not None:
            return _pattern_test(inner, subject)
        case ast.MatchOr(patterns=patterns):
            tests = [test for p in patterns if (test := _pattern_test(p, subject)) is not None]
            return ast.BoolOp(ast.Or(), tests) if len(tests) == len(patterns) else None
    return None
