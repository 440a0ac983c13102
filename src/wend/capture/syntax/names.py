"""Def-use information of statements: paths bound and mutated, names read, liveness.

A *path* is what control flow may carry: a name (`x`), or an attribute of one (`self.h`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from wend.capture.syntax.nodes import Visitor, children, inner_statements, walk

PathSet = dict[str, None]  # an ordered set of paths

PREFIX = "_wend_"
RUNTIME = f"{PREFIX}_"  # the functions that captured code calls
# Set by a `return` in a loop
RETURNED = f"{PREFIX}returned"
RETURN_VALUE = f"{PREFIX}value"

# Attribute of a call of the continuation of a function: its statements, which count as effects
# of the call
CONTINUATION = f"{PREFIX}rest"

# Marks an inserted statement that unwraps or unbinds a maybe-bound name: it reads and changes
# nothing but that name
RESOLVES_UNBOUND = f"{PREFIX}settles"

# Methods that mutate their list, dict or set.
MUTATORS = frozenset(
    {
        *("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add"),
        *("appendleft", "extendleft", "popleft"),
    }
)
# Functions, of `heapq` and `bisect`, that change the list that is their first argument.
CHANGERS = frozenset({"heapify", "heappush", "heappop", "heapreplace", "heappushpop"})
CHANGERS |= {"insort", "insort_left", "insort_right"}
# Runtime functions for `x[k] = v` and the like, each with the position of what it mutates.
SETTERS = {
    "set_item": 1,
    "set_item_in_place": 0,
    "in_place": 0,
    "store_item": 1,
    "store_item_in_place": 0,
}
_WHOLE_ITEM_SETTERS = ("set_item", "store_item")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def path_of(node: ast.expr) -> str | None:
    """Return the path that an expression denotes, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base_path = path_of(node.value)
        return None if base_path is None else f"{base_path}.{node.attr}"
    return None


def container_path(node: ast.expr) -> str | None:
    """Return the path whose contents a store into `node` mutates: `d` for `d["k"][0] = v`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return path_of(node)


def _is_name(node: ast.expr, identifier: str) -> bool:
    return isinstance(node, ast.Name) and node.id == identifier


class Changes(Visitor):
    """Collects the paths that code binds, and those whose contents it mutates."""

    def __init__(self) -> None:
        self.paths: PathSet = {}
        self.bound: PathSet = {}
        self.mutated: PathSet = {}
        self.rebound: PathSet = {}  # bound to a new value, not updated in place
        self.stores: dict[str, bool] = {}  # items are assigned -> also of what is nested in it

    def add(self, path: str | None) -> None:
        if path is not None:
            self.paths[path] = self.bound[path] = self.rebound[path] = None

    def mutate(self, path: str | None) -> None:
        if path is not None:
            self.paths[path] = self.mutated[path] = None

    def store(self, path: str | None, *, is_nested: bool) -> None:
        self.mutate(path)
        if path is not None:
            self.stores[path] = is_nested or self.stores.get(path, False)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.add(path_of(node))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.store(container_path(node), is_nested=isinstance(node.value, ast.Subscript))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        # `self.items += more` changes a list or array in place.
        self.store(container_path(node.target), is_nested=isinstance(node.target, ast.Subscript))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=target)],
                value=ast.Call(func=ast.Attribute(attr=setter), args=arguments),
            ) if setter in SETTERS and _is_name(arguments[SETTERS[setter]], target):
                self.paths[target] = self.bound[target] = None
                self.visit(node.value)
            case _:
                self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            self.mutate(container_path(node.func.value))
        if node.args and _function_name(node.func) in CHANGERS:
            self.mutate(container_path(node.args[0]))
        if isinstance(node.func, ast.Attribute) and node.func.attr in SETTERS:
            target = node.args[SETTERS[node.func.attr]]
            if node.func.attr == "store_item_in_place" and isinstance(target, ast.Call):
                target = target.args[0]  # of `item_before`
            changes_item = node.func.attr not in _WHOLE_ITEM_SETTERS
            is_nested = changes_item or isinstance(target, ast.Subscript)
            self.store(container_path(target), is_nested=is_nested)
        for inner in getattr(node, CONTINUATION, ()):
            self.visit(inner)
        self.generic_visit(node)

    def _visit_block(self, node: ast.stmt) -> None:
        # A `return` inside sets flags.
        if contains([node], (ast.Return,)):
            self.add(RETURNED)
            self.add(RETURN_VALUE)
        self.generic_visit(node)

    visit_For = visit_While = visit_With = visit_Match = _visit_block
    visit_Try = visit_TryStar = _visit_block

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.add(node.name)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def _visit_comprehension(self, node: ast.AST) -> None:
        # The targets are local to the comprehension; a walrus binds outside it.
        for inner in walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.add(inner.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self.add(node.name)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.add((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import


def _function_name(function: ast.expr) -> str | None:
    """Return the name of a function that is called, which may be rewritten."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(args=[wrapped, *_]):
            return _function_name(wrapped)
    return None


def changes(nodes: Iterable[ast.AST]) -> Changes:
    """Return the paths that statements or expressions may bind or mutate."""
    visitor = Changes()
    for node in nodes:
        visitor.visit(node)
    return visitor


def changed(nodes: Iterable[ast.AST]) -> PathSet:
    """Return all paths that statements or expressions may bind or mutate, in order."""
    return changes(nodes).paths


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code may read, including code of nested functions."""
    names = set()
    for node in nodes:
        for inner in walk(node):
            if isinstance(inner, ast.Name):
                if not isinstance(inner.ctx, ast.Store):
                    names.add(inner.id)
            elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                names.add(inner.target.id)
            elif isinstance(inner, ast.Call) and hasattr(inner, CONTINUATION):
                names |= live_before(getattr(inner, CONTINUATION), set())
    return names


def contains(nodes: Iterable[ast.AST], kinds: tuple[type, ...], *, in_loops: bool = True) -> bool:
    """Return whether statements contain one of these kinds, outside of nested functions."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, (*_SCOPES, ast.expr)) or (
            not in_loops and isinstance(node, (ast.For, ast.While))
        ):
            continue
        if contains(inner_statements(node), kinds, in_loops=in_loops):
            return True
    return False


def yields_in_control_flow(function: ast.FunctionDef) -> bool:
    """Return whether a `yield` stands in a part that would be outlined as a function."""
    outlined = (ast.If, ast.For, ast.While, ast.Match, ast.Try)
    pending: list[ast.AST] = [stmt for stmt in walk(function) if isinstance(stmt, outlined)]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, _SCOPES):
            pending += children(node)
    return False


def live_before(stmts: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """Return the names that are live before these statements, given those live after."""
    live = set(after)
    for stmt in reversed(stmts):
        live = _live_before_statement(stmt, live)
    return live


def live_at_end(body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """Return the names that are live where a loop ends, before its `else`."""
    live = live_before(orelse, after)
    return live | after if has_early_exit(body) else live  # a `break` skips the `else`


def has_early_exit(body: Sequence[ast.stmt]) -> bool:
    """Return whether a loop's body has exits, so that the loop needs flags."""
    leaves_early = contains(body, (ast.Break, ast.Continue), in_loops=False)
    return leaves_early or contains(body, (ast.Return,))


def live_after(stmts: Sequence[ast.stmt], after: set[str]) -> list[set[str]]:
    """Return the names that are live after each of these statements."""
    live_sets = []
    live = after
    for stmt in reversed(stmts):
        live_sets.append(live)
        live = _live_before_statement(stmt, live)
    return live_sets[::-1]


def _bound_by(*targets: ast.expr) -> set[str]:
    """Return the names that an assignment to targets binds, nested ones included."""
    return {
        inner.id
        for target in targets
        for inner in walk(target)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }


def _live_before_statement(stmt: ast.stmt, after: set[str]) -> set[str]:
    if hasattr(stmt, RESOLVES_UNBOUND):
        return after
    match stmt:
        case ast.Assign(targets=targets, value=value):
            return (after - _bound_by(*targets)) | read([value, *targets])
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            return (after - {name}) | read([value])
        case ast.If(test=test, body=body, orelse=orelse):
            return read([test]) | live_before(body, after) | live_before(orelse, after)
        case ast.While(test=test, body=body, orelse=orelse):
            end = live_at_end(body, orelse, after)
            head = end | read([test])
            return head | live_before(body, head | live_before(body, head))
        case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
            bound = _bound_by(target)
            end = live_at_end(body, orelse, after)
            body_live = live_before(body, end) - bound
            return (
                read([iterable, target])
                | end
                | body_live
                | (live_before(body, end | body_live) - bound)
            )
        case ast.FunctionDef(name=name):
            return (after - {name}) | read([stmt])
    return after | read([stmt])
