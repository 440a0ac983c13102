"""Rewriting of calls, and of operators that depend on a truth value, to runtime calls."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TypeGuard

from wend.capture.rewrite.assignments import key_expression
from wend.capture.rewrite.comprehensions import (
    SOURCE,
    bound_in,
    filter_function,
    is_filtered,
    searched,
)
from wend.capture.rewrite.scope import Scope
from wend.capture.rewrite.state import state_of
from wend.capture.rewrite.syntax import (
    is_runtime,
    name,
    operation,
    runtime,
    thunk,
)
from wend.capture.rewrite.walrus import NO_NAMES, Names
from wend.capture.syntax.names import PREFIX, container_path, path_of
from wend.capture.syntax.nodes import Transformer, cloned

# Builtins that take all items of a generator expression before they return
_EAGER = frozenset({"list", "max", "min", "sorted", "sum", "tuple"})

# Builtins that only look at the items of their argument
_READERS = frozenset({"len", "sum", "max", "min", "any", "all"})

# Expressions that are functions for Python, which name what they do not find otherwise
_FUNCTIONS: tuple[type[ast.expr], ...] = (ast.Lambda, ast.GeneratorExp)
if sys.version_info < (3, 12):  # which inlines comprehensions
    _FUNCTIONS += (ast.ListComp, ast.SetComp, ast.DictComp)

# On an `and` or `or` of which only the truth is asked: its sides may be of different types
ASKS_TRUTH = f"{PREFIX}asks_truth"

# Functions of the runtime that store an item, or read it before: the argument that is the owner
_OWNERS = {"store_item": 1, "item_before": 0}


class Expressions(Transformer):
    """Rewrites calls, and operators that depend on a truth value."""

    def __init__(
        self, scope: Scope, nested: Callable[[ast.FunctionDef], ast.FunctionDef] | None = None
    ) -> None:
        self.scope = scope
        self.nested = nested  # rewrites a function in this one
        self.hoisted: list[ast.stmt] = []  # functions to define before the statement
        self.is_in_generator = self.is_in_function = False
        self.depth = 0
        self.maybe_bound: Names = NO_NAMES  # names that the statement may leave unbound
        self.definite: Names = NO_NAMES  # of these, bound where the expression runs
        self.comprehended: Names = NO_NAMES  # bound by lambdas and comprehensions around it

    @contextlib.contextmanager
    def of(self, maybe_bound: Names) -> Iterator[None]:
        """Rewrite the expressions of one statement, which may leave these names unbound."""
        saved = self.maybe_bound, self.definite
        self.maybe_bound, self.definite = maybe_bound, NO_NAMES
        yield
        self.maybe_bound, self.definite = saved

    @contextlib.contextmanager
    def in_class(self, bound: Names) -> Iterator[None]:
        """Rewrite expressions in the body of a class, which binds these names."""
        saved, self.comprehended = self.comprehended, self.comprehended | bound
        self.depth += 1
        yield
        self.depth -= 1
        self.comprehended = saved

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.loaded(node)

    def loaded(self, node: ast.Name, *is_base: ast.expr) -> ast.expr:
        """Rewrite a name; what comes from outside is reported where it is loaded."""
        if not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self.maybe_bound:
            if node.id in self.definite:
                return ast.copy_location(runtime("surely", node), node)
            return ast.copy_location(runtime("known", node, ast.Constant(node.id)), node)
        if self.scope.may_be_unbound(node.id) and node.id not in self.comprehended:
            is_free = self.is_in_function or node.id not in self.scope.locals
            what = ast.Constant(node.id), ast.Constant(is_free)
            check = runtime("bound", thunk(node), *what)
            return ast.copy_location(check, node)
        origin = None if node.id in self.comprehended else self.scope.origin(node.id)
        if origin is None:
            return node
        load = runtime(f"load_{origin}", node, ast.Constant(node.id), *is_base)
        return ast.copy_location(load, node)

    def base(self, node: ast.expr) -> ast.expr:
        """Rewrite a value of which only an attribute or an item is read."""
        is_base = ast.Constant(True)
        match node:
            case ast.Name():
                return self.loaded(node, is_base)
            case ast.Attribute(ctx=ast.Load()):
                return self.attribute(node, is_base)
            case ast.Subscript(ctx=ast.Load()):
                return self.subscript(node, is_base)
        return self.rewritten(node)

    def rewritten_where_bound(self, node: ast.expr, definite: Names) -> ast.expr:
        """Rewrite an expression that runs only where these names are bound."""
        saved, self.definite = self.definite, self.definite | definite
        result = self.rewritten(node)
        self.definite = saved
        return result

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        is_and = isinstance(node.op, ast.And)
        first, *remaining = node.values
        following = remaining[0] if len(remaining) == 1 else ast.BoolOp(node.op, remaining)
        ast.copy_location(following, remaining[0])
        definite = self.scope.definitely_bound(first)[0 if is_and else 1]
        left, asks_truth = self.rewritten(first), hasattr(node, ASKS_TRUTH)
        if asks_truth:
            setattr(following, ASKS_TRUTH, True)
            left = _truth_of(left, first)
        if not self.scope.binds(following):
            value = self.rewritten_where_bound(following, definite)
            right: list[ast.expr] = [thunk(_truth_of(value, following) if asks_truth else value)]
        elif self.can_hoist:
            right = [*self.hoist((following, definite))]
        else:
            right_side = self.rewritten_where_bound(following, definite)
            return ast.copy_location(
                ast.BoolOp(node.op, [runtime("decided", left), right_side]), node
            )
        return ast.copy_location(runtime("and_" if is_and else "or_", left, *right), node)

    def rewritten(self, node: ast.expr) -> ast.expr:
        result = self.visit(node)
        assert isinstance(result, ast.expr)
        return result

    def hoist(self, *operands: tuple[ast.expr, Names]) -> tuple[ast.expr, ...]:
        """Outline values that bind names as functions, and return these and the state of the names.

        Each value comes with the names that are definitely bound where it runs.
        """
        scope = self.scope
        functions = []
        values = [value for value, _ in operands]
        for value, definite in operands:
            function = scope.new("value")
            result = self.rewritten_where_bound(value, definite)
            body = [ast.copy_location(ast.Return(result), value)]
            definition = scope.function(function, body, [ast.Expr(value)])
            self.hoisted.append(ast.copy_location(definition, value))
            functions.append(name(function))
        setter, state = state_of(scope, values, None)
        self.hoisted.append(ast.copy_location(setter, values[0]))
        return (*functions, state)

    def test(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression of which only the truth is asked."""
        _ask_truth(node)
        return self.rewritten(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            _ask_truth(node.operand)
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return runtime("not_", node.operand)
        if isinstance(node.operand, ast.Constant) or self.is_in_generator:
            return node
        return operation(node, node.op, node.operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        if self.is_in_generator and not isinstance(node.op, ast.Mod):
            return node
        return operation(node, node.op, node.left, node.right)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        holds, fails = self.scope.definitely_bound(node.test)
        test = self.test(node.test)
        if self.can_hoist and (self.scope.binds(node.body) or self.scope.binds(node.orelse)):
            return runtime(
                "if_expression", test, *self.hoist((node.body, holds), (node.orelse, fails))
            )
        body = self.rewritten_where_bound(node.body, holds)
        orelse = self.rewritten_where_bound(node.orelse, fails)
        if self.scope.binds(node.body) or self.scope.binds(node.orelse):
            return ast.copy_location(ast.IfExp(runtime("decided", test), body, orelse), node)
        return runtime("if_expression", test, thunk(body), thunk(orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and not _needs_runtime(node.left, node.ops[0], node.comparators[0]):
            self.generic_visit(node)
            if self.is_in_generator:
                return node
            return operation(node, node.ops[0], node.left, node.comparators[0])
        self.generic_visit(node)
        operators = [ast.Constant(type(op).__name__) for op in node.ops]
        links = [
            ast.Tuple([op, thunk(right)], ast.Load())
            for op, right in zip(operators[1:], node.comparators[1:], strict=True)
        ]
        compared = runtime("compare", node.left, operators[0], node.comparators[0], *links)
        return ast.copy_location(compared, node)

    @property
    def can_hoist(self) -> bool:
        """Whether a function defined before the statement sees the names of an expression."""
        return self.depth == 0

    def _visit_scope(self, node: ast.expr) -> ast.expr:
        saved = self.comprehended, self.is_in_function
        self.depth += 1
        put_back = self._evaluated_around(node)
        self.comprehended |= bound_in(node)
        self.is_in_function |= isinstance(node, _FUNCTIONS)
        self.generic_visit(node)
        put_back()
        self.depth -= 1
        self.comprehended, self.is_in_function = saved
        return node

    def _evaluated_around(self, node: ast.expr) -> Callable[[], None]:
        """Rewrite what the code around a scope evaluates; return how it is put back into it."""
        if isinstance(node, ast.Lambda):
            arguments = node.args
            kw_defaults = [default and self.visit(default) for default in arguments.kw_defaults]
            defaults = [self.visit(default) for default in arguments.defaults]
            arguments.defaults = []
            arguments.kw_defaults = [None] * len(kw_defaults)

            def put_back() -> None:
                arguments.defaults, arguments.kw_defaults = defaults, kw_defaults

            return put_back
        first: ast.comprehension = node.generators[0]  # type: ignore[attr-defined]
        source = self.visit(first.iter)
        first.iter = ast.copy_location(ast.Constant(None), first.iter)

        def put_source() -> None:
            first.iter = source if first.is_async else _iterated(source, "gone_through")

        return put_source

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = _iterated(node.iter, "gone_through")
        node.ifs = [ast.copy_location(runtime("filtered", test), test) for test in node.ifs]
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        if not self.can_hoist or self.nested is None or not is_filtered(node):
            return self._visit_scope(node)
        return ast.copy_location(runtime("filtered_list", *self._by_python_or_loop(node)), node)

    def _by_python_or_loop(self, node: ast.ListComp | ast.GeneratorExp) -> list[ast.expr]:
        """Return what it goes through, itself and its loop as functions of that, and its state."""
        assert self.nested is not None
        function = self.scope.new("filter")
        plain = cloned(node)
        source = self.rewritten(plain.generators[0].iter)
        setter, state = state_of(self.scope, [node], None)
        loop = filter_function(function, node)
        self.hoisted += [self.nested(loop), ast.copy_location(setter, node)]
        plain.generators[0].iter = ast.copy_location(name(SOURCE), source)
        arguments = ast.arguments([], [ast.arg(SOURCE)], None, [], [], None, [])
        is_list = isinstance(plain, ast.ListComp)
        by_python = self._visit_scope(plain) if is_list else self.rewritten(plain)
        return [source, ast.Lambda(arguments, by_python), name(function), state]

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        self.generic_visit(node)
        if node.arg is None:
            node.value = ast.copy_location(runtime("consumed", node.value), node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _iterated(node.value, "spread")
        return node

    def visit_Delete(self, node: ast.Delete) -> ast.stmt:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                target.value = runtime("item_owner", target.value)
            elif isinstance(target, ast.Attribute) and path_of(target.value) is None:
                attribute = ast.Constant(target.attr)
                target.value = runtime("deleted_from", target.value, attribute)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            node.value = _iterated(node.value, "unpacked")
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return self._visit_scope(node)

    def _visit_keyed(self, node: ast.expr) -> ast.expr:
        return ast.copy_location(runtime("keyed", self._visit_scope(node)), node)

    visit_SetComp = visit_DictComp = _visit_keyed

    def visit_Set(self, node: ast.Set) -> ast.expr:
        self.generic_visit(node)
        for item in node.elts:
            if isinstance(item, ast.Starred) and isinstance(item.value, ast.Call):
                # A set asks no object for its length
                item.value = ast.copy_location(runtime("gone_through", *item.value.args), item)
        is_constant = all(isinstance(item, ast.Constant) for item in node.elts)
        return node if is_constant else ast.copy_location(runtime("keyed", node), node)

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        self.generic_visit(node)
        is_constant = all(key is None or isinstance(key, ast.Constant) for key in node.keys)
        return node if is_constant else ast.copy_location(runtime("keyed", node), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        # It runs piece by piece, as plain Python, and calls in it count as effects
        saved, self.is_in_generator = self.is_in_generator, True
        visited = self._visit_scope(node)
        self.is_in_generator = saved
        return ast.copy_location(runtime("made", visited), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return self.subscript(node)

    def subscript(self, node: ast.Subscript, *is_base: ast.expr) -> ast.expr:
        """Rewrite `x[k]`."""
        base = self.row if isinstance(node.ctx, ast.Load) else self.base
        node.value, node.slice = base(node.value), self.rewritten(node.slice)
        if isinstance(node.ctx, ast.Del) and not isinstance(node.value, ast.Name):
            node.value = runtime("mutated", node.value)
        if not isinstance(node.ctx, ast.Load):
            return node
        load = runtime("get_item", node.value, key_expression(node.slice), *is_base)
        return ast.copy_location(load, node)

    def row(self, node: ast.expr) -> ast.expr:
        """Rewrite a value of which only an item is read or stored."""
        if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
            return self.base(node)
        value, key = self.row(node.value), self.rewritten(node.slice)
        return ast.copy_location(runtime("get_row", value, key_expression(key)), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.attribute(node)

    def attribute(self, node: ast.Attribute, *is_base: ast.expr) -> ast.expr:
        """Rewrite `x.a`."""
        if is_runtime(node.value):
            return node
        node.value = self.base(node.value)
        if isinstance(node.ctx, ast.Store):
            node.value = runtime("attribute_target", node.value, ast.Constant(node.attr))
        if not isinstance(node.ctx, ast.Load):
            return node
        load = runtime("attribute", node.value, ast.Constant(node.attr), *is_base)
        return ast.copy_location(load, node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """Rewrite an f-string, which may be printed with numbers known only at run time."""
        if not any(isinstance(part, ast.FormattedValue) for part in node.values):
            return node
        parts = [
            self._format_field(part) if isinstance(part, ast.FormattedValue) else part
            for part in node.values
        ]
        return ast.copy_location(runtime("text", *parts), node)

    def _format_field(self, part: ast.FormattedValue) -> ast.expr:
        conversion = None if part.conversion == -1 else chr(part.conversion)
        spec = ast.Constant("") if part.format_spec is None else self.rewritten(part.format_spec)
        return runtime("formatted", self.rewritten(part.value), ast.Constant(conversion), spec)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and not node.args:
            self_name = self.scope.params[:1]
            node.args = [name("__class__"), *map(name, self_name)]
            return node
        items = node.args[0] if node.args else None
        if isinstance(items, ast.GeneratorExp) and self._searches(node, items):
            node.args = [searched(node.func, items)]
        elif isinstance(items, ast.GeneratorExp) and self._takes_all_items(node, items):
            parts = self._by_python_or_loop(items)
            node.args = node.args[1:]
            self.generic_visit(node)
            node.args = [node.func, *parts, *node.args]
            node.func = runtime("filtered_call").func
            return node
        if isinstance(node.func, ast.Attribute):
            if is_runtime(node.func.value):  # inserted by an earlier rewrite
                position = _OWNERS.get(node.func.attr)
                if position is None:
                    self.generic_visit(node)
                    return node
                rewrites = [self.row if k == position else self.rewritten for k in range(3)]
                node.args = [rewrite(x) for rewrite, x in zip(rewrites, node.args, strict=False)]
                return node
            # The callee is a method; it is captured when it is called.
            match node.func.value:
                case ast.Subscript(value=of, slice=key) if not isinstance(key, ast.Slice):
                    return self._method_call(node, "call_at", of, key)
                case ast.Call(ast.Attribute(value=of, attr="setdefault"), [key, default]):
                    return self._method_call(node, "call_at_default", of, key, default)
            owner = self.base(node.func.value)
            method = runtime("method", owner, ast.Constant(node.func.attr))
            callee = ast.copy_location(method, node.func)
            node.func = ast.Constant(None)
            self.generic_visit(node)
            node.func = callee
        elif _takes_an_item(node):
            item = node.args[0]
            assert isinstance(item, ast.Subscript)
            fun, owner = self.rewritten(node.func), self.row(item.value)
            key = key_expression(self.rewritten(item.slice))
            return ast.copy_location(runtime("call_of_item", fun, owner, key), node)
        else:
            self.generic_visit(node)
        node.func = ast.copy_location(runtime("call", node.func), node.func)
        return node

    def _method_call(self, node: ast.Call, function: str, *parts: ast.expr) -> ast.expr:
        """Rewrite the call of a method of an item: the run may know which item that is."""
        assert isinstance(node.func, ast.Attribute)
        label = container_path(parts[0]) or "a container"
        names = ast.Constant(node.func.attr), ast.Constant(label)
        owner, *others = parts
        of = self.row(owner) if function == "call_at" else self.base(owner)
        rewritten = of, *(key_expression(self.rewritten(part)) for part in others)
        callee = ast.copy_location(runtime(function, *rewritten, *names), node.func)
        node.func = ast.Constant(None)
        self.generic_visit(node)
        node.func = callee
        return node

    def _takes_all_items(self, node: ast.Call, items: ast.GeneratorExp) -> bool:
        """Return whether a builtin may take all items of a generator expression with filters."""
        is_free = self.can_hoist and self._is_builtin(node.func, _EAGER)
        return is_free and self.nested is not None and is_filtered(items)

    def _searches(self, node: ast.Call, items: ast.GeneratorExp) -> bool:
        """Return whether it is `any` or `all` of a generator expression with filters at its end."""
        *outer, last = items.generators
        is_plain = not any(generator.ifs or generator.is_async for generator in outer)
        is_alone = len(node.args) == 1 and not node.keywords
        is_search = is_alone and self._is_builtin(node.func, ("any", "all"))
        return is_search and is_plain and bool(last.ifs) and not last.is_async

    def _is_builtin(self, node: ast.expr, names: Container[str]) -> bool:
        """Return whether an expression is one of these names, which the function does not bind."""
        if not isinstance(node, ast.Name) or node.id not in names:
            return False
        return self.scope.origin(node.id) == "global"


def _takes_an_item(node: ast.Call) -> bool:
    """Return whether a builtin is called with an item alone."""
    is_reader = isinstance(node.func, ast.Name) and node.func.id in _READERS
    return is_reader and not node.keywords and len(node.args) == 1 and _is_item(node.args[0])


def _is_item(node: ast.expr) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)


def _iterated(value: ast.expr, way: str) -> ast.expr:
    """Wrap a value that items are taken from, so that an iterator is checked."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Constant)):
        return value
    return ast.copy_location(runtime(way, value), value)


def strip_annotations(arguments: ast.arguments, expressions: Expressions) -> ast.arguments:
    """Return parameters with rewritten defaults and without annotations."""

    def strip(argument: ast.arg | None) -> ast.arg | None:
        return None if argument is None else ast.copy_location(ast.arg(argument.arg), argument)

    def all_plain(parameters: Sequence[ast.arg]) -> list[ast.arg]:
        return [stripped for argument in parameters if (stripped := strip(argument)) is not None]

    return ast.arguments(
        all_plain(arguments.posonlyargs),
        all_plain(arguments.args),
        strip(arguments.vararg),
        all_plain(arguments.kwonlyargs),
        [default and expressions.visit(default) for default in arguments.kw_defaults],
        strip(arguments.kwarg),
        [expressions.visit(default) for default in arguments.defaults],
    )


def _needs_runtime(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
    """Return whether a comparison may be more than an operator of the operands."""
    if isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return True
    return not any(isinstance(side, ast.Constant) for side in (left, right))  # may be sequences


def _ask_truth(node: ast.expr) -> None:
    """Mark each `and` and `or` of an expression of which only the truth is asked."""
    if isinstance(node, ast.BoolOp):
        setattr(node, ASKS_TRUTH, True)
        for value in node.values:
            _ask_truth(value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _ask_truth(node.operand)


def _truth_of(value: ast.expr, node: ast.expr) -> ast.expr:
    """Return the truth of a rewritten expression, which is its value if that is a bool."""
    gives_bool = isinstance(node, (ast.BoolOp, ast.Compare)) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )
    gives_bool |= isinstance(node, ast.Name) and node.id.startswith(PREFIX)  # a flag of wend's own
    return value if gives_bool else ast.copy_location(runtime("truth_of", value), node)
