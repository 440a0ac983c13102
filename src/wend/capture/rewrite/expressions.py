"""Operators that decide, and calls, by way of the runtime."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence

from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.subscripts import is_known_key, key_of
from wend.capture.rewrite.syntax import is_runtime, name, runtime, thunk
from wend.capture.rewrite.walrus import NONE, Names, targets
from wend.capture.syntax.nodes import Transformer


class Expressions(Transformer):
    """Rewrites operators that decide, and calls."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.hoisted: list[ast.stmt] = []  # functions to make before the statement
        self.depth = 0
        self.perhaps: Names = NONE  # what the statement may leave unbound
        self.sure: Names = NONE  # what is bound nevertheless where the expression runs

    @contextlib.contextmanager
    def of(self, perhaps: Names) -> Iterator[None]:
        """Rewrite the expressions of one statement, which may leave these names unbound."""
        outer = self.perhaps, self.sure
        self.perhaps, self.sure = perhaps, NONE
        yield
        self.perhaps, self.sure = outer

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.perhaps or not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self.sure:
            return ast.copy_location(runtime("surely", node), node)
        return ast.copy_location(runtime("known", node, ast.Constant(node.id)), node)

    def rewritten_after(self, node: ast.expr, sure: Names) -> ast.expr:
        """An expression that runs only where these names are bound."""
        outer, self.sure = self.sure, self.sure | sure
        new = self.rewritten(node)
        self.sure = outer
        return new

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        is_and = isinstance(node.op, ast.And)
        first, *rest = node.values
        following = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        ast.copy_location(following, rest[0])
        sure = self.scope.surely_bound(first)[0 if is_and else 1]
        left = self.rewritten(first)
        if not _binds(following):
            right: list[ast.expr] = [thunk(self.rewritten_after(following, sure))]
        elif self.can_hoist:
            right = [*self.hoist((following, sure))]
        else:
            right_side = self.rewritten_after(following, sure)
            return ast.copy_location(
                ast.BoolOp(node.op, [runtime("decided", left), right_side]), node
            )
        return ast.copy_location(runtime("and_" if is_and else "or_", left, *right), node)

    def rewritten(self, node: ast.expr) -> ast.expr:
        new = self.visit(node)
        assert isinstance(new, ast.expr)
        return new

    def hoist(self, *operands: tuple[ast.expr, Names]) -> tuple[ast.expr, ...]:
        """Functions that give values that bind names, and the state of these names.

        Each value comes with the names that are surely bound where it runs.
        """
        scope = self.scope
        functions = []
        values = [value for value, _ in operands]
        for value, sure in operands:
            function = scope.new("value")
            new = self.rewritten_after(value, sure)
            body = [ast.copy_location(ast.Return(new), value)]
            made = scope.function(function, body, [ast.Expr(value)])
            self.hoisted.append(ast.copy_location(made, value))
            functions.append(name(function))
        setter, state = state_of(scope, values, None)
        self.hoisted.append(ast.copy_location(setter, values[0]))
        return (*functions, state)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return runtime("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mod) or _is_number(node.left) or _is_number(node.right):
            return node
        return ast.copy_location(runtime("remainder", node.left, node.right), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        holds, fails = self.scope.surely_bound(node.test)
        test = self.rewritten(node.test)
        if self.can_hoist and (_binds(node.body) or _binds(node.orelse)):
            arms = self.hoist((node.body, holds), (node.orelse, fails))
            return runtime("if_expression", test, *arms)
        body = self.rewritten_after(node.body, holds)
        orelse = self.rewritten_after(node.orelse, fails)
        if _binds(node.body) or _binds(node.orelse):
            return ast.copy_location(ast.IfExp(runtime("decided", test), body, orelse), node)
        return runtime("if_expression", test, thunk(body), thunk(orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and not _asks_wend(node.ops[0], node.comparators[0]):
            self.generic_visit(node)
            return node
        self.generic_visit(node)
        operators = [ast.Constant(type(op).__name__) for op in node.ops]
        links = [
            ast.Tuple([op, thunk(right)], ast.Load())
            for op, right in zip(operators[1:], node.comparators[1:], strict=True)
        ]
        return runtime("compare", node.left, operators[0], node.comparators[0], *links)

    @property
    def can_hoist(self) -> bool:
        """Whether a function made before the statement can see the names of an expression."""
        return self.depth == 0

    def _visit_scope(self, node: ast.expr) -> ast.expr:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = _gone_through(node.iter)
        node.ifs = [ast.copy_location(runtime("filtered", test), test) for test in node.ifs]
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _gone_through(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            node.value = _gone_through(node.value)
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = _visit_scope

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return ast.copy_location(runtime("made", self._visit_scope(node)), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or is_known_key(node.slice):
            return node
        return runtime("get_item", node.value, key_of(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not self.may_be_property(node):
            return node
        got = runtime("attribute", node.value, ast.Constant(node.attr))
        return ast.copy_location(got, node)

    def may_be_property(self, node: ast.Attribute) -> bool:
        """Whether an attribute belongs to something of the function, not to a module or class."""
        owner = node.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        return not isinstance(owner, ast.Name) or owner.id in self.scope.locals

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """An f-string, which may be printed with numbers that only the run knows."""
        if not any(isinstance(part, ast.FormattedValue) for part in node.values):
            return node
        parts = [
            self._place(part) if isinstance(part, ast.FormattedValue) else part
            for part in node.values
        ]
        return ast.copy_location(runtime("text", *parts), node)

    def _place(self, part: ast.FormattedValue) -> ast.expr:
        conversion = None if part.conversion == -1 else chr(part.conversion)
        spec = ast.Constant("") if part.format_spec is None else self.rewritten(part.format_spec)
        value = self.rewritten(part.value)
        return ast.Tuple([value, ast.Constant(conversion), spec], ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Attribute):
            # What is called is a method; it is captured when it is called.
            owner = self.rewritten(node.func.value)
            method = ast.copy_location(ast.Attribute(owner, node.func.attr, ast.Load()), node.func)
            node.func, called = ast.Constant(None), method
            self.generic_visit(node)
            node.func = called
        else:
            self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and is_runtime(node.func.value):
            return node  # put in before
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            first = self.scope.params[:1]
            node.args = [name("__class__"), *map(name, first)]
            return node
        node.func = ast.copy_location(runtime("call", node.func), node.func)
        return node


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float, complex))


def _gone_through(value: ast.expr) -> ast.expr:
    """What items are taken from: an iterator is told of it."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Constant)):
        return value
    return ast.copy_location(runtime("gone_through", value), value)


def _binds(value: ast.expr) -> bool:
    return bool(targets(value))


def without_annotations(arguments: ast.arguments, expressions: Expressions) -> ast.arguments:
    """Arguments with their defaults rewritten, without annotations."""

    def plain(argument: ast.arg | None) -> ast.arg | None:
        return None if argument is None else ast.copy_location(ast.arg(argument.arg), argument)

    def each(found: Sequence[ast.arg]) -> list[ast.arg]:
        return [new for argument in found if (new := plain(argument)) is not None]

    return ast.arguments(
        each(arguments.posonlyargs),
        each(arguments.args),
        plain(arguments.vararg),
        each(arguments.kwonlyargs),
        [default and expressions.visit(default) for default in arguments.kw_defaults],
        plain(arguments.kwarg),
        [expressions.visit(default) for default in arguments.defaults],
    )


def _asks_wend(operator: ast.cmpop, right: ast.expr) -> bool:
    """Whether a comparison is more than an operator of the operands."""
    if isinstance(operator, (ast.Is, ast.IsNot)):
        return not isinstance(right, ast.Constant)  # `x is None` is Python's
    return isinstance(operator, (ast.In, ast.NotIn))
