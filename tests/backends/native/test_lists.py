"""Lists in native code: random graphs that push, pop, change and fork lists, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wend.backends.native.backend import BACKEND
from wend.backends.native.ownership import Ownership
from wend.backends.native.places import Places
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, MaybeType, tensor
from wend.ir.verify import verify
from wend.ops import elementwise, lists
from wend.ops.build import Build
from wend.runtime.sequence import Sequence

F64, I64 = tensor("f8"), tensor("i8")
ROW = ListType(F64)
MAYBE = MaybeType(F64)
TYPES = {"f": F64, "i": I64, "l": ROW, "ll": ListType(ROW), "m": ListType(MAYBE)}
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
    "zeros": ("l", "l"),
    "zeros of rows": ("L", "L"),
    "zeros of maybes": ("m", "m"),
    "add": ("ll", "l"),
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
        kind = "ll" if kind == "L" else kind
        if env.get(kind) and self.choose([True, True, True, False]):
            # The newest are used most, so that lists grow.
            return self.choose(env[kind][-3:])
        match kind:
            case "f":
                return b.constant(self.choose([0.5, 1.5, -2.0]), np.float64)
            case "i":
                return b.integer(self.choose([0, 0, 1, -1, 2]))
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
                env.setdefault(kind.replace("L", "ll"), []).append(result)

    def emit(self, b: Build, name: str, x: list[Value]) -> tuple[Value, ...]:
        if name.split()[0] in ("pop", "get", "set") or name.endswith(" at"):
            x = self.safe(b, x)
        match name.split():
            case ["new", *_]:
                element = {"new": F64, "new rows": ROW, "new maybes": MAYBE}[name]
                return (b.list_new(element),)
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
        element = {"l": "f", "m": "f", "ll": "l"}[kind]
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
        pool = ["l", "ll", "f", "m", "i"]
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
    if isinstance(element.type, MaybeType):
        element = after.instantiate(element, after.constant(0.0, np.float64))
    weighted = after.mul(after.constant(1.25, np.float64), total)
    second = after.finish([after.add(k, after.integer(1)), after.add(weighted, element)])
    length = b.cast(b.list_len(list), np.float64)
    loop = b.while_([b.integer(0), length], [list], first, second)
    return loop.results[1]


@st.composite
def list_programs(draw: Any) -> Graph:
    b = Build("lists")
    maker = Maker(draw)
    env: dict[str, list[Value]] = {"f": [b.param(F64), b.param(F64)]}
    maker.statements(b, env, 2, draw(st.integers(3, 9)))
    results = [checksum(b, v) for kind in ("l", "ll", "m") for v in env.get(kind, [])[-4:]]
    return b.finish([*env["f"][-2:], *results])


def outcome(backend: Any, graph: Graph) -> Any:
    try:
        arguments = [0.75, 1.25][: len(graph.params)]
        return [float(x) for x in backend.compile(graph)(arguments)]
    except (IndexError, ValueError) as error:
        return type(error)


@settings(max_examples=8 * settings().max_examples)
@given(list_programs())
def test_random_lists(graph: Graph) -> None:
    verify(graph)
    expected, found = outcome(NUMPY, graph), outcome(BACKEND, graph)
    if isinstance(expected, type):
        assert found is expected
        return
    np.testing.assert_array_equal(found, expected)


# What is found before code is written
def filled(b: Build, count: int, start: Value | None = None) -> Node:
    """A loop that pushes its counter."""
    before, after = Build("before"), Build("after")
    k, l = before.param(I64), before.param(ROW)
    test = before.lt(k, before.integer(count))
    first = before.finish([test, k, before.list_push(l, before.cast(k, np.float64))])
    k, l = after.param(I64), after.param(ROW)
    second = after.finish([after.add(k, after.integer(1)), l])
    return b.while_([b.integer(0), start or b.list_new(F64)], [], first, second)


def changed(b: Build, list: Value, count: int) -> Node:
    """A loop that adds 1 to elements 0, 1, …"""
    before, after = Build("before"), Build("after")
    k, l = before.param(I64), before.param(ROW)
    first = before.finish([before.lt(k, before.integer(count)), k, l])
    k, l = after.param(I64), after.param(ROW)
    one = after.constant(1.0, np.float64)
    second = after.finish([after.add(k, after.integer(1)), after.list_add_at(l, k, one)])
    return b.while_([b.integer(0), list], [], first, second)


def ownership(graph: Graph) -> Ownership:
    found = Ownership(Places(graph))
    found.find(graph, set())
    return found


def test_a_tape_is_recognised() -> None:
    b = Build("tape")
    tape = filled(b, 5).results[1]
    graph = b.finish([checksum(b, tape)])
    assert Places(graph).of(tape).tape is not None


def test_two_loops_from_one_empty_list_have_tapes_of_their_own() -> None:
    b = Build("tapes")
    empty = b.list_new(F64)
    first, second = (filled(b, 5, empty).results[1] for _ in range(2))
    places = Places(b.finish([checksum(b, first), checksum(b, second)]))
    assert places.of(first).arena is not places.of(second).arena


def test_tapes_of_a_loop_share_records() -> None:
    from tests.helpers.graphs import gradient

    import wend
    import wend.numpy as wnp

    def step(c: Any) -> Any:
        return wnp.sin(c[1]) * c[0], wnp.exp(c[0]) * 0.1

    graph = gradient(
        lambda x: wend.while_loop(lambda c: c[0] < 2.0, step, (x, x))[1], 1.0, argnums=0
    )
    places = Places(graph)
    pushed = [node for node in graph.walk() if node.op is lists.list_push]
    assert len(pushed) > 1
    regions = {id(places.of(node.results[0]).arena) for node in pushed}
    assert len(regions) == 1
    assert sum(places.leads(node) for node in pushed) == 1


def test_an_empty_list_has_no_arena_of_its_own() -> None:
    b = Build("tapes")
    first, second = (filled(b, 5, b.list_new(F64)).results[1] for _ in range(2))
    graph = b.finish([checksum(b, first), checksum(b, second)])
    assert len(Places(graph).arenas) == 2


def test_tapes_of_an_inner_loop_are_one_place_in_a_record() -> None:
    from tests.helpers.graphs import gradient

    import wend
    import wend.numpy as wnp

    def inner(c: Any) -> Any:
        return wnp.sin(c[1]) * c[0], wnp.exp(c[0]) * 0.1

    def outer(c: Any) -> Any:
        return wend.while_loop(lambda c: c[0] < 2.0, inner, (c[0], wnp.sin(c[1])))

    def program(x: Any) -> Any:
        return wend.while_loop(lambda c: c[1] < 3.0, outer, (x, x))[1]

    graph = gradient(program, 1.0, argnums=0)
    places = Places(graph)
    rows = [
        places.of(node.results[0])
        for node in graph.walk()
        if node.op is lists.list_push and isinstance(node.operands[1].type, ListType)
    ]
    assert len(rows) > 1
    assert len({(place.arena.number, place.offset) for place in rows}) == 1
    assert not rows[0].arena.references


def test_changes_happen_in_place() -> None:
    b = Build("changes")
    done = changed(b, b.zeros_like(filled(b, 5).results[1]), 5)
    graph = b.finish([checksum(b, done.results[1])])
    found = ownership(graph)
    assert {node.op.name for node in found.in_place} == {"list_add_at"}
    assert not found.copied


def test_a_list_read_later_is_copied_once() -> None:
    b = Build("changes")
    zeros = b.zeros_like(filled(b, 5).results[1])
    done = changed(b, zeros, 5)
    graph = b.finish([checksum(b, done.results[1]), checksum(b, zeros)])
    found = ownership(graph)
    assert {node.op.name for node in found.in_place} == {"list_add_at"}
    assert found.copied == {(done, 1)}
    assert outcome(BACKEND, graph) == outcome(NUMPY, graph)


def test_positions_out_of_range_are_errors() -> None:
    for index in (3, -4):
        b = Build("range")
        list = filled(b, 2).results[1]
        graph = b.finish([b.list_get(list, b.integer(index))])
        assert outcome(BACKEND, graph) is IndexError
    b = Build("range")
    graph = b.finish([b.list_get(filled(b, 2).results[1], b.integer(-3))])
    assert outcome(BACKEND, graph) == [0.0]


def test_an_argument_that_nobody_uses_has_a_place() -> None:
    b = Build("unused")
    b.param(ROW)
    used = b.param(ROW)
    graph = b.finish([b.list_get(used, b.integer(1))])
    assert sorted(Places(graph).of(param).arena.number for param in graph.params) == [0, 1]
    execute = BACKEND.compile(graph)
    for _ in range(3):
        assert execute([Sequence.of([1.0, 2.0]), Sequence.of([3.0, 4.0])]) == [4.0]
