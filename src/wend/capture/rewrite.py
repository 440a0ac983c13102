"""Rewrites a function so that its control flow goes through `runtime`.

Bodies of loops and branches become functions inside the function; they change its variables by
`nonlocal`, so closures stay live and the statements stay as the user wrote them, line for line.

    while test: body        def _wend_test1(): return test
                     ->     def _wend_body1(): nonlocal x; body
                            _wend_.while_(_wend_test1, _wend_body1, state of (x,))
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from wend.capture import exits
from wend.capture.exits import Flags, assign, leaves, lower_body, name
from wend.capture.names import (
    PREFIX,
    REST,
    SETTLES,
    changed,
    changes,
    contains,
    live_before,
    read,
)
from wend.capture.walrus import NONE, Names, perhaps_bound, surely_bound, targets

RUNTIME = f"{PREFIX}_"
THUNK = f"{PREFIX}"
LOWERED = f"{PREFIX}lowered"  # marks statements whose exits are flags


def runtime(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of a function of the runtime."""
    return ast.Call(ast.Attribute(name(RUNTIME), function, ast.Load()), list(arguments), [])


def thunk(value: ast.expr) -> ast.Lambda:
    """`lambda: value`; the name of what it ignores tells it from lambdas of the user."""
    return ast.Lambda(ast.arguments([], [], ast.arg(THUNK), [], [], None, []), value)


def strings(items: Iterable[str]) -> ast.expr:
    """A tuple of strings."""
    return ast.Tuple([ast.Constant(item) for item in items], ast.Load())


def rewrite_function(node: ast.FunctionDef) -> ast.FunctionDef:
    """Return the definition with its control flow rewritten; decorators and annotations go."""
    return _Function(node).rewritten()


def is_runtime(node: ast.expr) -> bool:
    """Whether an expression is the runtime itself."""
    return isinstance(node, ast.Name) and node.id == RUNTIME


def _with_assignments(node: ast.FunctionDef) -> ast.FunctionDef:
    """`x[k] = v`, `x[k] += v` and `x += v` of the function's own names by way of the runtime.

    So an array that Python knows becomes a traced one where it meets traced values.
    """
    own = {argument.arg for argument in _all_arguments(node.args)}
    declared = [s for s in ast.walk(node) if isinstance(s, (ast.Global, ast.Nonlocal))]
    outer = {identifier for stmt in declared for identifier in stmt.names}
    own |= {place for place in changes(node.body).bound if "." not in place}
    new = copy.copy(node)
    new.body = [_Assignments(own - outer).visit(stmt) for stmt in node.body]
    return new


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [a for a in (arguments.vararg, arguments.kwarg) if a is not None]


class _Assignments(ast.NodeTransformer):
    def __init__(self, own: set[str]) -> None:
        self.own = own

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        # Functions inside have names of their own, and get their turn when they are rewritten.
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        match node.targets:
            case [ast.Subscript(value=ast.Name(id=array), slice=key)] if array in self.own:
                call = runtime("set_item", name(array), _key(key), node.value)
                return ast.fix_missing_locations(ast.copy_location(assign(array, call), node))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        operator = ast.Constant(type(node.op).__name__)
        match node.target:
            case ast.Subscript(value=ast.Name(id=array), slice=key) if array in self.own:
                arguments = name(array), _key(key), operator, node.value
                call = runtime("set_item_in_place", *arguments)
            case ast.Name(id=array) if array in self.own:
                call = runtime("in_place", name(array), operator, node.value)
            case _:
                return node
        return ast.fix_missing_locations(ast.copy_location(assign(array, call), node))


def _is_known_key(key: ast.expr) -> bool:
    """Whether a key is written out: then no traced value is in it."""
    return all(
        isinstance(node, (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load))
        for node in ast.walk(key)
    )


def _key(key: ast.expr) -> ast.expr:
    """A key as an expression of its own: slices as calls of `slice`."""
    if isinstance(key, ast.Slice):
        bounds = (bound or ast.Constant(None) for bound in (key.lower, key.upper, key.step))
        return ast.copy_location(runtime("slice", *bounds), key)
    if isinstance(key, ast.Tuple) and isinstance(key.ctx, ast.Load):
        return ast.copy_location(ast.Tuple([_key(item) for item in key.elts], ast.Load()), key)
    return key


class _Function:
    """One function that is being rewritten."""

    def __init__(self, node: ast.FunctionDef, numbers: list[int] | None = None) -> None:
        self.node = node = _with_assignments(node)
        self.numbers = numbers if numbers is not None else [0]
        self.expressions = _Expressions(self)
        arguments = node.args
        self.params = [argument.arg for argument in _all_arguments(arguments)]
        self.globals: set[str] = set()
        self.outer: set[str] = set()
        for inner in _own_statements(node.body):
            if isinstance(inner, ast.Global):
                self.globals.update(inner.names)
            elif isinstance(inner, ast.Nonlocal):
                self.outer.update(inner.names)
        # Names that nested functions read, or that outlive the function, are always live.
        nested = [n for n in _own_statements(node.body) if isinstance(n, ast.FunctionDef)]
        nested_lambdas = [n for n in ast.walk(node) if isinstance(n, ast.Lambda)]
        self.always_live = read(nested) | read(nested_lambdas) | self.globals | self.outer
        # Variables that several functions change are places of their own.
        self.shared = {
            shared
            for inner in ast.walk(node)
            if isinstance(inner, (ast.Global, ast.Nonlocal))
            for shared in inner.names
        }
        bound = changes(node.body).bound
        self.locals = {*self.params, *(p for p in bound if "." not in p)}
        self.locals -= self.globals | self.outer
        self.flags: list[str] = []
        self.hoisted: list[ast.stmt] = []

    def rewritten(self) -> ast.FunctionDef:
        node = self.node
        body = self.block(self.without_exits_in_else(node.body), set(), is_tail=True)
        bound = [p for p in changes(node.body).bound if p in self.locals - {*self.params}]
        local = [*bound, *self.flags]
        arguments = _without_annotations(node.args, self.expressions)
        new = definition(node.name, arguments, [*_binding(local), *body] or [ast.Pass()])
        return ast.fix_missing_locations(ast.copy_location(new, node))

    def without_exits_in_else(self, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Loops whose `else` leaves more than it, with an `if` in its place."""
        return [new for stmt in stmts for new in self.without_exit_in_else(stmt)]

    def without_exit_in_else(self, stmt: ast.stmt) -> list[ast.stmt]:
        if not contains([stmt], (ast.For, ast.While)):
            return [stmt]
        stmt = copy.copy(stmt)
        for field in ("body", "orelse", "finalbody"):
            if hasattr(stmt, field):
                setattr(stmt, field, self.without_exits_in_else(getattr(stmt, field)))
        for field in ("handlers", "cases"):
            if hasattr(stmt, field):
                parts = [copy.copy(part) for part in getattr(stmt, field)]
                for part in parts:
                    part.body = self.without_exits_in_else(part.body)
                setattr(stmt, field, parts)
        if not isinstance(stmt, (ast.For, ast.While)) or not contains(
            stmt.orelse, (ast.Break, ast.Continue, ast.Return)
        ):
            return [stmt]
        otherwise, stmt.orelse = stmt.orelse, []
        if not contains(stmt.body, (ast.Break,), in_loops=False):
            return [stmt, *otherwise]
        left = self.flag("left")
        stmt.body = [_MarkBreaks(left).visit(cloned(inner)) for inner in stmt.body]
        unless = ast.If(ast.UnaryOp(ast.Not(), name(left)), otherwise, [])
        start, ending = _located([assign(left, False), unless], otherwise[0])
        return [start, stmt, ending]

    def new(self, kind: str) -> str:
        self.numbers[0] += 1
        return f"{PREFIX}{kind}{self.numbers[0]}"

    def flag(self, kind: str) -> str:
        """A new variable of the function."""
        return self.variable(self.new(kind))

    def variable(self, identifier: str) -> str:
        if identifier not in self.locals:
            self.locals.add(identifier)
            self.flags.append(identifier)
        return identifier

    # Statements
    def block(
        self, stmts: Sequence[ast.stmt], after: set[str], *, is_tail: bool = False
    ) -> list[ast.stmt]:
        """Rewrite statements.

        Args:
            stmts: the statements.
            after: the names that may be read after them.
            is_tail: whether the function ends after them; else they hold no `return`.
        """
        out: list[ast.stmt] = []
        stmts = self.split(stmts)
        for position, stmt in enumerate(stmts):
            rest = stmts[position + 1 :]
            if is_tail and _may_return(stmt):
                return out + self.returning(stmt, list(rest))
            live = live_before(rest, after) | self.always_live
            new = self.with_hoisted(stmt, functools.partial(self.statement, stmt, live))
            out += [_at_head(one, stmt) for one in new]
            if isinstance(stmt, _SIMPLE):
                sure = surely_bound(stmt.test)[0] if isinstance(stmt, ast.Assert) else NONE
                out += self.settled(perhaps_bound([stmt]), sure, stmt)
        return out

    def with_hoisted(self, stmt: ast.stmt, rewrite: Callable[[], list[ast.stmt]]) -> list[ast.stmt]:
        """A statement rewritten, after the functions that its expressions need."""
        outer, self.hoisted = self.hoisted, []
        with self.expressions.of(perhaps_bound(_own_expressions(stmt))):
            new = rewrite()
        touches = self.touches(stmt)
        hoisted, self.hoisted = self.hoisted, outer
        return [*touches, *hoisted, *new]

    # Names that only some runs have bound
    def split(self, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements whose heads may leave a name unbound, with these heads before them."""
        out: list[ast.stmt] = []
        for stmt in stmts:
            field = {ast.For: "iter", ast.Match: "subject"}.get(type(stmt))
            if field is not None and perhaps_bound([getattr(stmt, field)]):
                held = self.flag("head")
                head = assign(held, getattr(stmt, field))
                stmt = copy.copy(stmt)
                setattr(stmt, field, ast.copy_location(name(held), head.value))
                out += _located([head], stmt)
            out.append(stmt)
        return out

    def settled(self, names: Names, sure: Names, origin: ast.stmt) -> list[ast.stmt]:
        """Names that an expression has perhaps bound: the sure ones are, the others no longer."""
        out: list[ast.stmt] = []
        for one in sorted(names):
            if one in sure:
                settles: ast.stmt = assign(one, runtime("surely", name(one)))
            else:
                gone = ast.Delete([ast.Name(one, ast.Del())])
                settles = ast.If(runtime("is_perhaps", thunk(name(one))), [gone], [])
            setattr(settles, SETTLES, True)
            out.append(ast.fix_missing_locations(_at_head(settles, origin)))
        return out

    def arms(self, stmt: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """What an `if` runs if its test holds, and else."""
        names, (holds, fails) = perhaps_bound([stmt.test]), surely_bound(stmt.test)
        return (
            [*self.settled(names, holds, stmt), *stmt.body],
            [*self.settled(names, fails, stmt), *stmt.orelse],
        )

    def returning(self, stmt: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A statement that may end the function, with all that follows it."""
        if isinstance(stmt, ast.If):
            return self.with_hoisted(stmt, lambda: self.if_return(stmt, rest))
        if isinstance(stmt, ast.Match) and _is_value_match(stmt):
            return self.block([*self.match_as_if(stmt), *rest], set(), is_tail=True)
        flags = Flags(self.flag("broken"), self.flag("skipped"))
        self.variable(flags.returned)
        self.variable(flags.value)
        start: list[ast.stmt] = [
            assign(flag, False) for flag in (flags.broken, flags.skipped, flags.returned)
        ]
        ending: ast.stmt = ast.Return(runtime("returned", thunk(name(flags.value))))
        if isinstance(stmt, (ast.For, ast.While)):
            return self.returning_loop(stmt, rest, flags, start)
        if not leaves([stmt]):
            ending = ast.If(name(flags.returned), [ending], [])
        lowered = [*start, *lower_body([stmt], flags), ending]
        for new in lowered[len(start) : -1]:
            setattr(new, LOWERED, True)
        return self.block([*_located(lowered, stmt), *rest], set(), is_tail=True)

    def returning_loop(
        self, stmt: ast.For | ast.While, rest: list[ast.stmt], flags: Flags, start: list[ast.stmt]
    ) -> list[ast.stmt]:
        breaks = contains(stmt.body, (ast.Break,), in_loops=False)
        following = list(rest)
        if stmt.orelse and breaks:
            ended = ast.If(ast.UnaryOp(ast.Not(), name(flags.broken)), stmt.orelse, [])
            following = [*_located([ended], stmt.orelse[0]), *rest]
        elif stmt.orelse:
            following = [*stmt.orelse, *rest]
        if contains(stmt.body, (ast.Return,)):
            ending: ast.stmt = ast.Return(runtime("returned", thunk(name(flags.value))))
            if not leaves([stmt]):
                ending = ast.If(name(flags.returned), [ending], [])
            following = [*_located([ending], stmt), *following]
        start = _located(start, stmt)
        live = live_before(following, set()) | self.always_live
        stmt = copy.copy(stmt)
        stmt.orelse = []
        loop = self.with_hoisted(stmt, lambda: self.statement(stmt, live, flags))
        loop = [_at_head(s, stmt) for s in loop]
        return [*start, *loop, *self.block(following, set(), is_tail=True)]

    def if_return(self, stmt: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """`if` with a return: each arm goes on to what follows, and gives the return value."""
        out: list[ast.stmt] = []
        following = rest
        arms = list(self.arms(stmt))
        going_on = [arm for arm in arms if not leaves(arm)]
        if rest and len(going_on) == 2:
            tail = self.new("rest")
            out.append(self.function(tail, self.block(rest, set(), is_tail=True), rest))
            going_on_there = ast.Call(name(tail), [], [])
            setattr(going_on_there, REST, rest)
            rest = [ast.copy_location(ast.Return(going_on_there), rest[0])]
        arms = [arm if leaves(arm) else [*arm, *rest] for arm in arms]
        names = [self.new("then"), self.new("else")]
        for arm_name, arm in zip(names, arms, strict=True):
            out.append(self.function(arm_name, self.block(arm, set(), is_tail=True), arm))
        nodes = [*arms[0], *arms[1], *following]
        lasting = strings(place for place in changed(nodes) if self.outlives(place))
        setter, state = self.state(nodes, None)
        call = runtime("if_return", self.visit(stmt.test), *map(name, names), lasting, state)
        out += [setter, ast.Return(call)]
        return [_at_head(new, stmt) for new in out]

    def outlives_some(self, names: Names) -> bool:
        """Whether other functions may see one of these variables."""
        return any(self.outlives(one) or one in self.shared for one in names)

    def outlives(self, place: str) -> bool:
        """Whether a place is still there when the function has ended."""
        return "." in place or place in self.globals or place in self.outer

    def statement(
        self, stmt: ast.stmt, after: set[str], flags: Flags | None = None
    ) -> list[ast.stmt]:
        if hasattr(stmt, SETTLES):
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
            case ast.FunctionDef():
                return [self.nested(stmt)]
            case ast.ClassDef():
                return [self.nested_class(stmt)]
            case ast.AsyncFunctionDef():
                return [stmt]
            case ast.Raise():
                check = ast.Expr(runtime("check_raise"))
                return [*_located([check], stmt), self.expressions.visit(cloned(stmt))]
            case ast.Assert(test=test, msg=message):
                said = message or ast.Constant(None)
                call = runtime("assert_", self.visit(test), thunk(self.visit(said)))
                return [ast.Expr(call)]
            case ast.With(items=items, body=body):
                items = [
                    ast.withitem(
                        runtime("context", self.visit(item.context_expr)), item.optional_vars
                    )
                    for item in items
                ]
                settled = self.settled(perhaps_bound(stmt.items), NONE, stmt)
                return [ast.With(items, self.block([*settled, *body], after))]
            case ast.Return(value=ast.expr() as value) if self.outlives_some(
                perhaps_bound([value])
            ):
                held = self.flag("value")
                settled = self.settled(perhaps_bound([value]), NONE, stmt)
                returned: list[ast.stmt] = [ast.Return(name(held))]
                return [assign(held, self.visit(value)), *settled, *returned]
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                late = after | read([*handlers, *orelse, *final])
                caught = [
                    ast.copy_location(
                        ast.ExceptHandler(
                            h.type, h.name, [*self.checked(h), *self.block(h.body, late)]
                        ),
                        h,
                    )
                    for h in handlers
                ]
                return [
                    ast.Try(
                        self.block(body, late),
                        caught,
                        self.block(orelse, late),
                        self.block(final, after),
                    )
                ]
        return [self.expressions.visit(cloned(stmt))]

    def visit(self, expression: ast.expr) -> ast.expr:
        # A copy: what code changes and reads is asked of the code as it was written.
        new = self.expressions.visit(cloned(expression))
        assert isinstance(new, ast.expr)
        return new

    def nested(self, stmt: ast.FunctionDef) -> ast.FunctionDef:
        new = _Function(stmt, self.numbers).rewritten()
        new.decorator_list = [self.visit(decorator) for decorator in stmt.decorator_list]
        return new

    def nested_class(self, stmt: ast.ClassDef) -> ast.ClassDef:
        """A class with its methods rewritten."""
        new = copy.copy(stmt)
        new.body = [
            self.nested(mangled(inner, stmt.name)) if isinstance(inner, ast.FunctionDef) else inner
            for inner in stmt.body
        ]
        return new

    @staticmethod
    def checked(handler: ast.ExceptHandler) -> list[ast.stmt]:
        check = ast.Expr(runtime("check_caught"))
        return _located([check], handler.body[0])

    # Branches
    def if_(self, stmt: ast.If, after: set[str]) -> list[ast.stmt]:
        if isinstance(stmt.test, ast.Constant):
            return self.block(stmt.body if stmt.test.value else stmt.orelse, after)
        out: list[ast.stmt] = []
        bodies, arms = self.arms(stmt), []
        for kind, body in zip(("then", "else"), bodies, strict=True):
            arms.append(self.new(kind))
            out.append(self.function(arms[-1], self.block(body, after), body))
        nodes = [*bodies[0], *bodies[1]]
        live = strings(self.kept(changed(nodes), after))
        setter, state = self.state(nodes, None)
        call = runtime("if_", self.visit(stmt.test), *map(name, arms), live, state)
        return [*out, setter, ast.Expr(call)]

    def match(self, stmt: ast.Match, after: set[str]) -> list[ast.stmt]:
        if _is_value_match(stmt):
            return self.block(self.match_as_if(stmt), after)
        cases = [
            ast.match_case(c.pattern, c.guard and self.visit(c.guard), self.block(c.body, after))
            for c in stmt.cases
        ]
        return [ast.Match(self.visit(stmt.subject), cases)]

    def match_as_if(self, stmt: ast.Match) -> list[ast.stmt]:
        """A `match` on values as a chain of `if`."""
        subject = self.flag("subject")
        chain: list[ast.stmt] = []
        for case in reversed(stmt.cases):
            chain = [_case_as_if(case, subject, chain)]
        return _located([assign(subject, stmt.subject), *chain], stmt)

    # Loops
    def while_(
        self, stmt: ast.While, after: set[str], flags: Flags | None = None
    ) -> list[ast.stmt]:
        exit_test = _middle_exit(stmt)
        if exit_test is not None:
            place = stmt.body.index(exit_test)
            first, last = stmt.body[:place], stmt.body[place + 1 :]
            goes_on: ast.expr = ast.UnaryOp(ast.Not(), exit_test.test)
            ast.fix_missing_locations(ast.copy_location(goes_on, exit_test.test))
            return self.loop(stmt, first, goes_on, last, after, always=True)
        flags = flags or self.loop_flags(stmt)
        if flags is None:
            out = self.loop(stmt, [], stmt.test, stmt.body, live_before(stmt.orelse, after))
            return out + self.block(stmt.orelse, after)
        going: ast.expr = ast.UnaryOp(ast.Not(), name(flags.broken))
        always = isinstance(stmt.test, ast.Constant) and bool(stmt.test.value)
        test = going if always else ast.BoolOp(ast.And(), [going, stmt.test])
        ast.fix_missing_locations(ast.copy_location(test, stmt.test))
        body = [assign(flags.skipped, False), *lower_body(stmt.body, flags)]
        for new in body:
            ast.fix_missing_locations(
                ast.copy_location(new, stmt) if not hasattr(new, "lineno") else new
            )
        late = live_before(stmt.orelse, after) | {flags.broken}
        out = [
            *self.start_flags(flags, stmt),
            *self.loop(stmt, [], test, body, late, always=always),
        ]
        return out + self.loop_else(stmt, flags, after)

    def loop(
        self,
        stmt: ast.stmt,
        first: Sequence[ast.stmt],
        test: ast.expr,
        body: Sequence[ast.stmt],
        after: set[str],
        *,
        always: bool = False,
    ) -> list[ast.stmt]:
        """A loop that runs `first`, leaves unless `test` holds, and runs `body`."""
        perhaps, (holds, fails) = perhaps_bound([test]), surely_bound(test)
        body = [*self.settled(perhaps, holds, stmt), *body]
        head = self.head(after, [*first, ast.Expr(test), *body])
        late = live_before(list(body), head) | after | self.always_live
        out: list[ast.stmt] = []
        names = [self.new("test"), self.new("body")]
        testing = [*self.block(first, late | read([test])), ast.Return(self.visit(test))]
        out.append(self.function(names[0], testing, [*first, ast.Expr(test)]))
        out.append(self.function(names[1], self.block(body, head), body))
        setter, state = self.state([*first, test, *body], head | after | late)
        out.append(setter)
        call = runtime("while_", *map(name, names), state, ast.Constant(always))
        out += [ast.Expr(call), *self.settled(perhaps, fails, stmt)]
        return [_at_head(new, stmt) for new in out]

    def head(self, after: set[str], iteration: Sequence[ast.stmt]) -> set[str]:
        """The names that are live where an iteration starts."""
        # After the last one, or after the test, comes what follows the loop.
        once = after | live_before(iteration, after)
        return after | live_before(iteration, once) | self.always_live

    def for_(self, stmt: ast.For, after: set[str], flags: Flags | None = None) -> list[ast.stmt]:
        flags = flags or self.loop_flags(stmt)
        item = self.new("item")
        body: list[ast.stmt] = [
            ast.copy_location(ast.Assign([stmt.target], name(item)), stmt.target)
        ]
        if flags is None:
            body += stmt.body
        else:
            body += [assign(flags.skipped, False), *lower_body(stmt.body, flags)]
        for new in body:
            ast.fix_missing_locations(
                ast.copy_location(new, stmt) if not hasattr(new, "lineno") else new
            )
        late = live_before(stmt.orelse, after) | ({flags.broken} if flags else set())
        head = self.head(late, body)
        out: list[ast.stmt] = []
        function = self.new("body")
        made = self.function(function, self.block(body, head), body)
        made.args = ast.arguments([], [ast.arg(item)], None, [], [], None, [])
        out.append(made)
        setter, state = self.state(body, head | late)
        out.append(setter)
        broken: ast.expr = thunk(name(flags.broken)) if flags else ast.Constant(None)
        call = runtime("for_", self.visit(stmt.iter), name(function), state, broken)
        out.append(ast.Expr(call))
        start = self.start_flags(flags, stmt) if flags else []
        done = [*start, *(_at_head(new, stmt) for new in out)]
        if flags is None:
            return done + self.block(stmt.orelse, after)
        return done + self.loop_else(stmt, flags, after)

    def loop_flags(self, stmt: ast.For | ast.While) -> Flags | None:
        leaves_early = contains(stmt.body, (ast.Break, ast.Continue), in_loops=False)
        if not leaves_early and not contains(stmt.body, (ast.Return,)):
            return None
        return Flags(self.flag("broken"), self.flag("skipped"))

    def start_flags(self, flags: Flags, stmt: ast.stmt) -> list[ast.stmt]:
        start = [assign(flags.broken, False), assign(flags.skipped, False)]
        return [ast.fix_missing_locations(ast.copy_location(new, stmt)) for new in start]

    def loop_else(self, stmt: ast.For | ast.While, flags: Flags, after: set[str]) -> list[ast.stmt]:
        if not stmt.orelse:
            return []
        ended = ast.If(ast.UnaryOp(ast.Not(), name(flags.broken)), stmt.orelse, [])
        return self.block([ast.fix_missing_locations(ast.copy_location(ended, stmt))], after)

    # Functions made
    def kept(self, places: Iterable[str], live: set[str]) -> list[str]:
        """The places that control flow must carry: the live ones, and all attributes."""
        return [p for p in places if "." in p or p in live or p in self.always_live]

    def function(
        self, function: str, body: Sequence[ast.stmt], origin: Sequence[ast.stmt]
    ) -> ast.FunctionDef:
        """A function of these statements that changes the variables of this one."""
        names = [
            place
            for place in changes(origin).bound
            if place in self.locals or place in self.globals or place in self.outer
        ]
        statements: list[ast.stmt] = [*self.declarations(names), *body]
        return definition(function, _no_arguments(), statements or [ast.Pass()])

    def declarations(self, names: Sequence[str]) -> list[ast.stmt]:
        declared: list[ast.stmt] = []
        outside = [n for n in names if n in self.globals]
        inside = [n for n in names if n not in self.globals]
        if outside:
            declared.append(ast.Global(outside))
        if inside:
            declared.append(ast.Nonlocal(inside))
        return declared

    def state(
        self, nodes: Sequence[ast.AST], live: set[str] | None
    ) -> tuple[ast.FunctionDef, ast.expr]:
        """The setter of what some code may change, to define first, and its state.

        Args:
            nodes: the code.
            live: the names that control flow must carry; None: all that are changed.
        """
        found = changes(nodes)
        kept = [
            p
            for p in found.places
            if "." not in p
            and p not in self.shared
            and p in self.locals
            and (live is None or p in live or p in self.always_live or p in found.mutated)
        ]
        values = f"{PREFIX}values"
        body: list[ast.stmt] = self.declarations(kept)
        if kept:
            targets = ast.Tuple([name(place, store=True) for place in kept], ast.Store())
            body.append(ast.Assign([targets], name(values)))
        for place in kept:
            gone = ast.Delete([ast.Name(place, ast.Del())])
            body.append(ast.If(runtime("is_unbound", name(place)), [gone], []))
        arguments = ast.arguments([], [ast.arg(values)], None, [], [], None, [])
        setter = definition(self.new("set"), arguments, body or [ast.Pass()])
        heap: list[ast.expr] = []
        for place in found.places:
            base, _, attribute = place.rpartition(".")
            if base:
                heap.append(_heap_entry("attribute", place, base, attribute))
            elif place in self.shared:
                heap.append(_heap_entry("variable", place, place))
            if place in found.mutated and place not in found.rebound:
                heap.append(_heap_entry("contents", place, place))
        state = runtime(
            "State",
            strings(kept),
            ast.Tuple([thunk(name(place)) for place in kept], ast.Load()),
            name(setter.name),
            ast.Tuple(heap, ast.Load()),
        )
        return setter, state

    def touches(self, stmt: ast.stmt) -> list[ast.stmt]:
        """Tell of the changes that a statement makes outside the variables of the function."""
        found = changes(_own_expressions(stmt))
        out: list[ast.expr] = []
        for place in found.bound:
            base, _, attribute = place.rpartition(".")
            if base:
                out.append(
                    runtime(
                        "touch_attribute",
                        thunk(_expression(base)),
                        ast.Constant(attribute),
                        ast.Constant(place),
                    )
                )
            elif place in self.shared:
                out.append(runtime("touch_variable", thunk(name(place)), ast.Constant(place)))
        out += [
            runtime("touch_contents", thunk(_expression(place)), ast.Constant(place))
            for place in found.mutated
        ]
        return [ast.copy_location(ast.Expr(call), stmt) for call in out]


def definition(function: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """A function; Python 3.12 gives functions one field more."""
    extra: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}
    return ast.FunctionDef(function, arguments, body, [], None, **extra)


def _heap_entry(kind: str, label: str, base: str, attribute: str | None = None) -> ast.expr:
    parts = [
        ast.Constant(kind),
        ast.Constant(label),
        thunk(_expression(base)),
        ast.Constant(attribute),
    ]
    return ast.Tuple(parts, ast.Load())


def _own_expressions(stmt: ast.stmt) -> list[ast.AST]:
    """What a statement evaluates itself, the statements in it left out."""
    match stmt:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(iter=iterable):
            return [iterable]
        case ast.With(items=items):
            return list(items)
        case ast.Match(subject=subject):
            return [subject]
        case ast.Try() | ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            return []
    return [stmt]


# Statements that hold no others
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Assert, ast.Delete)


class _Expressions(ast.NodeTransformer):
    """Rewrites operators that decide, and calls."""

    def __init__(self, function: _Function) -> None:
        self.function = function
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
        sure = surely_bound(first)[0 if is_and else 1]
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
        owner = self.function
        functions = []
        values = [value for value, _ in operands]
        for value, sure in operands:
            function = owner.new("value")
            new = self.rewritten_after(value, sure)
            body = [ast.copy_location(ast.Return(new), value)]
            made = owner.function(function, body, [ast.Expr(value)])
            owner.hoisted.append(ast.copy_location(made, value))
            functions.append(name(function))
        setter, state = owner.state(values, None)
        owner.hoisted.append(ast.copy_location(setter, values[0]))
        return (*functions, state)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return runtime("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        holds, fails = surely_bound(node.test)
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
        if len(node.ops) == 1:
            self.generic_visit(node)
            return node
        if any(map(_binds, node.comparators[1:])):
            return self.rewritten(self.unchained(node))
        self.generic_visit(node)
        operators = [ast.Constant(type(op).__name__) for op in node.ops]
        links = [
            ast.Tuple([op, thunk(right)], ast.Load())
            for op, right in zip(operators[1:], node.comparators[1:], strict=True)
        ]
        return runtime("compare", node.left, operators[0], node.comparators[0], *links)

    def unchained(self, node: ast.Compare) -> ast.expr:
        """`a < b < c` as `a < (t := b) and t < c`."""
        tests: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            kept = self.function.flag("middle")
            held = ast.NamedExpr(name(kept, store=True), right)
            tests.append(ast.Compare(left, [op], [held]))
            left = name(kept)
        new = ast.copy_location(ast.BoolOp(ast.And(), tests), node)
        return ast.fix_missing_locations(new)

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
        node.ifs = [ast.copy_location(runtime("filtered", test), test) for test in node.ifs]
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = _visit_scope
    visit_DictComp = visit_GeneratorExp = _visit_scope

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or _is_known_key(node.slice):
            return node
        return runtime("get_item", node.value, _key(node.slice))

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
        return not isinstance(owner, ast.Name) or owner.id in self.function.locals

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
            first = self.function.params[:1]
            node.args = [name("__class__"), *map(name, first)]
            return node
        node.func = ast.copy_location(runtime("call", node.func), node.func)
        return node


def _binds(value: ast.expr) -> bool:
    return bool(targets(value))


def _own_statements(stmts: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Statements of a function, at any depth, those of nested functions and classes left out."""
    for stmt in stmts:
        yield stmt
        if not isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _own_statements(ast.iter_child_nodes(stmt))


def _binding(names: Sequence[str]) -> list[ast.stmt]:
    """A statement that never runs, but makes names local: `if False: x = y = None`."""
    if not names:
        return []
    unique = list(dict.fromkeys(names))
    targets: list[ast.expr] = [name(n, store=True) for n in unique]
    return [ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])]


def _without_annotations(arguments: ast.arguments, expressions: _Expressions) -> ast.arguments:
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


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def _expression(place: str, context: ast.expr_context | None = None) -> ast.expr:
    """The expression that names a place."""
    context = context or ast.Load()
    base, _, attribute = place.rpartition(".")
    if not base:
        return ast.Name(attribute, context)
    return ast.Attribute(_expression(base), attribute, context)


def _middle_exit(stmt: ast.While) -> ast.If | None:
    """The `if c: break` of a `while True` that is left there and nowhere else."""
    if not (isinstance(stmt.test, ast.Constant) and stmt.test.value) or stmt.orelse:
        return None
    exits_found = [s for s in stmt.body if exits._has_exit(s)]
    if len(exits_found) != 1:
        return None
    (found,) = exits_found
    if isinstance(found, ast.If) and not found.orelse and len(found.body) == 1:
        return found if isinstance(found.body[0], ast.Break) else None
    return None


class _MarkBreaks(ast.NodeTransformer):
    """Sets a flag before each `break` of a loop."""

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def visit_Break(self, node: ast.Break) -> Any:
        return [*_located([assign(self.flag, True)], node), node]

    def _leave(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_For = visit_While = visit_FunctionDef = visit_ClassDef = _leave


def cloned(node: Any) -> Any:
    """A copy of a syntax tree, faster than `copy.deepcopy`."""
    if isinstance(node, list):
        return [cloned(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)()
    for field, value in node.__dict__.items():
        new.__dict__[field] = cloned(value) if isinstance(value, (ast.AST, list)) else value
    return new


def _may_return(stmt: ast.stmt) -> bool:
    """Whether a statement holds a `return` that is no flag yet."""
    if isinstance(stmt, ast.Return) or hasattr(stmt, LOWERED):
        return False
    return contains([stmt], (ast.Return,))


def _at_head(new: ast.stmt, stmt: ast.stmt) -> ast.stmt:
    """A statement that was made, at the first line of the one it stands for."""
    if not hasattr(new, "lineno"):
        ast.copy_location(new, stmt)
        if stmt.end_lineno != stmt.lineno and not isinstance(new, ast.FunctionDef):
            # One line only: the line of a call is the last one of what is called.
            new.end_lineno = new.lineno
            new.end_col_offset = new.col_offset + len(type(stmt).__name__)
    return new


def _located(stmts: Sequence[ast.stmt], origin: ast.stmt) -> list[ast.stmt]:
    """Statements that were made, with positions; those of the user's keep theirs."""
    return [
        ast.fix_missing_locations(s if hasattr(s, "lineno") else ast.copy_location(s, origin))
        for s in stmts
    ]


def _is_value_match(stmt: ast.Match) -> bool:
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


def _case_as_if(case: ast.match_case, subject: str, otherwise: list[ast.stmt]) -> ast.stmt:
    """`case pattern if guard: body` as an `if` on the subject."""
    body = list(case.body)
    test = _pattern_test(case.pattern, subject)
    bound = case.pattern.name if isinstance(case.pattern, ast.MatchAs) else None
    if bound:
        binding = assign(bound, name(subject))
        if case.guard is not None:
            body = [ast.If(case.guard, body, copy.deepcopy(otherwise))]
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


class _Mangle(ast.NodeTransformer):
    """Gives private names of a class the form that Python gives them."""

    def __init__(self, owner: str) -> None:
        self.owner = owner.lstrip("_")

    def mangled(self, identifier: str) -> str:
        private = identifier.startswith("__") and not identifier.endswith("__") and self.owner
        return f"_{self.owner}{identifier}" if private else identifier

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.mangled(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        node.attr = self.mangled(node.attr)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.mangled(node.arg)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


def mangled(node: ast.FunctionDef, owner: str) -> ast.FunctionDef:
    """A method of class `owner` with its private names as Python has them."""
    new = _Mangle(owner).visit(copy.deepcopy(node))
    assert isinstance(new, ast.FunctionDef)
    return new
