"""Lists in native code: random graphs that push, pop, change and fork lists, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.helpers.random_lists import F64, I64, ROW, checksum, list_programs

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_ownership import Ownership
from wend.backends.native.backend import BACKEND
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, MaybeType, TensorType
from wend.ir.verify import verify
from wend.ops import lists, maybe
from wend.ops.build import Build
from wend.runtime.sequence import Sequence


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
    found = Ownership(ListClasses(graph))
    found.find(graph, set())
    return found


def test_a_tape_is_recognised() -> None:
    b = Build("tape")
    tape = filled(b, 5).results[1]
    graph = b.finish([checksum(b, tape)])
    assert ListClasses(graph).of(tape).tape is not None


def test_two_loops_from_one_empty_list_have_tapes_of_their_own() -> None:
    b = Build("tapes")
    empty = b.list_new(F64)
    first, second = (filled(b, 5, empty).results[1] for _ in range(2))
    places = ListClasses(b.finish([checksum(b, first), checksum(b, second)]))
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
    places = ListClasses(graph)
    pushed = [node for node in graph.walk() if node.op is lists.list_push]
    assert len(pushed) > 1
    regions = {id(places.of(node.results[0]).arena) for node in pushed}
    assert len(regions) == 1
    assert sum(places.starts_record(node) for node in pushed) == 1


def test_an_empty_list_has_no_arena_of_its_own() -> None:
    b = Build("tapes")
    first, second = (filled(b, 5, b.list_new(F64)).results[1] for _ in range(2))
    graph = b.finish([checksum(b, first), checksum(b, second)])
    assert len(ListClasses(graph).arenas) == 2


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
    places = ListClasses(graph)
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
    assert sorted(ListClasses(graph).of(param).arena.number for param in graph.params) == [0, 1]
    execute = BACKEND.compile(graph)
    for _ in range(3):
        assert execute([Sequence.of([1.0, 2.0]), Sequence.of([3.0, 4.0])]) == [4.0]


@pytest.mark.parametrize("dtype", ["c16", "c8", "f2", "f4", "i4", "?"])
@pytest.mark.parametrize("shape", [(3,), (), None], ids=["known", "scalar", "unknown rank"])
def test_sums_of_elements_of_every_type(dtype: str, shape: tuple[int, ...] | None) -> None:
    type = TensorType(np.dtype(dtype), shape)
    b = Build("sums")
    list, x = b.param(ListType(type)), b.param(type)
    added = b.list_add_at(list, b.integer(1), x)
    total = b.emit(lists.list_add, added, list)
    maybes = b.param(MaybeType(type)), b.param(MaybeType(type))
    both = b.emit(maybe.autograd_add, *maybes)
    graph = b.finish([total, b.list_get(total, b.integer(1)), b.instantiate(both, x)])

    def value(k: int) -> Any:
        return (np.arange(3) + k).astype(dtype) if shape != () else np.dtype(dtype).type(k)

    arguments = [Sequence.of([value(1), value(2)]), value(5), value(3), value(4)]
    expected, found = (backend.compile(graph)(arguments) for backend in (NUMPY, BACKEND))
    for mine, theirs in zip(found[0].items(), expected[0].items(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(mine, theirs)
