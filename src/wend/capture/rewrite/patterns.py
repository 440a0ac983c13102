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


class PartExpressions:
    """The expressions for what the patterns of a `match` take of the subject, once.

    `taken`: the variable that holds it.
    """

    def __init__(self, taken: str) -> None:
        self._taken = taken
        self._numbers: dict[ast.pattern, int] = {}

    def take(self, test: str, pattern: ast.pattern, *arguments: ast.expr) -> ast.expr:
        """Return the test of a pattern that takes the parts which the patterns in it match."""
        number = self._numbers.setdefault(pattern, len(self._numbers))
        return runtime(test, name(self._taken), ast.Constant(number), *arguments)

    def part(self, pattern: ast.pattern, position: int) -> ast.expr:
        """Return a part that a pattern has taken."""
        place = ast.Constant(self._numbers[pattern]), ast.Constant(position)
        return runtime("part_taken", name(self._taken), *place)


def case_as_if(
    case: ast.match_case, subject: str, parts: PartExpressions, otherwise: list[ast.stmt]
) -> ast.stmt:
    """Rewrite `case pattern if guard: body` to an `if` on the subject."""
    body = list(case.body)
    tests = [*_tests(case.pattern, name(subject), parts)]
    bindings = [*_bindings(case.pattern, name(subject), parts)]
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


def _tests(pattern: ast.pattern, subject: ast.expr, parts: PartExpressions) -> Iterator[ast.expr]:
    """Yield the tests that a pattern stands for, in order; none if it always matches.

    They stand where the pattern does, so an error in one is told of its line.
    """
    for test in _own_tests(pattern, subject, parts):
        yield test if hasattr(test, "lineno") else ast.copy_location(test, pattern)
    for inner, part in _subpatterns(pattern, parts):
        yield from _tests(inner, part, parts)


def _own_tests(
    pattern: ast.pattern, subject: ast.expr, parts: PartExpressions
) -> Iterator[ast.expr]:
    """Yield the tests of a pattern, without those of the patterns inside it."""
    match pattern:
        case ast.MatchValue(value=value):
            yield ast.Compare(cloned(subject), [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            yield ast.Compare(cloned(subject), [ast.Is()], [ast.Constant(value)])
        case ast.MatchAs(pattern=inner) if inner is not None:
            yield from _tests(inner, subject, parts)
        case ast.MatchOr(patterns=patterns):
            options = [[*_tests(p, subject, parts)] for p in patterns]
            if all(options):
                yield ast.BoolOp(ast.Or(), [*map(_conjunction, options)])
        case ast.MatchClass(cls=kind, patterns=positional, kwd_attrs=attributes):
            count = ast.Constant(len(positional))
            named = strings(attributes)
            yield parts.take("is_of_class", pattern, cloned(subject), kind, count, named)
        case ast.MatchSequence(patterns=patterns):
            kinds = ast.Constant("".join(map(_kind_of_item, patterns)))
            yield parts.take("is_sequence", pattern, cloned(subject), kinds)
        case ast.MatchMapping(keys=keys):
            yield runtime("is_mapping", cloned(subject), ast.Constant(len(keys)))
            if keys:
                values = ast.Tuple([*map(cloned, keys)], ast.Load())
                yield parts.take("has_keys", pattern, cloned(subject), values)


def _kind_of_item(pattern: ast.pattern) -> str:
    """Return whether an item of a sequence is taken, "p", or not, "_"; "*" and "-" of a star."""
    match pattern:
        case ast.MatchStar(name=bound):
            return "-" if bound is None else "*"
        case ast.MatchAs(pattern=None, name=None):
            return "_"
    return "p"


def _bindings(
    pattern: ast.pattern, subject: ast.expr, parts: PartExpressions
) -> Iterator[ast.stmt]:
    """Yield the assignments of the names that a pattern binds."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            yield from _bindings(pattern.pattern, subject, parts)
        if pattern.name is not None:
            yield ast.Assign([name(pattern.name, store=True)], cloned(subject))
    if isinstance(pattern, ast.MatchStar) and pattern.name is not None:
        yield ast.Assign([name(pattern.name, store=True)], cloned(subject))
    for inner, part in _subpatterns(pattern, parts):
        yield from _bindings(inner, part, parts)
    if isinstance(pattern, ast.MatchMapping) and pattern.rest is not None:
        keys = ast.Tuple([*map(cloned, pattern.keys)], ast.Load())
        others = runtime("other_items", cloned(subject), keys)
        yield ast.Assign([name(pattern.rest, store=True)], others)


def _subpatterns(
    pattern: ast.pattern, parts: PartExpressions
) -> Iterator[tuple[ast.pattern, ast.expr]]:
    """Yield the patterns inside one, with the expressions they match against."""
    inner: list[ast.pattern] = []
    match pattern:
        case ast.MatchClass(patterns=positional, kwd_patterns=named):
            inner = [*positional, *named]
        case ast.MatchSequence(patterns=patterns) | ast.MatchMapping(patterns=patterns):
            inner = patterns
    for position, part in enumerate(inner):
        if _kind_of_item(part) not in "_-":
            yield part, parts.part(pattern, position)
