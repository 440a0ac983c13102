"""What a native run returns as lists: it stays where it lies, and other runs read it there."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.helpers.random_lists import list_pipelines
from tests.helpers.random_programs import Program, programs, staged
from tests.helpers.threads import in_threads

import wend
import wend.numpy as wnp
from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.backend import BACKEND
from wend.backends.native.run.list_buffers import ListBuffer
from wend.backends.native.run.workspace import MAX_IDLE
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.backends.passthrough import PassThrough
from wend.ir.graph import Graph
from wend.ir.types import ListType, TensorType
from wend.ir.verify import verify
from wend.ops.build import Build
from wend.ops.lists import list_stack
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.runtime.sequence import Sequence

VECTOR = np.linspace(0.1, 0.9, 7)
LARGE_VECTOR = np.linspace(0.1, 1.0, 4000)


# Functions whose backward runs read lists of every kind
def numbers(x: Any, n: Any) -> Any:
    """Lists of numbers of several dtypes, also of another list's records."""
    total, low, k = wnp.sum(x), x[0] * 0, n * 0 + 3
    for _ in range(n):
        if total > low:
            total = wnp.sin(total * 0.9) - 0.1
        else:
            total = wnp.asarray(wnp.asarray(total * (k % 5), np.float32) * 0.1 * total, low.dtype)
        k = k * 7
    return total * x


def arrays(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = wnp.sin(x) * x
    return x


def nested(x: Any, n: Any) -> Any:
    """Lists of lists of arrays; as many inner trips as the outer trip says."""
    for i in range(n):
        y = x * 1.5
        for _ in range(i):
            y = wnp.tanh(y) * x
        x = x + 0.1 * y
    return x


def branches(x: Any, n: Any) -> Any:
    """Lists that are there only where the branch was taken."""
    if n > 1:
        for _ in range(n):
            x = wnp.exp(-x) * x
    return x


def changed(x: Any, n: Any) -> Any:
    """An array that a loop changes in place."""
    y = wnp.copy(x)
    for i in range(n):
        y[i % 7] = wnp.sin(y[i % 7]) * x[0]
    return y


def cut(x: Any, n: Any) -> Any:
    """Arrays of another size each trip."""
    total = x * 0.0
    for i in range(n):
        total = total + x * wnp.sum(wnp.sin(x[: i % 7]) * x[: i % 7])
    return total


def appended(x: Any, n: Any) -> Any:
    """A list of the function's own."""
    rows = [x]
    for _ in range(n):
        rows.append(wnp.sin(rows[-1]) * x)
    return wnp.sum(wnp.stack(rows) ** 2, axis=0)


def called(x: Any, n: Any) -> Any:
    """Objects of Python's in lists."""
    spec = wend.TensorSpec([7])
    for _ in range(n):
        x = wend.py_function(lambda y: wnp.sin(y) * y, spec, x)
    return x


KINDS = [numbers, arrays, nested, branches, changed, cut, appended, called]


@pytest.fixture(params=KINDS, ids=lambda fun: fun.__name__)
def fun(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return request.param


def on_both(use: Callable[[str], Any]) -> None:
    found, expected = use("native"), use("numpy")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.sampled(3)
def test_pullbacks(fun: Callable[..., Any]) -> None:
    """Two runs before the first pullback, one of them pulled back twice."""

    def use(backend: str) -> Any:
        run, found = wend.function(fun, backend=backend), []
        for n in (0, 1, 2, 5, 80):
            value, first = wend.vjp(run, VECTOR, n)
            other, second = wend.vjp(run, VECTOR * 0.5, n)
            cts = [first(VECTOR)[0], second(VECTOR)[0], first(VECTOR)[0], first(-VECTOR)[0]]
            np.testing.assert_array_equal(cts[0], cts[2])
            np.testing.assert_allclose(cts[3], -cts[0])
            found += [value, other, *cts]
        return found

    on_both(use)


@pytest.mark.sampled(2)
def test_concrete_pairs(fun: Callable[..., Any]) -> None:
    def use(backend: str) -> Any:
        concrete = wend.function(fun, backend=backend).get_concrete_function(VECTOR, 2)
        pairs = [concrete.forward(VECTOR, n) for n in (0, 1, 3)]
        return [x for value, run in pairs for x in (value, concrete.backward(run, VECTOR)[0])]

    on_both(use)


@pytest.mark.sampled(3)
def test_linear_parts(fun: Callable[..., Any]) -> None:
    def use(backend: str) -> Any:
        run, found = wend.function(fun, backend=backend), []
        for n in (0, 1, 4):
            value, push = wend.linearize(run, VECTOR, n)
            found += [value, push(VECTOR, None), push(VECTOR * 2.0, None)]
        return found

    on_both(use)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", [fun for fun in KINDS if fun is not called])
def test_second_order(fun: Callable[..., Any]) -> None:
    """A pullback that is itself pulled back; a gradient under two tapes is the same."""

    def use(backend: str) -> Any:
        run, found = wend.function(fun, backend=backend), []
        first = wend.function(lambda x, n: wend.vjp(run, x, n)[1](wnp.cos(x))[0], backend=backend)
        for n in (0, 1, 4):
            value, pullback = wend.vjp(first, VECTOR, n)
            found += [value, pullback(VECTOR)[0]]
            if backend == "native":
                np.testing.assert_allclose(by_tapes(run, n), found[-1], rtol=1e-9, atol=1e-12)
        return found

    on_both(use)


def by_tapes(run: Callable[..., Any], n: int) -> Any:
    with wend.GradientTape() as outer:
        x = outer.watch(VECTOR)
        with wend.GradientTape() as inner:
            y = inner.watch(x)
            z = run(y, n)
        ct = inner.gradient(z, y, wnp.cos(x))
    return outer.gradient(ct, x, VECTOR)


def test_unknown_rank_and_size() -> None:
    def use(backend: str) -> Any:
        spec = wend.TensorSpec([None])
        run = wend.function(
            arrays, input_signature=[spec, wend.TensorSpec([], int)], backend=backend
        )
        found = []
        for size in (0, 1, 5):
            value, pullback = wend.vjp(run, np.linspace(0.0, 1.0, size), 3)
            found += [value, pullback(np.ones(size))[0]]
        run = wend.function(
            arrays,
            input_signature=[wend.TensorSpec(None), wend.TensorSpec([], int)],
            backend=backend,
        )
        for shape in ((), (2, 3)):
            value, pullback = wend.vjp(run, np.full(shape, 0.3), 3)
            found += [value, pullback(np.ones(shape))[0]]
        return found

    on_both(use)


def test_kernels_of_numpy_read_lists_where_they_lie() -> None:
    """Arrays whose rank only the run knows are stacked by Python."""
    unknown, stack = TensorType(np.dtype("f8"), None), {"dtype": np.dtype("f8")}
    first = Build("first")
    x = first.param(unknown)
    row = first.list_push(first.list_push(first.list_new(unknown), x), x)
    rows = first.list_push(first.list_new(ListType(unknown)), row)
    second = Build("second")
    list, lists = second.param(row.type), second.param(rows.type)
    inner = second.list_get(lists, second.integer(0))
    found = [second.emit(list_stack, list, **stack), second.emit(list_stack, inner, **stack)]
    run = BACKEND.compile(second.finish(found))
    assert [node.op for node in run.host_nodes] == [list_stack, list_stack]
    given = np.arange(6.0).reshape(2, 3)
    values = BACKEND.compile(first.finish([row, rows]))([given])
    for result in run(values):
        np.testing.assert_array_equal(result, [given, given])


# Memory
def pair(fun: Callable[..., Any], x: Any = VECTOR) -> Any:
    """A concrete function on native, and the workspaces that wait for its forward form."""
    concrete = wend.function(fun, backend="native").get_concrete_function(x, 2)
    concrete.backward(concrete.forward(x, 2)[1], x)
    return concrete, forward_of(concrete)._workspaces.idle


def forward_of(concrete: Any) -> Any:
    execute = concrete.compiled.executable("native", concrete.forms.forward)
    return execute._execute if isinstance(execute, PassThrough) else execute


def test_a_run_keeps_its_workspace_until_it_is_dropped() -> None:
    concrete, idle = pair(nested)
    (space,) = idle
    _, run = concrete.forward(VECTOR, 3)
    assert not idle
    concrete.backward(run, VECTOR)
    assert not idle
    del run
    assert idle == [space]
    concrete.forward(VECTOR, 3)  # never pulled back
    assert idle == [space]


def test_a_workspace_that_the_garbage_collector_takes_does_not_come_back() -> None:
    def printing(x: Any, n: Any) -> Any:
        for _ in range(n):
            wend.print(x[0])
            x = wnp.sin(x)
        return x

    concrete, idle = pair(printing)
    (space,) = idle
    taken = weakref.ref(space)
    ring: list[Any] = [concrete.forward(VECTOR, 3)[1]]
    ring.append(ring)
    del ring, space
    gc.collect()
    assert taken() is None
    assert not idle
    for _ in range(3):  # its host calls find a workspace that is there
        concrete.backward(concrete.forward(VECTOR, 3)[1], VECTOR)


def test_a_run_without_records_keeps_nothing() -> None:
    concrete, idle = pair(arrays)
    _, run = concrete.forward(VECTOR, 0)
    assert len(idle) == 1
    np.testing.assert_array_equal(concrete.backward(run, VECTOR)[0], VECTOR)


def test_few_workspaces_wait() -> None:
    concrete, idle = pair(arrays)
    runs = [concrete.forward(VECTOR * k, 4)[1] for k in range(4 * MAX_IDLE)]
    for k, run in enumerate(runs):
        expected = concrete.backward(concrete.forward(VECTOR * k, 4)[1], VECTOR)[0]
        np.testing.assert_array_equal(concrete.backward(run, VECTOR)[0], expected)
    runs.clear()
    del run
    assert len(idle) <= MAX_IDLE


def test_workspaces_that_wait_keep_so_much() -> None:
    concrete, idle = pair(arrays)

    def kept(limit: int) -> int:
        with wend.config(tape_keep=limit):
            runs = [concrete.forward(VECTOR, 2000)[1] for _ in range(3)]
            runs.clear()
            return sum(space.bytes() for space in idle)

    one = kept(1 << 27) // 3
    assert one > 2000 * VECTOR.nbytes
    assert 0 < kept(2 * one + 100) <= 2 * one + 100
    assert kept(0) == 0


def test_a_workspace_that_is_too_large_keeps_a_part() -> None:
    concrete, idle = pair(arrays, LARGE_VECTOR)

    def call() -> Any:
        return concrete.backward(concrete.forward(LARGE_VECTOR, 100)[1], LARGE_VECTOR)[0]

    expected, whole = call(), idle[0].bytes()
    assert whole > 100 * LARGE_VECTOR.nbytes
    with wend.config(tape_keep=int(0.7 * whole)):
        for _ in range(3):
            np.testing.assert_array_equal(call(), expected)
            assert 0.6 * whole < sum(space.bytes() for space in idle) <= 0.7 * whole


def test_many_calls_take_no_memory() -> None:
    concrete, idle = pair(nested)

    def use(times: int) -> None:
        for k in range(times):
            run = concrete.forward(VECTOR, k % 5)[1]
            concrete.backward(run, VECTOR)
            del run

    use(100)
    room = len(idle[0].pool), idle[0].arena_bytes()
    tracemalloc.start()
    try:
        found = []
        for times in (100, 400, 400, 400):
            use(times)
            gc.collect()
            found.append(tracemalloc.get_traced_memory()[0])
        # A leak shows each time; what else a process keeps does not.
        assert min(after - before for before, after in pairwise(found)) < 8_000
    finally:
        tracemalloc.stop()
    assert (len(idle[0].pool), idle[0].arena_bytes()) == room
    assert len(idle) == 1


@pytest.mark.sampled(3)
def test_threads_pull_back_one_run(fun: Callable[..., Any]) -> None:
    run = wend.function(fun, backend="native")
    pullback = wend.vjp(run, VECTOR, 60)[1]
    expected = [pullback(VECTOR * k)[0] for k in range(4)]

    def work(k: int) -> bool:
        return all(np.array_equal(pullback(VECTOR * k)[0], expected[k]) for _ in range(50))

    assert all(in_threads(4, work))


def test_python_reads_what_native_keeps() -> None:
    """Who asks a list for its items gets copies, which outlive the run."""
    concrete, idle = pair(arrays)
    forward = forward_of(concrete)
    lists = [x for x in forward([VECTOR, 3]) if isinstance(x, Sequence)]
    assert lists
    assert all(isinstance(x.source, ListBuffer) and len(x) == 3 for x in lists)
    items = lists[0].items()
    lists.clear()
    assert len(idle) == 1
    forward([VECTOR * 9.0, 3])
    np.testing.assert_array_equal(items[0], VECTOR)


def test_what_is_only_read_is_not_copied() -> None:
    concrete = wend.function(nested).get_concrete_function(VECTOR, 2)
    backward = run_passes(concrete.forms.backward([0]).graph, OPTIMIZE)
    places = ListClasses(backward)
    lists = [param for param in backward.params if isinstance(param.type, ListType)]
    assert lists
    assert all(place.arena.is_argument for param in lists for place in places.nested(param))


# Random programs
def outcome(backend: Any, graphs: list[Graph]) -> Any:
    values: Any = [0.75, 1.25]
    try:
        for graph in graphs:
            values = backend.compile(graph)(values)
        return [float(x) for x in values]
    except (IndexError, ValueError) as error:
        return type(error)


@settings(max_examples=4 * settings().max_examples)
@given(list_pipelines())
def test_random_lists_from_run_to_run(graphs: list[Graph]) -> None:
    for graph in graphs:
        verify(graph)
    expected, found = outcome(NUMPY, graphs), outcome(BACKEND, graphs)
    if isinstance(expected, type):
        assert found is expected
        return
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=settings().max_examples)
@given(programs(depth=2))
def test_random_programs(program: Program) -> None:
    args = (0.6, -0.3, np.array([0.2, -0.7, 1.1]))

    def use(backend: str) -> Any:
        run = wend.function(staged(program), backend=backend)
        value, pullback = wend.vjp(run, *args)
        first = wend.function(
            lambda *args: sum(wnp.sum(wnp.sin(ct)) for ct in wend.vjp(run, *args)[1](1.0)),
            backend=backend,
        )
        return value, *pullback(1.0), *wend.vjp(first, *args)[1](1.0)

    on_both(use)
