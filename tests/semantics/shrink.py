"""Programs made as small as they can be, with the same kind of difference."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from tests.semantics.world import PLAIN, Difference, Program, compare, run

# A change of a tree: the list or node to change, where, and what to put there.
Edit = tuple[Any, Any, Any]
_SECONDS = 3.0  # for one program
_COMPOUND = ast.If, ast.For, ast.While, ast.With, ast.Try


def shrink(program: Program, difference: Difference) -> Program:
    """Drop steps, statements and operands while the program differs in the same way."""
    look, errors = _signature(difference), _errors(program)

    def is_same(candidate: Program) -> bool:
        try:
            with _limited():
                if not _errors(candidate) <= errors:
                    return False
                other = compare(candidate, [difference.way])
        except (Exception, _Endless):
            return False  # no valid module, or a loop without end
        return other is not None and _signature(other) == look

    for smaller in (_without_step, _with_edit):
        program = _shrunk(program, smaller, is_same)
    return program


class _Endless(BaseException):
    """A program takes too long."""


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _errors(program: Program) -> set[str]:
    """Return the classes of errors that Python raises."""
    outcomes = [outcome[0] for outcome in run(program, PLAIN)]
    return {text.partition(":")[0] for kind, text in outcomes if kind == "raised"}


def _signature(difference: Difference) -> Any:
    """Return what has to stay: the kinds of both outcomes, and the words of a refusal."""
    words = difference.found if difference.kind == "refused" else difference.found[:40]
    if difference.kind == "different":
        words = difference.found[:9] if difference.found.startswith("('") else ""
    words = re.sub(r"`[^`]*`|<[^>]*>|\d+", "", words.partition(" at ")[0])
    is_result = difference.expected.startswith(("('value'", "('raised'"))
    return difference.kind, difference.expected[:9] if is_result else "text", words


def _shrunk(
    program: Program,
    smaller: Callable[[Program, int], Program | None],
    is_same: Callable[[Program], bool],
) -> Program:
    improved = True
    while improved:
        improved, number = False, 0
        while (candidate := smaller(program, number)) is not None:
            if str(candidate) != str(program) and is_same(candidate):
                program, improved = candidate, True
            else:
                number += 1
    return program


def _without_step(program: Program, number: int) -> Program | None:
    steps = list(program.steps)
    if number >= len(steps):
        return None
    del steps[number]
    return Program(program.name, program.source, steps)


def _with_edit(program: Program, number: int) -> Program | None:
    tree = ast.parse(program.source)
    edit = next(islice(_edits(tree), number, None), None)
    if edit is None:
        return None
    owner, place, replacement = edit
    if isinstance(owner, list):
        owner[place] = replacement
    else:
        setattr(owner, place, replacement)
    return Program(program.name, ast.unparse(ast.fix_missing_locations(tree)), program.steps)


def _edits(tree: ast.AST) -> Iterator[Edit]:
    for node in ast.walk(tree):
        for field in "body", "orelse", "finalbody", "handlers":
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                yield from _edits_of_statements(statements, field == "body")
    for node in ast.walk(tree):
        yield from _edits_of_expressions(node)


def _edits_of_statements(statements: list[Any], needed: bool) -> Iterator[Edit]:
    for k, statement in reversed(list(enumerate(statements))):
        is_only = len(statements) == 1 and needed
        yield statements, slice(k, k + 1), [ast.Pass()] if is_only else []
        if isinstance(statement, _COMPOUND):
            yield statements, slice(k, k + 1), statement.body
            if getattr(statement, "orelse", None):
                yield statements, slice(k, k + 1), statement.orelse


def _edits_of_expressions(node: ast.AST) -> Iterator[Edit]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.expr) and not isinstance(value, (ast.Name, ast.Constant)):
            for part in ast.iter_child_nodes(value):
                if isinstance(part, ast.expr) and not isinstance(part, ast.Starred):
                    yield node, field, part
            if field in ("left", "right", "value", "operand", "test"):
                yield node, field, ast.Constant(1.0)
        if isinstance(value, list) and len(value) > 1 and field in ("elts", "args", "targets"):
            for k, item in enumerate(value):
                if isinstance(item, ast.expr):
                    yield value, slice(k, k + 1), []
