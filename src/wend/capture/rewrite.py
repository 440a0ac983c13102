"""Rewrites a function so that its control flow goes through `runtime`.

Bodies of loops and branches become functions inside the function; they change its variables by
`nonlocal`, so closures stay live and the statements stay as the user wrote them, line for line.

    while test: body        def _wend_test1(): return test
                     ->     def _wend_body1(): nonlocal x; body
                            _wend_.while_(_wend_test1, _wend_body1, state of (x,))
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from wend.capture import exits
from wend.capture.exits import PREFIX, Flags, assign, leaves, lower_body, name
from wend.capture.names import changed, contains, live_before, read

RUNTIME = f"{PREFIX}_"
_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


def runtime(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of a function of the runtime."""
    return ast.Call(ast.Attribute(name(RUNTIME), function, ast.Load()), list(arguments), [])


def thunk(value: ast.expr) -> ast.Lambda:
    """`lambda: value`."""
    return ast.Lambda(_NO_ARGUMENTS, value)


def rewrite_function(node: ast.FunctionDef) -> ast.FunctionDef:
    """Return the definition with its control flow rewritten; decorators and annotations go."""
    return _Function(node).rewritten()


class _Function:
    """One function that is being rewritten."""

    def __init__(self, node: ast.FunctionDef, numbers: list[int] | None = None) -> None:
        self.node = node
        self.numbers = numbers if numbers is not None else [0]
        self.expressions = _Expressions(self)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        self.params = [argument.arg for argument in every]
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
        self.flags: list[str] = []

    def rewritten(self) -> ast.FunctionDef:
        node = self.node
        body = self.block(node.body, set(), is_tail=True)
        bound = [p for p in changed(node.body) if "." not in p and p not in self.params]
        local = [n for n in (*bound, *self.flags) if n not in self.globals | self.outer]
        new = ast.FunctionDef(
            node.name,
            _without_annotations(node.args, self.expressions),
            [*_binding(local), *body] or [ast.Pass()],
            [],
            None,
        )
        if hasattr(node, "type_params"):
            new.type_params = []
        return ast.fix_missing_locations(ast.copy_location(new, node))

    def new(self, kind: str) -> str:
        self.numbers[0] += 1
        return f"{PREFIX}{kind}{self.numbers[0]}"

    def flag(self, kind: str) -> str:
        self.flags.append(self.new(kind))
        return self.flags[-1]

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
        for position, stmt in enumerate(stmts):
            rest = stmts[position + 1 :]
            if is_tail and contains([stmt], (ast.Return,)) and not isinstance(stmt, ast.Return):
                return out + self.returning(stmt, list(rest))
            live = live_before(rest, after) | self.always_live
            out += [ast.copy_location(new, stmt) for new in self.statement(stmt, live)]
        return out

    def returning(self, stmt: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A statement that may end the function, with all that follows it."""
        if isinstance(stmt, ast.If):
            return self.if_return(stmt, rest)
        flags = Flags(self.flag("broken"), self.flag("skipped"))
        for flag in (flags.returned, flags.value):
            if flag not in self.flags:
                self.flags.append(flag)
        if isinstance(stmt, (ast.For, ast.While)):
            lowered: list[ast.stmt] = [stmt]  # its own flags are made where it is rewritten
        else:
            lowered = lower_body([stmt], flags)
        start = [assign(flag, False) for flag in (flags.broken, flags.skipped, flags.returned)]
        ends = ast.If(name(flags.returned), [ast.Return(name(flags.value))], [])
        new = [ast.copy_location(s, stmt) for s in (*start, *lowered, ends)]
        fresh = [s for s in new if not isinstance(s, (ast.For, ast.While))]
        for s in fresh:
            ast.fix_missing_locations(s)
        if isinstance(stmt, (ast.For, ast.While)):
            live = live_before([new[-1], *rest], set()) | self.always_live
            loop = [ast.copy_location(s, stmt) for s in self.statement(stmt, live)]
            return [*new[:3], *loop, *self.block([new[-1], *rest], set(), is_tail=True)]
        return [*new[:3], *self.block([*new[3:], *rest], set(), is_tail=True)]

    def if_return(self, stmt: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """`if` with a return: each arm goes on to what follows, and gives the return value."""
        out: list[ast.stmt] = []
        following = rest
        arms = [list(stmt.body), list(stmt.orelse)]
        going_on = [arm for arm in arms if not leaves(arm)]
        if rest and len(going_on) == 2:
            tail = self.new("rest")
            out.append(self.function(tail, self.block(rest, set(), is_tail=True), rest))
            rest = [ast.copy_location(ast.Return(ast.Call(name(tail), [], [])), rest[0])]
        arms = [arm if leaves(arm) else [*arm, *rest] for arm in arms]
        names = [self.new("then"), self.new("else")]
        for arm_name, arm in zip(names, arms, strict=True):
            out.append(self.function(arm_name, self.block(arm, set(), is_tail=True), arm))
        places = list(changed([*stmt.body, *stmt.orelse, *following]))
        lasting = ast.Constant(tuple(place for place in places if self.outlives(place)))
        state = self.state(places, out)
        call = runtime("if_return", self.visit(stmt.test), *map(name, names), lasting, *state)
        out.append(ast.Return(call))
        return [ast.copy_location(new, stmt) for new in out]

    def outlives(self, place: str) -> bool:
        """Whether a place is still there when the function has ended."""
        return "." in place or place in self.globals or place in self.outer

    def statement(self, stmt: ast.stmt, after: set[str]) -> list[ast.stmt]:
        match stmt:
            case ast.If():
                return self.if_(stmt, after)
            case ast.While():
                return self.while_(stmt, after)
            case ast.For():
                return self.for_(stmt, after)
            case ast.Match():
                return self.match(stmt, after)
            case ast.FunctionDef():
                return [self.nested(stmt)]
            case ast.ClassDef() | ast.AsyncFunctionDef():
                return [stmt]
            case ast.Assert(test=test, msg=message):
                said = message or ast.Constant(None)
                call = runtime("assert_", self.visit(test), thunk(self.visit(said)))
                return [ast.Expr(call)]
            case ast.With(items=items, body=body):
                items = [
                    ast.withitem(self.visit(item.context_expr), item.optional_vars)
                    for item in items
                ]
                return [ast.With(items, self.block(body, after))]
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                late = after | read([*handlers, *orelse, *final])
                caught = [
                    ast.copy_location(
                        ast.ExceptHandler(h.type, h.name, self.block(h.body, late)), h
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
        return [self.expressions.visit(stmt)]

    def visit(self, expression: ast.expr) -> ast.expr:
        new = self.expressions.visit(expression)
        assert isinstance(new, ast.expr)
        return new

    def nested(self, stmt: ast.FunctionDef) -> ast.FunctionDef:
        new = _Function(stmt, self.numbers).rewritten()
        new.decorator_list = [self.visit(decorator) for decorator in stmt.decorator_list]
        return new

    # Branches
    def if_(self, stmt: ast.If, after: set[str]) -> list[ast.stmt]:
        if isinstance(stmt.test, ast.Constant):
            return self.block(stmt.body if stmt.test.value else stmt.orelse, after)
        out: list[ast.stmt] = []
        arms = []
        for kind, body in (("then", stmt.body), ("else", stmt.orelse)):
            arms.append(self.new(kind))
            out.append(self.function(arms[-1], self.block(body, after), body))
        places = list(changed([*stmt.body, *stmt.orelse]))
        live = ast.Constant(tuple(self.kept(places, after)))
        state = self.state(places, out)
        call = runtime("if_", self.visit(stmt.test), *map(name, arms), live, *state)
        return [*out, ast.Expr(call)]

    def match(self, stmt: ast.Match, after: set[str]) -> list[ast.stmt]:
        if not all(_is_value_pattern(case.pattern) for case in stmt.cases):
            cases = [
                ast.match_case(
                    c.pattern, c.guard and self.visit(c.guard), self.block(c.body, after)
                )
                for c in stmt.cases
            ]
            return [ast.Match(self.visit(stmt.subject), cases)]
        subject = self.flag("subject")
        chain: list[ast.stmt] = []
        for case in reversed(stmt.cases):
            chain = [_case_as_if(case, subject, chain)]
        first = assign(subject, self.visit(stmt.subject))
        for new in (first, *chain):
            ast.fix_missing_locations(ast.copy_location(new, stmt))
        return [first, *self.block(chain, after)]

    # Loops
    def while_(self, stmt: ast.While, after: set[str]) -> list[ast.stmt]:
        exit_test = _middle_exit(stmt)
        if exit_test is not None:
            place = stmt.body.index(exit_test)
            first, last = stmt.body[:place], stmt.body[place + 1 :]
            goes_on: ast.expr = ast.UnaryOp(ast.Not(), exit_test.test)
            ast.fix_missing_locations(ast.copy_location(goes_on, exit_test.test))
            return self.loop(stmt, first, goes_on, last, after, always=True)
        flags = self.loop_flags(stmt)
        if flags is None:
            out = self.loop(stmt, [], stmt.test, stmt.body, after)
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
        late = after | {flags.broken}
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
        head = self.head(after, [*first, ast.Expr(test), *body])
        late = live_before(list(body), head) | after | self.always_live
        out: list[ast.stmt] = []
        names = [self.new("test"), self.new("body")]
        testing = [*self.block(first, late | read([test])), ast.Return(self.visit(test))]
        out.append(self.function(names[0], testing, [*first, ast.Expr(test)]))
        out.append(self.function(names[1], self.block(body, head), body))
        places = self.kept(changed([*first, test, *body]), head | after | late)
        state = self.state(places, out)
        call = runtime("while_", *map(name, names), *state, ast.Constant(always))
        return [ast.copy_location(new, stmt) for new in (*out, ast.Expr(call))]

    def head(self, after: set[str], iteration: Sequence[ast.stmt]) -> set[str]:
        """The names that are live where an iteration starts."""
        once = live_before(iteration, after)
        return live_before(iteration, after | once) | self.always_live

    def for_(self, stmt: ast.For, after: set[str]) -> list[ast.stmt]:
        flags = self.loop_flags(stmt)
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
        late = after | ({flags.broken} if flags else set())
        head = self.head(late, body)
        out: list[ast.stmt] = []
        function = self.new("body")
        made = self.function(function, self.block(body, head), body)
        made.args = ast.arguments([], [ast.arg(item)], None, [], [], None, [])
        out.append(made)
        targets = changed([stmt.target])
        places = self.kept(changed(body), head | late)
        state = self.state(places, out)
        broken: ast.expr = thunk(name(flags.broken)) if flags else ast.Constant(None)
        new_targets = ast.Constant(tuple(targets))
        call = runtime("for_", self.visit(stmt.iter), name(function), *state, new_targets, broken)
        out.append(ast.Expr(call))
        start = self.start_flags(flags, stmt) if flags else []
        done = [*start, *(ast.copy_location(new, stmt) for new in out)]
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
        names = [place for place in changed(origin) if "." not in place]
        statements: list[ast.stmt] = [*self.declarations(names), *body]
        new = ast.FunctionDef(function, _no_arguments(), statements or [ast.Pass()], [], None)
        if hasattr(self.node, "type_params"):
            new.type_params = []
        return new

    def declarations(self, names: Sequence[str]) -> list[ast.stmt]:
        declared: list[ast.stmt] = []
        outside = [n for n in names if n in self.globals]
        inside = [n for n in names if n not in self.globals]
        if outside:
            declared.append(ast.Global(outside))
        if inside:
            declared.append(ast.Nonlocal(inside))
        return declared

    def state(self, places: Sequence[str], out: list[ast.stmt]) -> list[ast.expr]:
        """What reads and sets places; appends the setter's definition."""
        reads = [thunk(_expression(place)) for place in places]
        values = f"{PREFIX}values"
        body: list[ast.stmt] = self.declarations([p for p in places if "." not in p])
        for index, place in enumerate(places):
            given = ast.Subscript(name(values), ast.Constant(index), ast.Load())
            target = _expression(place, ast.Store())
            there = runtime("is_bound", given)
            gone: list[ast.stmt] = []
            if "." not in place:
                # Bound first, so that there is something to delete.
                gone = [
                    assign(place, ast.Constant(None)),
                    ast.Delete([_expression(place, ast.Del())]),
                ]
            body.append(ast.If(there, [ast.Assign([target], given)], gone))
        setter = self.new("set")
        arguments = ast.arguments([], [ast.arg(values)], None, [], [], None, [])
        new = ast.FunctionDef(setter, arguments, body or [ast.Pass()], [], None)
        if hasattr(self.node, "type_params"):
            new.type_params = []
        out.append(new)
        return [ast.Constant(tuple(places)), ast.Tuple(reads, ast.Load()), name(setter)]


class _Expressions(ast.NodeTransformer):
    """Rewrites operators that decide, and calls."""

    def __init__(self, function: _Function) -> None:
        self.function = function

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if any(contains([value], (ast.NamedExpr,)) for value in node.values[1:]):
            self.generic_visit(node)
            return node
        values = [self.visit(value) for value in node.values]
        function = "and_" if isinstance(node.op, ast.And) else "or_"
        result = values[-1]
        for value in reversed(values[:-1]):
            result = ast.copy_location(runtime(function, value, thunk(result)), node)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return runtime("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return runtime("if_expression", node.test, thunk(node.body), thunk(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        operators = [ast.Constant(type(op).__name__) for op in node.ops]
        links = [
            ast.Tuple([op, thunk(right)], ast.Load())
            for op, right in zip(operators, node.comparators, strict=True)
        ]
        return runtime("compare", node.left, *links)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            first = self.function.params[:1]
            node.args = [name("__class__"), *map(name, first)]
            return node
        node.func = ast.copy_location(runtime("call", node.func), node.func)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self.function.nested(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node


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
    exits_found = [
        s
        for s in stmt.body
        if exits._has_exit(s)
    ]
    if len(exits_found) != 1:
        return None
    (found,) = exits_found
    if isinstance(found, ast.If) and not found.orelse and len(found.body) == 1:
        return found if isinstance(found.body[0], ast.Break) else None
    return None


def _is_value_pattern(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton() | ast.MatchAs(pattern=None):
            return True
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
            return ast.If(ast.Constant(True), [binding, ast.If(case.guard, body, otherwise)], [])
        body = [binding, *body]
    if case.guard is not None:
        test = case.guard if test is None else ast.BoolOp(ast.And(), [test, case.guard])
    return ast.If(test or ast.Constant(True), body, otherwise)


def _pattern_test(pattern: ast.pattern, subject: str) -> ast.expr | None:
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(name(subject), [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            return ast.Compare(name(subject), [ast.Is()], [ast.Constant(value)])
        case ast.MatchOr(patterns=patterns):
            tests = [test for p in patterns if (test := _pattern_test(p, subject)) is not None]
            return ast.BoolOp(ast.Or(), tests) if len(tests) == len(patterns) else None
    return None
