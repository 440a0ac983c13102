"""Random graphs that push, pop, change and fork lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from wend.ir.graph import Graph, Value
from wend.ir.types import ListType, MaybeType, tensor
from wend.ops import elementwise, lists, maybe
from wend.ops.build import Build
from wend.passes.pipeline import CANONICALIZE, run_passes

F64, I64 = tensor("f8"), tensor("i8")
ROW = ListType(F64)
MAYBE = MaybeType(F64)
ARRAY = tensor("f8", 3)
TYPES = {
    "f": F64,
    "i": I64,
    "l": ROW,
    "L": ListType(ROW),
    "m": ListType(MAYBE),
    "a": ARRAY,
    "A": ListType(ARRAY),
}
LISTS = ("l", "L", "m", "A")
# What a statement takes, and what it gives
STATEMENTS = {
    "new": ("", "l"),
    "new rows": ("", "L"),
    "new maybes": ("", "m"),
    "push": ("lf", "l"),
    "push row": ("Ll", "L"),
    "push maybe": ("mf", "m"),
    "push nothing": ("m", "m"),
    "pop": ("l", "lf"),
    "pop row": ("L", "Ll"),
    "get": ("li", "f"),
    "get row": ("Li", "l"),
    "get maybe": ("mi", "f"),
    "set": ("lif", "l"),
    "set row": ("Lil", "L"),
    "add at": ("lif", "l"),
    "add row at": ("Lil", "L"),
    "add maybe at": ("mif", "m"),
    "new arrays": ("", "A"),
    "push array": ("Aa", "A"),
    "pop array": ("A", "Aa"),
    "get array": ("Ai", "a"),
    "set array": ("Aia", "A"),
    "add array at": ("Aia", "A"),
    "zeros of arrays": ("A", "A"),
    "spread": ("f", "a"),
    "sum": ("aa", "a"),
    "put": ("aa", "a"),
    "total": ("a", "f"),
    "zeros": ("l", "l"),
    "zeros of rows": ("L", "L"),
    "zeros of maybes": ("m", "m"),
    "add": ("ll", "l"),
    "add arrays": ("AA", "A"),
    "add rows": ("LL", "L"),
    "add maybes": ("mm", "m"),
    "len": ("l", "i"),
    "len of rows": ("L", "i"),
    "mul": ("ff", "f"),
    "next": ("i", "i"),
}


class Maker:
    """Writes random statements; `env` holds the values there are, by kind."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def choose(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def value(self, b: Build, env: dict[str, list[Value]], kind: str) -> Value:
        if env.get(kind) and self.choose([True, True, True, False]):
            # The newest are used most, so that lists grow.
            return self.choose(env[kind][-3:])
        match kind:
            case "f":
                return b.constant(self.choose([0.5, 1.5, -2.0]), np.float64)
            case "i":
                return b.integer(self.choose([0, 0, 1, -1, 2]))
            case "a":
                return b.constant(self.choose([[1.0, 2.0, 3.0], [0.5, -0.5, 0.0]]), np.float64)
        return b.list_new(TYPES[kind].element)  # type: ignore[union-attr]

    def statements(self, b: Build, env: dict[str, list[Value]], depth: int, count: int) -> None:
        for _ in range(count):
            if depth and self.choose([True, False, False]):
                self.choose([self.loop, self.branch])(b, env, depth - 1)
                continue
            name = self.choose(STATEMENTS)
            takes, gives = STATEMENTS[name]
            operands = [self.value(b, env, kind) for kind in takes]
            results = self.emit(b, name, operands)
            for kind, result in zip(gives, results, strict=True):
                env.setdefault(kind, []).append(result)

    def emit(self, b: Build, name: str, x: list[Value]) -> tuple[Value, ...]:
        if name.split()[0] in ("pop", "get", "set") or name.endswith(" at"):
            x = self.safe(b, x)
        match name.split():
            case ["new", *_]:
                of = {"new": F64, "new rows": ROW, "new maybes": MAYBE, "new arrays": ARRAY}
                return (b.list_new(of[name]),)
            case ["push", "nothing"]:
                return (b.list_push(x[0], b.zero(F64)),)
            case ["push", *_]:
                return (b.list_push(*x),)
            case ["pop", *_]:
                return b.list_pop(*x)
            case ["get", "maybe"]:
                return (b.instantiate(b.list_get(*x), b.constant(0.0, np.float64)),)
            case ["get", *_]:
                return (b.list_get(*x),)
            case ["set", *_]:
                return (b.list_set(*x),)
            case ["add", *_, "at"]:
                return (b.list_add_at(*x),)
            case ["zeros", *_]:
                return (b.zeros_like(x[0]),)
            case ["add", *_]:
                return (self.sum(b, *x),)
            case ["spread"]:
                return (b.broadcast_to(x[0], (3,)),)
            case ["sum"]:
                return (b.add(*x),)
            case ["put"]:
                return (b.set_slice(x[0], b.part(x[1], 0, 1), slices=((1, 2, 1),)),)
            case ["total"]:
                return (digest(b, x[0]),)
            case ["len", *_]:
                return (b.list_len(x[0]),)
            case ["mul"]:
                return (b.mul(*x),)
        return (b.add(x[0], b.integer(1)),)

    def safe(self, b: Build, x: list[Value]) -> list[Value]:
        """The operands with something in the list, and an index in it; now and then as they are."""
        if self.choose([False] * 20 + [True]):
            return x
        kind = next(kind for kind, type in TYPES.items() if type == x[0].type)
        element = {"l": "f", "m": "f", "L": "l", "A": "a"}[kind]
        if self.choose([True] * 9 + [False]):
            x = [b.list_push(x[0], self.value(b, {}, element)), *x[1:]]
        if len(x) > 1:
            length = b.emit(elementwise.maximum, b.list_len(x[0]), b.integer(1))
            x = [x[0], b.emit(elementwise.remainder, x[1], length), *x[2:]]
        return x

    def sum(self, b: Build, x: Value, y: Value) -> Value:
        """The sum of lists of one length, mostly; never of two versions that share items."""
        copied = b.emit(lists.list_add, b.zeros_like(y), y)
        if self.choose([False] * 20 + [True]):
            return b.emit(lists.list_add, x, copied)
        return b.emit(lists.list_add, copied, b.emit(lists.list_add, copied, copied))

    def kinds(self) -> list[str]:
        pool = ["l", "L", "f", "m", "i", "A", "a"]
        return [self.choose(pool) for _ in range(self.choose([1, 2, 3, 4]))]

    def loop(self, b: Build, env: dict[str, list[Value]], depth: int) -> None:
        kinds = self.kinds()
        rest = [kind for kind in TYPES if env.get(kind)]
        starts = [self.value(b, env, kind) for kind in kinds]
        invariants = [self.choose(env[kind]) for kind in rest]
        trips = self.choose([2, 3, 1, 0])

        before = Build("before")
        count, carry, inner = self.open(before, kinds, rest)
        self.statements(before, inner, 0, self.choose([0, 1, 2]))
        handed = [
            self.choose([p, self.value(before, inner, k)])
            for k, p in zip(kinds, carry, strict=True)
        ]
        test = before.lt(count, before.integer(trips))

        after = Build("after")
        count_after, carry, inner = self.open(after, kinds, rest)
        self.statements(after, inner, depth, self.choose([1, 2, 3]))
        following = [self.value(after, inner, kind) for kind in kinds]
        node = b.while_(
            [b.integer(0), *starts],
            invariants,
            before.finish([test, count, *handed]),
            after.finish([after.add(count_after, after.integer(1)), *following]),
        )
        for kind, result in zip(kinds, node.results[1:], strict=True):
            env.setdefault(kind, []).append(result)

    def open(self, b: Build, kinds: list[str], rest: list[str]) -> Any:
        count = b.param(I64)
        carry = [b.param(TYPES[kind]) for kind in kinds]
        given = [b.param(TYPES[kind]) for kind in rest]
        env: dict[str, list[Value]] = {"i": [count]}
        for kind, value in zip([*rest, *kinds], [*given, *carry], strict=True):
            env.setdefault(kind, []).append(value)
        return count, carry, env

    def branch(self, b: Build, env: dict[str, list[Value]], depth: int) -> None:
        kinds, rest = self.kinds(), [kind for kind in TYPES if env.get(kind)]
        operands = [self.choose(env[kind]) for kind in rest]
        test = b.lt(self.value(b, env, "f"), self.value(b, env, "f"))
        branches = []
        for number in range(2):
            inside = Build(f"branch{number}")
            inner = {kind: [inside.param(TYPES[kind])] for kind in rest}
            self.statements(inside, inner, depth, self.choose([0, 1, 2]))
            branches.append(inside.finish([self.value(inside, inner, kind) for kind in kinds]))
        node = b.if_(test, operands, branches)
        for kind, result in zip(kinds, node.results, strict=True):
            env.setdefault(kind, []).append(result)


def digest(b: Build, array: Value) -> Value:
    """A number that depends on every element of an array and its position."""
    return b.reduce_sum(b.mul(array, b.constant([1.0, 0.5, 0.25], np.float64)), axes=(0,))


def checksum(b: Build, list: Value) -> Value:
    """A number that depends on every element and its position."""
    before, after = Build("before"), Build("after")
    k, total, inner = (before.param(type) for type in (I64, F64, list.type))
    test = before.lt(k, before.list_len(inner))
    first = before.finish([test, k, total])
    k, total, inner = (after.param(type) for type in (I64, F64, list.type))
    element = after.list_get(inner, k)
    if isinstance(element.type, ListType):
        element = checksum(after, element)
    if element.type == ARRAY:
        element = digest(after, element)
    if isinstance(element.type, MaybeType):
        element = after.instantiate(element, after.constant(0.0, np.float64))
    weighted = after.mul(after.constant(1.25, np.float64), total)
    second = after.finish([after.add(k, after.integer(1)), after.add(weighted, element)])
    length = b.cast(b.list_len(list), np.float64)
    loop = b.while_([b.integer(0), length], [list], first, second)
    return loop.results[1]


def _tidy(graph: Graph) -> Graph:
    """Without what nobody reads: a backend may drop that, and the errors that it would raise."""
    return run_passes(graph, CANONICALIZE)


@st.composite
def list_programs(draw: Any) -> Graph:
    """A graph of two numbers: numbers, and checksums of lists."""
    b = Build("lists")
    maker = Maker(draw)
    env: dict[str, list[Value]] = {"f": [b.param(F64), b.param(F64)]}
    maker.statements(b, env, 2, draw(st.integers(3, 9)))
    results = [checksum(b, v) for kind in LISTS for v in env.get(kind, [])[-4:]]
    return _tidy(b.finish([*env["f"][-2:], *results]))


@st.composite
def list_pipelines(draw: Any) -> list[Graph]:
    """Graphs of which each takes the results of the one before: lists among them."""
    maker = Maker(draw)
    kinds, stages = ["f", "f"], []
    for number in range(draw(st.sampled_from([2, 3]))):
        b = Build(f"stage{number}")
        env: dict[str, list[Value]] = {}
        for kind in kinds:
            is_maybe = kind.startswith("?")
            param = b.param(MaybeType(TYPES[kind[1:]]) if is_maybe else TYPES[kind])
            kind = kind.removeprefix("?")
            if is_maybe and maker.choose([True, False]):
                kind, param = "f", _digest_if_there(b, param)
            elif is_maybe:
                param = b.emit(maybe.instantiate, param, maker.value(b, env, kind))
            env.setdefault(kind, []).append(param)
        maker.statements(b, env, 1, draw(st.integers(1, 6)))
        kinds = ["f", *(maker.choose(["l", "L", "m", "A", "?l", "?A", "?L"]) for _ in range(3))]
        results = [_handed(b, maker, env, kind) for kind in kinds]
        stages.append(_tidy(b.finish(results)))
    b = Build("end")
    params = [b.param(value.type) for value in stages[-1].results]
    found = [
        _digest_if_there(b, p) if isinstance(p.type, MaybeType) else checksum(b, p)
        for p in params[1:]
    ]
    return [*stages, b.finish([params[0], *found])]


def _digest_if_there(b: Build, list: Value) -> Value:
    absent, there = Build("absent"), Build("there")
    absent.param(list.type)
    first = absent.finish([absent.constant(-1.0, np.float64)])
    second = there.finish([checksum(there, there.present(there.param(list.type)))])
    test = b.emit(elementwise.bit_not, b.emit(maybe.is_zero, list))
    return b.if_(test, [list], [first, second]).results[0]


def _handed(b: Build, maker: Maker, env: dict[str, list[Value]], kind: str) -> Value:
    """A value to be handed on, mostly a list with something in it."""
    value = maker.value(b, env, kind.removeprefix("?"))
    if kind != "f":
        for _ in range(maker.choose([0, 1, 3])):
            item = {"l": "f", "m": "f", "L": "l", "A": "a"}[kind.removeprefix("?")]
            value = b.list_push(value, maker.value(b, env, item))
    if not kind.startswith("?"):
        return value
    absent, there = Build("absent"), Build("there")
    first = absent.finish([absent.zero(absent.param(value.type).type)])
    second = there.finish([there.param(value.type)])
    test = b.lt(maker.value(b, env, "f"), maker.value(b, env, "f"))
    return b.if_(test, [value], [first, second]).results[0]
