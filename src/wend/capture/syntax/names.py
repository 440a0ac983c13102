"""What statements do to names: which they change, which they read, which are live where.

A *place* is what control flow may have to carry: a name (`x`), or an attribute of one (`self.h`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from wend.capture.syntax.nodes import (
    Visitor,
    children,
    inner_statements,
    walk,
)

Places = dict[str, None]  # an ordered set

PREFIX = "_wend_"
# What a `return` in a loop sets
RETURNED = f"{PREFIX}returned"
RETURN_VALUE = f"{PREFIX}value"

# Where a call of the rest of a function holds its statements, for they are part of what it does
REST = f"{PREFIX}rest"

# Marks a statement put in where a name that may not be bound is settled: it reads and changes
# nothing but that name
SETTLES = f"{PREFIX}settles"

# Methods that change the list, dict or set they are called on.
MUTATORS = frozenset(
    {
        *("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add"),
        *("appendleft", "extendleft", "popleft"),
    }
)
# What `x[k] = v` and its kin become: functions of the runtime that change their first argument.
SETTERS = frozenset({"set_item", "set_item_in_place", "in_place"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def place_of(node: ast.expr) -> str | None:
    """The place that an expression names, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = place_of(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def root(node: ast.expr) -> str | None:
    """The place whose contents a store into `node` changes: `d` for `d["k"][0] = v`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return place_of(node)


class Changes(Visitor):
    """Collects the places that are bound, and those whose contents are mutated."""

    def __init__(self) -> None:
        self.places: Places = {}
        self.bound: Places = {}
        self.mutated: Places = {}
        self.rebound: Places = {}  # those bound to something else, not to themselves changed

    def add(self, place: str | None) -> None:
        if place is not None:
            self.places[place] = self.bound[place] = self.rebound[place] = None

    def mutate(self, place: str | None) -> None:
        if place is not None:
            self.places[place] = self.mutated[place] = None

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.add(place_of(node))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.mutate(root(node))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=target)],
                value=ast.Call(func=ast.Attribute(attr=setter), args=[ast.Name(id=changed), *_]),
            ) if setter in SETTERS and target == changed:
                self.places[target] = self.bound[target] = None
                self.visit(node.value)
            case _:
                self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            self.mutate(root(node.func.value))
        if isinstance(node.func, ast.Attribute) and node.func.attr in SETTERS:
            self.mutate(root(node.args[0]))
        for inner in getattr(node, REST, ()):
            self.visit(inner)
        self.generic_visit(node)

    def _visit_block(self, node: ast.stmt) -> None:
        # A `return` in it sets flags.
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
        # Its own targets are its own; a walrus in it binds outside.
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


def changes(nodes: Iterable[ast.AST]) -> Changes:
    """What some statements or expressions may change: places bound, and contents mutated."""
    visitor = Changes()
    for node in nodes:
        visitor.visit(node)
    return visitor


def changed(nodes: Iterable[ast.AST]) -> Places:
    """The places that some statements or expressions may change, in order."""
    return changes(nodes).places


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that some code may read, those of functions defined in it included."""
    found = set()
    for node in nodes:
        for inner in walk(node):
            if isinstance(inner, ast.Name):
                if not isinstance(inner.ctx, ast.Store):
                    found.add(inner.id)
            elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                found.add(inner.target.id)
            elif isinstance(inner, ast.Call) and hasattr(inner, REST):
                found |= live_before(getattr(inner, REST), set())
    return found


def contains(nodes: Iterable[ast.AST], kinds: tuple[type, ...], *, in_loops: bool = True) -> bool:
    """Whether such a statement belongs to these, functions defined in them left out."""
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


def yields_in_parts(function: ast.FunctionDef) -> bool:
    """Whether a function has a `yield` in a part that would become a function of its own."""
    parts: list[ast.AST] = [
        stmt for stmt in walk(function) if isinstance(stmt, (ast.If, ast.For, ast.While, ast.Match))
    ]
    while parts:
        node = parts.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, _SCOPES):
            parts += children(node)
    return False


def live_before(stmts: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """The names whose values may be read by these statements, or later if they are in `after`."""
    live = set(after)
    for stmt in reversed(stmts):
        live = _live_before_one(stmt, live)
    return live


def live_at_end(body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """The names that are live where a loop ends, its `else` not yet run."""
    live = live_before(orelse, after)
    return live | after if may_leave_early(body) else live  # a `break` passes by the `else`


def may_leave_early(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body has exits, and the loop flags that tell of them."""
    leaves_early = contains(body, (ast.Break, ast.Continue), in_loops=False)
    return leaves_early or contains(body, (ast.Return,))


def live_after(stmts: Sequence[ast.stmt], after: set[str]) -> list[set[str]]:
    """The names whose values may be read after each of these statements."""
    found = []
    live = after
    for stmt in reversed(stmts):
        found.append(live)
        live = _live_before_one(stmt, live)
    return found[::-1]


def _live_before_one(stmt: ast.stmt, after: set[str]) -> set[str]:
    if hasattr(stmt, SETTLES):
        return after
    match stmt:
        case ast.Assign(targets=targets, value=value):
            killed = {t.id for t in targets if isinstance(t, ast.Name)}
            killed |= {
                item.id
                for t in targets
                if isinstance(t, (ast.Tuple, ast.List))
                for item in t.elts
                if isinstance(item, ast.Name)
            }
            return (after - killed) | read([value, *(t for t in targets)])
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            return (after - {name}) | read([value])
        case ast.If(test=test, body=body, orelse=orelse):
            return read([test]) | live_before(body, after) | live_before(orelse, after)
        case ast.While(test=test, body=body, orelse=orelse):
            end = live_at_end(body, orelse, after)
            head = end | read([test])
            return head | live_before(body, head | live_before(body, head))
        case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
            bound = {n.id for n in walk(target) if isinstance(n, ast.Name)}
            end = live_at_end(body, orelse, after)
            once = live_before(body, end) - bound
            return read([iterable, target]) | end | once | (live_before(body, end | once) - bound)
        case ast.FunctionDef(name=name):
            return (after - {name}) | read([stmt])
    return after | read([stmt])
