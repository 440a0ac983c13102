"""`if`, and `match` on values, classes and sequences of known length.

Of a long chain of `elif`, the tests choose the number of an arm, and a tree of `if` runs that arm:

    if a: A                       arm = -1
    elif b: B                     if a: arm = 0
    elif c: C             ->      elif b: arm = 1
    …                             if arm < 0:
    else: Z                           if c: arm = 2
                                      …
                                  if arm < 2: … else: …

Each `elif` is nested in the one before, so that the rewriting, the recording and the graph of a
chain as it stands grow with the square of its length. Like this they grow with the length.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence

from wend.capture.rewrite.blocks import Blocks
from wend.capture.rewrite.patterns import PartExpressions, case_as_if, is_value_match
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import assign, located, name, runtime, strings
from wend.capture.syntax.names import PREFIX, changed
from wend.capture.syntax.nodes import by_kind

_LONG = 100  # arms: shorter chains are recorded as they stand
_FIELDS = ("body", "orelse", "finalbody")
_GROUP = 16  # tests that are nested in each other


class Branches(Blocks):
    """Rewriting of branches: their arms become functions."""

    def if_(self, stmt: ast.If, after: set[str]) -> list[ast.stmt]:
        if isinstance(stmt.test, ast.Constant):
            return self.block(stmt.body if stmt.test.value else stmt.orelse, after)
        out: list[ast.stmt] = []
        arms, arm_names = self.arms(stmt), []
        for kind, body in zip(("then", "else"), arms, strict=True):
            arm_names.append(self.scope.new(kind))
            out.append(self.scope.function(arm_names[-1], self.block(body, after), body))
        nodes = [*arms[0], *arms[1]]
        live = strings(self.scope.carried_paths(changed(nodes), after))
        setter, state = state_of(self.scope, nodes, None)
        call = runtime("if_", self.expressions.test(stmt.test), *map(name, arm_names), live, state)
        return [*out, setter, ast.Expr(call)]

    def match(self, stmt: ast.Match, after: set[str]) -> list[ast.stmt]:
        if is_value_match(stmt):
            branches = self.match_as_if(stmt)
            return self.block(balanced(branches, lambda: self.scope.flag("arm")), after)
        cases = [
            ast.match_case(c.pattern, c.guard and self.visit(c.guard), self.block(c.body, after))
            for c in stmt.cases
        ]
        subject = self.visit(stmt.subject)
        if ast.MatchClass in by_kind(stmt):
            subject = runtime("decomposed", subject)
        return [ast.Match(subject, cases)]

    def match_as_if(self, stmt: ast.Match) -> list[ast.stmt]:
        """Rewrite a `match` to a chain of `if`."""
        subject, taken = self.scope.flag("subject"), self.scope.flag("taken")
        branches, parts = list[ast.stmt](), PartExpressions(taken)
        for case in reversed(stmt.cases):
            branches = [case_as_if(case, subject, parts, branches)]
        return located(
            [assign(subject, stmt.subject), assign(taken, runtime("taken_parts")), *branches], stmt
        )


def balance_elif_chains(node: ast.FunctionDef) -> ast.FunctionDef:
    """Replace the long chains of a function, in place; return it."""
    numbers = itertools.count()
    blocks = [node.body]
    for block in blocks:  # grows during the iteration
        for statement in block:
            match statement:
                case ast.If():
                    blocks += _arms(_links(statement))
                case _:
                    blocks += _blocks(statement)
        block[:] = balanced(block, lambda: f"{PREFIX}arm{next(numbers)}")
    return node


def _blocks(statement: ast.AST) -> list[list[ast.stmt]]:
    """Return the lists of statements directly below one."""
    inner = [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    nodes = [statement, *inner]
    fields = [getattr(node, field, None) for node in nodes for field in _FIELDS]
    return [field for field in fields if isinstance(field, list)]


def balanced(statements: Sequence[ast.stmt], new_name: Callable[[], str]) -> list[ast.stmt]:
    """Return the statements, the long chains directly among them replaced.

    `new_name` makes the name of a variable for the number of an arm.
    """
    result: list[ast.stmt] = []
    for statement in statements:
        links = _links(statement) if isinstance(statement, ast.If) else []
        result += _balance(links, new_name()) if len(links) > _LONG else [statement]
    return result


def _links(chain: ast.If) -> list[ast.If]:
    """Return the `if` and each `elif` of it."""
    links = [chain]
    for link in links:  # grows during the iteration
        match link.orelse:
            case [ast.If() as following]:
                links.append(following)
    return links


def _arms(links: Sequence[ast.If]) -> list[list[ast.stmt]]:
    """Return the arms of a chain, that of `else` last."""
    return [*(link.body for link in links), links[-1].orelse]


def _balance(links: Sequence[ast.If], arm: str) -> list[ast.stmt]:
    result: list[ast.stmt] = [assign(arm, _number(-1))]
    for first in range(0, len(links), _GROUP):
        choice: list[ast.stmt] = []
        if first + _GROUP >= len(links):
            choice = [assign(arm, _number(len(links)))]
        for k in reversed(range(first, min(first + _GROUP, len(links)))):
            chosen = located([assign(arm, _number(k))], links[k])
            choice = located([ast.If(links[k].test, chosen, choice)], links[k])
        result += choice if not first else [ast.If(_is_below(arm, 0), choice, [])]
    return located([*result, *_tree(arm, 0, _arms(links))], links[0])


def _tree(arm: str, first: int, arms: Sequence[list[ast.stmt]]) -> list[ast.stmt]:
    """Run the arm of a number, of which `first` is the smallest."""
    if len(arms) == 1:
        return arms[0] or [ast.Pass()]
    middle = len(arms) // 2
    lower, upper = arms[:middle], arms[middle:]
    origin = arms[middle - 1][0]
    test = _is_below(arm, first + middle)
    branches = _tree(arm, first, lower), _tree(arm, first + middle, upper)
    return located([ast.If(test, *branches)], origin)


def _number(value: int) -> ast.expr:
    # As Python writes negative numbers
    literal = ast.Constant(abs(value))
    return literal if value >= 0 else ast.UnaryOp(ast.USub(), literal)


def _is_below(arm: str, bound: int) -> ast.expr:
    return ast.Compare(name(arm), [ast.Lt()], [_number(bound)])
