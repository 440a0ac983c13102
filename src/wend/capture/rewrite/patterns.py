"""`match` on values, classes, sequences and mappings, as a chain of `if`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wend.capture.rewrite.syntax import name, runtime, strings
from wend.capture.syntax.names import changed
from wend.capture.syntax.nodes import cloned


def is_value_match(stmt: ast.Match) -> bool:
    """Return whether a `match` can be rewritten to a chain of `if`."""
    return all(_is_value_pattern(case.pattern) for case in stmt.cases)


def _is_value_pattern(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton() | ast.MatchAs(pattern=None):
            return True
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _is_value_pattern(inner)
        case ast.MatchOr(patterns=patterns):
            return all(map(_is_value_pattern, patterns)) and not changed([pattern])
        case ast.MatchClass(patterns=positional, kwd_patterns=named):
            return all(map(_is_value_pattern, (*positional, *named)))
        case ast.MatchSequence(patterns=patterns) | ast.MatchMapping(patterns=patterns):
            return all(map(_is_value_pattern, patterns))
        case ast.MatchStar():
            return True
    return False


def case_as_if(case: ast.match_case, subject: str, otherwise: list[ast.stmt]) -> ast.stmt:
    """Rewrite `case pattern if guard: body` to an `if` on the subject."""
    body = list(case.body)
    tests = [*_tests(case.pattern, name(subject))]
    bindings = [*_bindings(case.pattern, name(subject))]
    if bindings:
        if case.guard is not None:
            body = [ast.If(case.guard, body, cloned(otherwise))]
        body = [*bindings, *body]
    elif case.guard is not None:
        tests.append(case.guard)
    return ast.If(_conjunction(tests), body, otherwise)


def _conjunction(tests: list[ast.expr]) -> ast.expr:
    if len(tests) > 1:
        return ast.BoolOp(ast.And(), tests)
    return tests[0] if tests else ast.Constant(True)


def _tests(pattern: ast.pattern, subject: ast.expr) -> Iterator[ast.expr]:
    """Yield the tests that a pattern stands for, in order; none if it always matches.

    They stand where the pattern does, so an error in one is told of its line.
    """
    for test in _own_tests(pattern, subject):
        yield test if hasattr(test, "lineno") else ast.copy_location(test, pattern)
    for inner, part in _subpatterns(pattern, subject):
        yield from _tests(inner, part)


def _own_tests(pattern: ast.pattern, subject: ast.expr) -> Iterator[ast.expr]:
    """Yield the tests of a pattern, without those of the patterns inside it."""
    match pattern:
        case ast.MatchValue(value=value):
            yield ast.Compare(cloned(subject), [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            yield ast.Compare(cloned(subject), [ast.Is()], [ast.Constant(value)])
        case ast.MatchAs(pattern=inner) if inner is not None:
            yield from _tests(inner, subject)
        case ast.MatchOr(patterns=patterns):
            options = [[*_tests(p, subject)] for p in patterns]
            if all(options):
                yield ast.BoolOp(ast.Or(), [*map(_conjunction, options)])
        case ast.MatchClass(cls=kind, patterns=positional, kwd_attrs=attributes):
            count = ast.Constant(len(positional))
            yield runtime("is_of_class", cloned(subject), kind, count, strings(attributes))
        case ast.MatchSequence(patterns=patterns):
            is_open = _star_of(patterns) is not None
            length = ast.Constant(len(patterns) - is_open), ast.Constant(is_open)
            yield runtime("is_sequence", cloned(subject), *length)
        case ast.MatchMapping(keys=keys):
            yield runtime("is_mapping", cloned(subject))
            for key in keys:
                items = runtime("items_by_get", cloned(subject))
                yield ast.Compare(cloned(key), [ast.In()], [items])


def _bindings(pattern: ast.pattern, subject: ast.expr) -> Iterator[ast.stmt]:
    """Yield the assignments of the names that a pattern binds."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            yield from _bindings(pattern.pattern, subject)
        if pattern.name is not None:
            yield ast.Assign([name(pattern.name, store=True)], cloned(subject))
    if isinstance(pattern, ast.MatchStar) and pattern.name is not None:
        yield ast.Assign([name(pattern.name, store=True)], cloned(subject))
    for inner, part in _subpatterns(pattern, subject):
        yield from _bindings(inner, part)
    if isinstance(pattern, ast.MatchMapping) and pattern.rest is not None:
        keys = ast.Tuple([*map(cloned, pattern.keys)], ast.Load())
        others = runtime("other_items", cloned(subject), keys)
        yield ast.Assign([name(pattern.rest, store=True)], others)


def _subpatterns(pattern: ast.pattern, subject: ast.expr) -> Iterator[tuple[ast.pattern, ast.expr]]:
    """Yield the patterns inside one, with the expressions they match against."""
    match pattern:
        case ast.MatchClass(cls=kind, patterns=positional, kwd_attrs=attributes):
            for k, inner in enumerate(positional):
                yield inner, runtime("matched_part", cloned(subject), cloned(kind), ast.Constant(k))
            for attribute, inner in zip(attributes, pattern.kwd_patterns, strict=True):
                yield inner, ast.Attribute(cloned(subject), attribute, ast.Load())
        case ast.MatchSequence(patterns=patterns):
            star, count = _star_of(patterns), len(patterns)
            for k, inner in enumerate(patterns):
                if k == star:
                    ends = ast.Constant(k), ast.Constant(count - 1 - k)
                    yield inner, runtime("starred_items", cloned(subject), *ends)
                    continue
                position = k if star is None or k < star else k - count
                yield inner, ast.Subscript(cloned(subject), _integer(position), ast.Load())
        case ast.MatchMapping(keys=keys, patterns=patterns):
            for key, inner in zip(keys, patterns, strict=True):
                items = runtime("items_by_get", cloned(subject))
                yield inner, ast.Subscript(items, cloned(key), ast.Load())


def _star_of(patterns: list[ast.pattern]) -> int | None:
    """Return the position of `*rest` in a sequence pattern, if it has one."""
    stars = (k for k, pattern in enumerate(patterns) if isinstance(pattern, ast.MatchStar))
    return next(stars, None)


def _integer(value: int) -> ast.expr:
    constant = ast.Constant(abs(value))
    return constant if value >= 0 else ast.UnaryOp(ast.USub(), constant)
