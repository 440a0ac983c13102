"""Random programs with nested control flow, and two ways to run one.

A program is data: blocks of statements over an environment of typed values. `run` executes it on
`Staged` machinery (wend's functional forms) or on `Plain` Python; the plain run also takes complex
inputs, so that the complex step gives derivatives that are exact to rounding and share nothing
with wend's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import join_loop

WIDTH = 3  # of every vector
CAPTURED = np.array([0.7, -0.4, 1.1])  # an array that programs capture

MATRIX = np.array([[0.3, -0.8, 0.1], [0.5, 0.2, -0.6], [-0.4, 0.7, 0.9]])


@dataclass(frozen=True)
class Expr:
    """An operation on values of the environment, by position; the result is appended to it."""

    op: str
    args: tuple[int, ...]
    number: float = 0.0


@dataclass(frozen=True)
class Block:
    """Statements, and the positions of the values that the block gives."""

    statements: tuple[Any, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Fori:
    bound: int | str  # a number, or "i" + the position of an int
    init: tuple[int, ...]
    body: Block  # env + (index, *carry) -> carry


@dataclass(frozen=True)
class While:
    """At most `limit` trips while a scalar of the carry stays under a bound."""

    limit: int
    init: tuple[int, ...]
    watched: int  # which of the carry
    against: int  # a scalar of the environment
    body: Block  # env + (count, *carry) -> carry


@dataclass(frozen=True)
class Mid:
    """A loop whose `before` computes: test in the middle."""

    limit: int
    init: tuple[int, ...]
    first: Block  # env + (count, *carry) -> (watched scalar, *forwarded)
    second: Block  # env + (count, *forwarded) -> carry


@dataclass(frozen=True)
class Cond:
    left: int
    right: int
    branches: tuple[Block, Block]


@dataclass(frozen=True)
class Switch:
    index: int
    branches: tuple[Block, ...]


@dataclass(frozen=True)
class Scan:
    rows: int  # a vector
    init: tuple[int, ...]
    reverse: bool
    body: Block  # env + (row, *carry) -> (*carry, y)


@dataclass(frozen=True)
class Program:
    """Takes scalars x, y and a vector v; gives a scalar."""

    block: Block

    def __call__(self, machine: Any, x: Any, y: Any, v: Any) -> Any:
        env = [x, y, v, machine.captured()]
        return machine.total(_run(machine, self.block, env))


def _run(machine: Any, block: Block, env: Sequence[Any]) -> list[Any]:
    env = list(env)
    for statement in block.statements:
        if isinstance(statement, Expr):
            env.append(
                machine.expr(statement.op, [env[k] for k in statement.args], statement.number)
            )
        else:
            env.extend(machine.control(statement, env))
    return [env[k] for k in block.results]


class Staged:
    """Runs programs by wend's functional control flow."""

    def captured(self) -> Any:
        return CAPTURED

    def total(self, values: Sequence[Any]) -> Any:
        total: Any = 0.0
        for k, value in enumerate(values):
            total = total + (k + 1) * wnp.sum(value)
        return total

    def expr(self, op: str, args: Sequence[Any], number: float) -> Any:
        return _EXPRS[op](wnp, args, number)

    def control(self, s: Any, env: list[Any]) -> list[Any]:
        def run(block: Block, *extra: Any) -> list[Any]:
            return _run(self, block, [*env, *extra])

        init = [env[k] for k in getattr(s, "init", ())]
        match s:
            case Fori():
                bound = s.bound if isinstance(s.bound, int) else env[int(s.bound[1:])] % 3
                return list(
                    wend.fori_loop(0, bound, lambda i, c: tuple(run(s.body, i, *c)), tuple(init))
                )
            case While():
                final = wend.while_loop(
                    lambda c: (c[0] < s.limit) & (c[1 + s.watched] < env[s.against]),
                    lambda c: (c[0] + 1, *run(s.body, *c)),
                    (0, *init),
                )
                return list(final[1:])
            case Mid():
                return _mid_loop(s, run, init)
            case Cond():
                return list(
                    wend.cond(
                        env[s.left] < env[s.right],
                        lambda: tuple(run(s.branches[0])),
                        lambda: tuple(run(s.branches[1])),
                    )
                )
            case Switch():
                branches = [lambda b=b: tuple(run(b)) for b in s.branches]
                return list(wend.switch(env[s.index], branches))
            case Scan():

                def step(carry: Any, row: Any) -> Any:
                    *following, y = run(s.body, row, *carry)
                    return tuple(following), y

                carry, ys = wend.scan(step, tuple(init), env[s.rows], reverse=s.reverse)
                return [*carry, ys]
        raise AssertionError(s)


def _mid_loop(s: Mid, run: Callable[..., list[Any]], init: list[Any]) -> list[Any]:
    """A While made by hand on the recording, for `before` computes what it forwards."""
    outer = current()
    assert outer is not None
    starts = [outer.lift(0), *map(outer.lift, init)]
    before = Recording("before", outer, is_region=True)
    carry = [before.param(value.type) for value in starts]
    with before.active():
        watched, *forwarded = run(s.first, *carry)
        test = before.lift((carry[0] < s.limit) & (watched < 1.0))
        handed = [before.lift(carry[0]), *map(before.lift, forwarded)]
    after = Recording("after", outer, is_region=True)
    given = [after.param(value.type) for value in handed]
    with after.active():
        following = [after.lift(given[0] + 1), *map(after.lift, run(s.second, *given))]
    node = join_loop(outer, starts, before, [test, *handed], after, following)
    return [outer.wrap(value) for value in node.results[1 : len(handed)]]


@dataclass
class Plain:
    """Runs programs in plain Python; `path` is every decision taken."""

    path: list[Any] = field(default_factory=list)

    def captured(self) -> Any:
        return CAPTURED

    def total(self, values: Sequence[Any]) -> Any:
        return sum((k + 1) * np.sum(value) for k, value in enumerate(values))

    def expr(self, op: str, args: Sequence[Any], number: float) -> Any:
        if op == "where":
            chosen = np.real(args[0]) < np.real(args[1])
            self.path.append(tuple(np.atleast_1d(chosen)))
            return np.where(chosen, args[2], args[3])[()]
        if op == "abs":
            chosen = np.real(args[0]) < 0
            self.path.append(tuple(np.atleast_1d(chosen)))
            return np.where(chosen, -args[0], args[0])[()]
        return _EXPRS[op](np, args, number)

    def decide(self, choice: Any) -> Any:
        self.path.append(choice)
        return choice

    def control(self, s: Any, env: list[Any]) -> list[Any]:
        def run(block: Block, *extra: Any) -> list[Any]:
            return _run(self, block, [*env, *extra])

        values = [env[k] for k in getattr(s, "init", ())]
        match s:
            case Fori():
                bound = s.bound if isinstance(s.bound, int) else env[int(s.bound[1:])] % 3
                for i in range(bound):
                    values = run(s.body, i, *values)
                return values
            case While():
                count = 0
                bound = np.real(env[s.against])
                while self.decide(bool(count < s.limit and np.real(values[s.watched]) < bound)):
                    values = run(s.body, count, *values)
                    count += 1
                return values
            case Mid():
                count = 0
                while True:
                    watched, *values = run(s.first, count, *values)
                    if not self.decide(bool(count < s.limit and np.real(watched) < 1.0)):
                        return values
                    values = run(s.second, count, *values)
                    count += 1
            case Cond():
                left = self.decide(bool(np.real(env[s.left]) < np.real(env[s.right])))
                return run(s.branches[0 if left else 1])
            case Switch():
                return run(s.branches[min(max(env[s.index], 0), len(s.branches) - 1)])
            case Scan():
                ys: list[Any] = [None] * WIDTH
                order = range(WIDTH)[::-1] if s.reverse else range(WIDTH)
                for k in order:
                    *values, ys[k] = run(s.body, env[s.rows][k], *values)
                return [*values, np.stack(ys)]
        raise AssertionError(s)


# name -> what it is, for NumPy's namespace or wend's. Bounded, so that loops do not overflow.
_EXPRS: dict[str, Callable[[Any, Sequence[Any], float], Any]] = {
    "sin": lambda m, a, n: m.sin(a[0]),
    "tanh": lambda m, a, n: m.tanh(a[0]),
    "expsin": lambda m, a, n: m.exp(0.5 * m.sin(a[0])),
    "scale": lambda m, a, n: a[0] * n,
    "shift": lambda m, a, n: a[0] + n,
    "square": lambda m, a, n: m.sin(a[0]) * m.sin(a[0]),
    "add": lambda m, a, n: 0.5 * (a[0] + a[1]),
    "sub": lambda m, a, n: a[0] - a[1],
    "mul": lambda m, a, n: m.tanh(a[0]) * a[1],
    "div": lambda m, a, n: a[0] / (2.0 + m.sin(a[1])),
    "where": lambda m, a, n: m.where(a[0] < a[1], a[2], a[3]),
    "abs": lambda m, a, n: m.abs(a[0]),
    "matvec": lambda m, a, n: a[0] @ MATRIX,
    "number": lambda m, a, n: m.asarray(n)[()] if m is np else np.float64(n),
    "fill": lambda m, a, n: np.full(WIDTH, n),
    "sum": lambda m, a, n: m.sum(a[0]),
    "pick": lambda m, a, n: a[0][int(n)],
    "spread": lambda m, a, n: a[0] * m.ones(WIDTH),
    "float": lambda m, a, n: a[0] * n,
    "next": lambda m, a, n: a[0] + 1,
    "count": lambda m, a, n: np.int64(n) if m is wnp else int(n),
}
# name -> (kinds of the operands, kind of the result); f scalar, v vector, i int, = either alike
_KINDS = {
    "sin": ("=", "="),
    "tanh": ("=", "="),
    "expsin": ("=", "="),
    "scale": ("=", "="),
    "shift": ("=", "="),
    "square": ("=", "="),
    "add": ("==", "="),
    "sub": ("==", "="),
    "mul": ("==", "="),
    "div": ("==", "="),
    "where": ("====", "="),
    "abs": ("=", "="),
    "matvec": ("v", "v"),
    "number": ("", "f"),
    "fill": ("", "v"),
    "sum": ("v", "f"),
    "pick": ("v", "f"),
    "spread": ("f", "v"),
    "float": ("i", "f"),
    "next": ("i", "i"),
    "count": ("", "i"),
}


class _Maker:
    """Draws programs. `kinds` is the kind of every value of the environment."""

    def __init__(self, draw: Any, *, scalars_only: bool) -> None:
        self.draw = draw
        self.scalars_only = scalars_only

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def position(self, kinds: Sequence[str], kind: str) -> int | None:
        fitting = [k for k, found in enumerate(kinds) if found == kind]
        # The newest first, so that programs shrink to short chains and values are used.
        return self.choose(fitting[::-1]) if fitting else None

    def expr(self, kinds: list[str], wanted: str | None = None) -> Expr | None:
        """An expression of the kind wanted, or of any."""
        kind = wanted or self.choose("fv" if not self.scalars_only else "f")
        fitting = [op for op, (_, result) in _KINDS.items() if result in ("=", kind)]
        if kind == "i":
            fitting = ["next", "count"]
        if self.scalars_only:
            fitting = [
                op for op in fitting if op not in ("sum", "pick", "spread", "fill", "matvec")
            ]
        op = self.choose(fitting)
        args = []
        for operand in _KINDS[op][0]:
            found = self.position(kinds, kind if operand == "=" else operand)
            if found is None:
                return None
            args.append(found)
        number = (
            self.choose([0, 1, 2])
            if op in ("pick", "count")
            else self.choose([0.0, 0.5, -0.3, 1.5, -1.0])
        )
        kinds.append(kind)
        return Expr(op, tuple(args), number)

    def value(self, kinds: list[str], kind: str, statements: list[Any]) -> int:
        """A position of this kind: something there is, or something new."""
        if self.choose([0, 1, 2]) == 0 and kind in kinds:
            found = self.position(kinds, kind)
            assert found is not None
            return found
        made = self.expr(kinds, kind)
        if made is None:
            found = self.position(kinds, kind)
            if found is not None:
                return found
            made = Expr({"f": "number", "v": "fill", "i": "count"}[kind], (), 1.0)
            kinds.append(kind)
        statements.append(made)
        return len(kinds) - 1

    def block(self, kinds: Sequence[str], results: Sequence[str], depth: int, length: int) -> Block:
        own, statements = list(kinds), list[Any]()
        for _ in range(self.choose(range(length + 1))):
            made = self.statement(own, depth)
            if made is not None:
                statements.append(made)
        places = tuple(self.value(own, kind, statements) for kind in results)
        return Block(tuple(statements), places)

    def statement(self, kinds: list[str], depth: int) -> Any:
        if depth == 0:
            return self.expr(kinds)
        options = [self.expr, self.fori, self.cond, self.while_, self.mid, self.switch]
        if not self.scalars_only:
            options.append(self.scan)
        made = self.choose(options)
        return made(kinds) if made == self.expr else made(kinds, depth - 1)

    def carry(self, kinds: Sequence[str], first: str = "") -> tuple[list[str], tuple[int, ...]]:
        pool = "f" if self.scalars_only else "fv"
        wanted = [*first, *(self.choose(pool) for _ in range(self.choose([1, 2, 0, 3])))]
        if self.choose([False, False, True]) and "i" in kinds:
            wanted.append("i")
        found = [(kind, self.position(kinds, kind)) for kind in wanted]
        kept = [(kind, place) for kind, place in found if place is not None]
        return [kind for kind, _ in kept], tuple(place for _, place in kept)

    def fori(self, kinds: list[str], depth: int) -> Any:
        carried, init = self.carry(kinds)
        bound: int | str = self.choose([2, 3, 1, 0, 4])
        ints = self.position(kinds, "i")
        if ints is not None and self.choose([False, True]):
            bound = f"i{ints}"
        body = self.block([*kinds, "i", *carried], carried, depth, 2)
        kinds.extend(carried)
        return Fori(bound, init, body)

    def while_(self, kinds: list[str], depth: int) -> Any:
        carried, init = self.carry(kinds, "f")
        against = self.position(kinds, "f")
        assert against is not None
        watched = carried.index("f")
        body = self.block([*kinds, "i", *carried], carried, depth, 2)
        kinds.extend(carried)
        return While(self.choose([3, 1, 0, 4]), init, watched, against, body)

    def mid(self, kinds: list[str], depth: int) -> Any:
        carried, init = self.carry(kinds)
        forwarded = [self.choose("f" if self.scalars_only else "fv") for _ in range(2)]
        first = self.block([*kinds, "i", *carried], ["f", *forwarded], depth, 2)
        second = self.block([*kinds, "i", *forwarded], carried, 0, 2)
        kinds.extend(forwarded)
        return Mid(self.choose([2, 1, 0, 3]), init, first, second)

    def cond(self, kinds: list[str], depth: int) -> Any:
        pool = "f" if self.scalars_only else "fv"
        results = [self.choose(pool) for _ in range(self.choose([1, 2]))]
        left, right = self.position(kinds, "f"), self.position(kinds, "f")
        assert left is not None
        assert right is not None
        branches = tuple(self.block(kinds, results, depth, 2) for _ in range(2))
        kinds.extend(results)
        return Cond(left, right, branches)

    def switch(self, kinds: list[str], depth: int) -> Any:
        index = self.position(kinds, "i")
        if index is None:
            return self.expr(kinds)
        results = [self.choose("f" if self.scalars_only else "fv")]
        branches = tuple(self.block(kinds, results, 0, 1) for _ in range(3))
        kinds.extend(results)
        return Switch(index, branches)

    def scan(self, kinds: list[str], depth: int) -> Any:
        carried, init = self.carry(kinds)
        rows = self.position(kinds, "v")
        assert rows is not None
        body = self.block([*kinds, "f", *carried], [*carried, "f"], depth, 2)
        kinds.extend([*carried, "v"])
        return Scan(rows, init, self.choose([False, True]), body)


@st.composite
def programs(draw: Any, *, depth: int = 3, length: int = 3, scalars_only: bool = False) -> Program:
    """Programs with control flow nested up to `depth`."""
    maker = _Maker(draw, scalars_only=scalars_only)
    results = ["f", "f"] if scalars_only else ["f", "v"]
    return Program(maker.block(["f", "f", "v", "v"], results, depth, length))


def staged(program: Program) -> Callable[..., Any]:
    """The program as a function that wend traces."""
    return lambda x, y, v: program(Staged(), x, y, v)


def plain(program: Program, x: Any, y: Any, v: Any) -> tuple[Any, list[Any]]:
    """The value, and the path taken."""
    machine = Plain()
    return program(machine, x, y, v), machine.path


def complex_step(program: Program, at: np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """The gradient at (x, y, *v) in plain Python, exact to rounding; and the path taken."""
    found, path = [], []
    for k in range(len(at)):
        moved = at.astype(complex)
        moved[k] += 1e-30j
        value, path = plain(program, moved[0], moved[1], moved[2:])
        found.append(np.imag(value) / 1e-30)
    return np.array(found), path
