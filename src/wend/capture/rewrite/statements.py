"""Rewriting of a function so that its control flow goes through the runtime.

Bodies of loops and branches are outlined as nested functions. They change the variables by
`nonlocal`, so closures stay live and statements keep the lines of the user's source.

    while test: body        def _wend_test1(): return test
                     ->     def _wend_body1(): nonlocal x; body
                            _wend_.while_(_wend_test1, _wend_body1, state of (x,))
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from wend.capture.rewrite.assignments import (
    rewrite_assignments,
    set_first_values,
    sets_first_values,
    split_targets,
)
from wend.capture.rewrite.branches import balance_elif_chains
from wend.capture.rewrite.expressions import Expressions, strip_annotations
from wend.capture.rewrite.handlers import Handlers
from wend.capture.rewrite.jumps import LoopFlags
from wend.capture.rewrite.loops import move_exits_out_of_else
from wend.capture.rewrite.returns import Returns, has_return
from wend.capture.rewrite.scope import Enclosing, mangled
from wend.capture.rewrite.sinking import sink_changes
from wend.capture.rewrite.syntax import (
    all_arguments,
    assign,
    at_first_line,
    declare_locals,
    definition,
    located,
    name,
    runtime,
    thunk,
)
from wend.capture.rewrite.walrus import NO_NAMES, Names, expand_binding_chains
from wend.capture.syntax.names import (
    RESOLVES_UNBOUND,
    changes,
    live_after,
    read,
    yields_in_control_flow,
)
from wend.capture.syntax.nodes import Kinds, by_kind, cloned, walk

# Statements that contain no others
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Assert, ast.Delete)


def _is_text(message: ast.expr | None) -> bool:
    """Return whether the message of an `assert` is a text of names, which nothing else sees."""
    match message:
        case None | ast.Constant(value=str()):
            return True
        case ast.JoinedStr(values=parts):
            return all(map(_is_text, parts))
        case ast.FormattedValue(value=ast.Name(), format_spec=spec):
            return _is_text(spec)
    return False


def rewrite_function(node: ast.FunctionDef, closure: Iterable[str] = ()) -> ast.FunctionDef:
    """Return the definition with its control flow rewritten, without decorators and annotations.

    `closure`: the names of its closure.
    """
    return _rewrite(node, [0], Enclosing(closure=frozenset(closure)))


# Expressions whose parts become functions, in which a `yield` would be another generator's
_DEFERRING = (
    *(ast.BoolOp, ast.IfExp, ast.Compare, ast.JoinedStr, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


Block = TypeVar("Block", bound=ast.stmt | ast.excepthandler)

# Expressions that do not see the variables of a class around them
_FUNCTIONS = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


# Functions that find the variables of plain Python, and are refused in captured code
_LOOK_AT_CALLER = frozenset({"locals", "vars", "dir", "eval", "exec"})


def rewrite_generator(
    node: ast.FunctionDef, counter: list[int], enclosing: Enclosing
) -> ast.FunctionDef | None:
    """Return the definition of a generator with its expressions rewritten; None if it cannot be.

    Its statements stay, since it is resumed between them.
    """
    kinds = by_kind(node)
    if ast.Match in kinds or any(map(_yields_or_binds, _deferring(kinds))):
        return None
    if any(variable.id in _LOOK_AT_CALLER for variable in kinds.get(ast.Name, ())):
        return None
    node = cloned(node)
    rewriter = _FunctionRewriter(node, by_kind(node), counter, enclosing)
    rewriter.expressions = expressions = _InGenerator(rewriter)
    arguments = strip_annotations(node.args, expressions)
    definition_ = definition(node.name, arguments, expressions.all_of(node.body))
    return ast.copy_location(definition_, node)


def _annotated(result: ast.FunctionDef, stmt: ast.FunctionDef) -> ast.FunctionDef:
    """Return a rewritten definition with the user's annotations, which stay as they are."""
    pairs = zip(all_arguments(result.args), all_arguments(stmt.args), strict=True)
    for argument, original in pairs:
        argument.annotation = original.annotation
    result.returns = stmt.returns
    return result


def _deferring(kinds: Kinds) -> Iterator[ast.AST]:
    return (part for kind in _DEFERRING for part in kinds.get(kind, ()))


def _yields_or_binds(node: ast.AST) -> bool:
    """Return whether an expression suspends the generator, or a chain of comparisons binds."""
    is_chain = isinstance(node, ast.Compare) and len(node.ops) > 1
    kinds = (ast.Yield, ast.YieldFrom, *([ast.NamedExpr] if is_chain else []))
    return any(isinstance(part, kinds) for part in walk(node))


class _InGenerator(Expressions):
    """Rewrites the expressions of a generator, and the functions and classes in it."""

    def __init__(self, rewriter: _FunctionRewriter) -> None:
        super().__init__(rewriter.scope)
        self.rewriter = rewriter
        self.depth = 1  # nothing is defined before a statement

    def visit_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        return self.rewriter.statement(node, set())

    visit_ClassDef = visit_FunctionDef

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.target = self.visit(node.target)
        node.value = node.value and self.rewritten(node.value)
        return node


class _WithoutParenthesized(ast.NodeTransformer):
    """Removes annotations such as `(g): float`, which bind nothing: `g` may be a global."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if _is_parenthesized(node) else node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node  # which evaluates its annotations


def _is_parenthesized(node: ast.AnnAssign) -> bool:
    return not node.simple and node.value is None and isinstance(node.target, ast.Name)


def _rewrite(node: ast.FunctionDef, counter: list[int], enclosing: Enclosing) -> ast.FunctionDef:
    node = balance_elif_chains(node)
    if any(isinstance(inner, ast.AnnAssign) and _is_parenthesized(inner) for inner in walk(node)):
        node = _WithoutParenthesized().visit(node)
    node = sink_changes(node, counter)
    if sets_first_values(kinds := by_kind(node)):
        node = set_first_values(node)
        kinds = by_kind(node)
    node = split_targets(expand_binding_chains(node, counter, kinds), kinds)
    return _FunctionRewriter(
        rewrite_assignments(node, kinds), kinds, counter, enclosing
    ).rewritten()


class _FunctionRewriter(Returns, Handlers):
    """Rewriting of one function."""

    def rewritten(self) -> ast.FunctionDef:
        node = self.node
        self.expressions.nested = self.nested
        body = self.block(move_exits_out_of_else(self.scope, node.body), set(), is_tail=True)
        bound_names = [p for p in self.scope.bound if p in self.scope.locals - {*self.scope.params}]
        local_names = [*bound_names, *self.scope.flags]
        self.expressions.nested = None  # defaults are computed outside of the function
        arguments = strip_annotations(node.args, self.expressions)
        result = definition(
            node.name, arguments, [*declare_locals(local_names), *body] or [ast.Pass()]
        )
        return ast.copy_location(result, node)

    def block(
        self, stmts: Sequence[ast.stmt], after: set[str], *, is_tail: bool = False
    ) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        stmts = self.split_heads(stmts)
        for position, (stmt, live_later) in enumerate(
            zip(stmts, live_after(stmts, after), strict=True)
        ):
            if is_tail and has_return(stmt):
                return rewritten + self.with_return(stmt, list(stmts[position + 1 :]))
            live = live_later | self.scope.always_live
            new = self.with_hoisted(stmt, functools.partial(self.statement, stmt, live))
            rewritten += [at_first_line(new_stmt, stmt) for new_stmt in new]
            if isinstance(stmt, _SIMPLE):
                definite = (
                    self.scope.definitely_bound(stmt.test)[0]
                    if isinstance(stmt, ast.Assert)
                    else NO_NAMES
                )
                rewritten += self.resolve_maybe_bound(
                    self.scope.maybe_bound([stmt]), definite, stmt
                )
        return rewritten

    def statement(
        self, stmt: ast.stmt, after: set[str], flags: LoopFlags | None = None
    ) -> list[ast.stmt]:
        if hasattr(stmt, RESOLVES_UNBOUND):
            return [stmt]
        match stmt:
            case ast.If():
                return self.if_(stmt, after)
            case ast.While():
                return self.while_(stmt, after, flags)
            case ast.For():
                return self.for_(stmt, after, flags)
            case ast.Match():
                return self.match(stmt, after)
            case ast.FunctionDef() if not yields_in_control_flow(stmt):
                return [self.nested(stmt)]
            case ast.ClassDef():
                return [self.nested_class(stmt)]
            case ast.FunctionDef():
                return [self.generator(stmt)]
            case ast.AsyncFunctionDef():
                return [stmt]
            case ast.AnnAssign(target=ast.Name(), value=None):
                return [ast.Pass()]
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                # Python forbids annotations of the `nonlocal` names of a rewritten body
                return self.statement(ast.copy_location(ast.Assign([target], value), stmt), after)
            case ast.ImportFrom(module=str() as module, level=0):
                names = [alias.asname or alias.name for alias in stmt.names]
                loads = [
                    assign(
                        bound, runtime("imported", ast.Constant(module), ast.Constant(alias.name))
                    )
                    for bound, alias in zip(names, stmt.names, strict=True)
                ]
                return [stmt, *located(loads, stmt)]
            case ast.Assert() if not __debug__:
                return [ast.Pass()]
            case ast.Assert(test=test, msg=message) if not _is_text(message):
                # What makes another message may fail, or have effects: in failing runs alone
                assert message is not None
                error = ast.Raise(runtime("assertion_error", message))
                return self.block(
                    located([ast.If(ast.UnaryOp(ast.Not(), test), [error], [])], stmt), after
                )
            case ast.Assert(test=test, msg=message):
                call = runtime(
                    "assert_", self.visit(test), thunk(self.visit(message or ast.Constant(None)))
                )
                return [ast.Expr(call)]
            case ast.Delete(targets=targets):
                deletions: list[ast.stmt] = []
                for deleted in targets:
                    if isinstance(deleted, ast.Name) and self.scope.may_be_unbound(deleted.id):
                        deletions.append(ast.Expr(self.visit(name(deleted.id))))  # it is bound
                    deletions.append(self.expressions.visit(cloned(ast.Delete([deleted]))))
                return deletions
            case ast.With(items=items, body=body):
                items = [
                    ast.withitem(
                        runtime("context", self.visit(item.context_expr)), item.optional_vars
                    )
                    for item in items
                ]
                resolutions = self.resolve_maybe_bound(
                    self.scope.maybe_bound(stmt.items), NO_NAMES, stmt
                )
                return [ast.With(items, self.block([*resolutions, *body], after))]
            case ast.Return(value=ast.expr() as value) if self.scope.outlives_some(
                self.scope.maybe_bound([value])
            ):
                temporary = self.scope.flag("value")
                resolutions = self.resolve_maybe_bound(
                    self.scope.maybe_bound([value]), NO_NAMES, stmt
                )
                final_return: list[ast.stmt] = [ast.Return(name(temporary))]
                return [assign(temporary, self.visit(value)), *resolutions, *final_return]
            case ast.Try():
                return self.try_(stmt, after)
            case ast.TryStar():
                return self.try_star(stmt, after)
        return [self.expressions.visit(cloned(stmt))]

    def nested(self, stmt: ast.FunctionDef) -> ast.FunctionDef:
        result = _rewrite(stmt, self.scope.counter, self.scope.inner())
        result.decorator_list = self.decorators(stmt)
        return _annotated(result, stmt)

    def generator(self, stmt: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a generator, which is resumed piecewise, as far as that is possible."""
        result = rewrite_generator(stmt, self.scope.counter, self.scope.inner())
        if result is None:
            return stmt
        result.decorator_list = self.decorators(stmt)
        return _annotated(result, stmt)

    def decorators(self, stmt: ast.FunctionDef | ast.ClassDef) -> list[ast.expr]:
        """Rewrite decorators, which are called."""
        return [
            ast.copy_location(runtime("call", self.visit(decorator)), decorator)
            for decorator in stmt.decorator_list
        ]

    def nested_class(self, stmt: ast.ClassDef) -> ast.ClassDef:
        """Rewrite the bases, the methods and the values of a class."""
        result = copy.copy(stmt)
        bound = frozenset(changes(stmt.body).bound)
        with self.expressions.in_class(bound):
            result.bases = [
                base
                if isinstance(base, ast.Starred)
                else ast.copy_location(runtime("derive_from", self.visit(base)), base)
                for base in stmt.bases
            ]
            result.keywords = [
                ast.copy_location(
                    ast.keyword(keyword.arg, runtime("derive_from", self.visit(keyword.value))),
                    keyword,
                )
                if keyword.arg == "metaclass"
                else keyword
                for keyword in stmt.keywords
            ]
            result.decorator_list = self.decorators(stmt)
            result.body = [self.member(member, stmt.name, bound) for member in stmt.body]
        return result

    def member(self, stmt: ast.stmt, owner: str, bound: Names) -> ast.stmt:
        """Rewrite a statement of a class, whose control flow Python runs."""
        match stmt:
            case ast.FunctionDef() if not yields_in_control_flow(stmt):
                return self.nested(mangled(stmt, owner))
            case ast.FunctionDef():
                return self.generator(mangled(stmt, owner))
            case ast.ClassDef():
                return self.nested_class(stmt)
            case (
                ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) | ast.Expr(value)
            ):
                result = copy.copy(stmt)
                result.value = self.value_in_class(value, owner, bound)
                return result
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try() | ast.TryStar():
                return self.blocks_in_class(stmt, owner, bound)
        return stmt

    def value_in_class(self, value: ast.expr, owner: str, bound: Names) -> ast.expr:
        """Rewrite an expression, in which functions do not see the variables of the class."""
        result = self.visit(mangled(value, owner))
        functions = [part for part in walk(result) if isinstance(part, _FUNCTIONS)]
        return value if read(functions) & bound else result

    def blocks_in_class(self, stmt: Block, owner: str, bound: Names) -> Block:
        """Rewrite the statements in the blocks of one, and what decides between them."""
        rewriters: dict[str, Callable[[Any, str, Names], Any]] = {
            **dict.fromkeys(("test", "iter"), self.value_in_class),
            **dict.fromkeys(("body", "orelse", "finalbody"), self.member),
            "handlers": self.blocks_in_class,
        }
        result = copy.copy(stmt)
        for field, value in ast.iter_fields(stmt):
            if (run := rewriters.get(field)) is not None:
                parts = [run(part, owner, bound) for part in value] if type(value) is list else None
                setattr(result, field, run(value, owner, bound) if parts is None else parts)
        return result
