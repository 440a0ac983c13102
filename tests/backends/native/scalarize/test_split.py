"""Small arrays taken apart: the new graph gives what the old one gave, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.backends.native.test_cases import NAMED, assert_close, cotangents, outcome
from tests.helpers.cases import Case, graph_of, pull_back_graph, value_of
from tests.helpers.golden import FOLDER, Golden
from tests.helpers.graphs import names, pushes
from tests.helpers.programs import PROGRAMS, Program
from tests.helpers.random_programs import programs, staged
from tests.ops.cases import CASES

import wend
import wend.numpy as wnp
from wend.backends.native import module as native_module
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.native.scalarize.split import scalarize_small_arrays, split_arrays
from wend.backends.native.target.small_arrays import is_small
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir import Graph, Value, verify
from wend.ir.op import Effect, NoGradient
from wend.ir.types import tensor
from wend.ops.build import Build
from wend.passes.pipeline import OPTIMIZE, run_passes

ARGS = (0.4, -0.7, np.array([0.3, -0.2, 0.9]))


def assert_same(found: Any, expected: Any, role: str) -> None:
    """Equal to the last bit; zeros have their signs."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, (np.ndarray, np.generic)) and b.dtype.kind in "fc":
            np.testing.assert_array_equal(a, b, err_msg=role, strict=True)
            np.testing.assert_array_equal(np.signbit(a.real), np.signbit(b.real), err_msg=role)
        else:
            assert_close(a, b, role)


def is_error(found: Any) -> bool:
    return isinstance(found, tuple) and bool(found) and isinstance(found[0], type)


def without_operations(error: Any) -> Any:
    """An error whose notes say the line, and not by which operation a position is looked up."""
    kind, text, metadata = error
    return kind, text, [note.partition(" at ")[2] for note in metadata or ()]


def check(graph: Graph, args: Sequence[Any], least: float = 0.0) -> Graph:
    """Both graphs give the same on numpy, but for the order of sums inside of NumPy."""
    apart = verify(split_arrays(graph))
    assert apart.param_types == graph.param_types
    assert apart.result_types == graph.result_types
    verify(scalarize_small_arrays(graph))
    expected, found = outcome(NUMPY, graph, args), outcome(NUMPY, apart, args)
    if is_error(expected):
        assert without_operations(found) == without_operations(expected), f"{graph}\n{apart}"
    else:
        assert_close(found, expected, f"{graph}\n{apart}", least)
    return apart


def both_ways(graph: Graph, args: Sequence[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code gives the same bits with and without the pass, or the same error."""
    found = outcome(NATIVE, graph, args)
    with monkeypatch.context() as patch:
        patch.setattr(native_module, "scalarize_small_arrays", lambda graph: graph)
        expected = outcome(NATIVE, graph, args)
    if is_error(expected):
        assert without_operations(found) == without_operations(expected)
    else:
        assert_same(found, expected, f"{graph}\n{scalarize_small_arrays(graph)}")


def inside(graph: Graph) -> Graph:
    """The same where small arrays come and go as their elements: through reshapes."""
    b = Build(graph.name)
    params = [b.param(type) for type in graph.param_types]
    given = dict(zip(graph.params, (_through(b, v) for v in params), strict=True))
    for node in graph.nodes:
        made = b.emit_node(node.op, [given[v] for v in node.operands], node.regions, **node.attrs)
        given.update(zip(node.results, made.results, strict=True))
    return b.finish([_through(b, given[value]) for value in graph.results])


def _through(b: Build, value: Value) -> Value:
    if not is_small(value.type):
        return value
    flat = b.reshape(value, (-1, 1))
    return b.reshape(flat, value.tensor.dims)  # type: ignore[arg-type]


def has_small(graph: Graph) -> bool:
    return any(is_small(type) for type in (*graph.param_types, *graph.result_types))


def smaller(operands: Sequence[Any]) -> Sequence[Any]:
    """Operands cut to where they are small, if they are vectors of odd numbers of one length."""
    sizes = {x.shape for x in operands if isinstance(x, np.ndarray) and x.ndim}
    if len(sizes) == 1 and all(len(shape) == 1 and shape[0] > 16 for shape in sizes):
        return [x[:16] if isinstance(x, np.ndarray) and x.ndim else x for x in operands]
    return operands


SMALL = [
    case
    for case in CASES
    if any(
        has_small(graph_of(case, smaller(operands))) for operands in (*case.samples, *case.smooth)
    )
    and case.record.effect is Effect.NONE
]


def is_derived(case: Case) -> bool:
    return not isinstance(case.record.derivative, NoGradient)


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=SMALL, **NAMED)
def test_values_of_operations(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = 0
    for operands in (*case.samples, *case.smooth):
        operands = smaller(operands)
        graph, args = graph_of(case, operands), [value_of(x) for x in operands]
        if has_small(graph):
            check(inside(graph), args)
            if compiled < 1 + is_derived(case):
                both_ways(inside(graph), args, monkeypatch)
                compiled += 1


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=[case for case in SMALL if is_derived(case)], **NAMED)
def test_derivatives_of_operations(case: Case) -> None:
    for operands in case.smooth[:2]:
        graph, args = graph_of(case, operands), [value_of(x) for x in operands]
        for _ in range(min(case.orders, 2)):
            back, wrt = pull_back_graph(graph, case.wrt)
            if not wrt:
                break
            args = [*args, *cotangents(graph, args)]
            graph = back
            check(graph, args, 64.0)


def of(fun: Any, *args: Any) -> tuple[Graph, list[Any]]:
    """The optimized graph of a function, and what it takes: arguments and captures."""
    fun = fun if isinstance(fun, wend.Function) else wend.function(fun)
    concrete = fun.get_concrete_function(*args)
    arrays = [np.asarray(x)[()] for x in args]
    return run_passes(concrete.graph, OPTIMIZE), [*arrays, *concrete.captured_inputs]


def every_order(fun: Any, *args: Any) -> list[tuple[Graph, list[Any]]]:
    """Value, gradient, and gradient of a number made of the gradient."""
    every = tuple(range(len(args)))

    def weighted(*args: Any) -> Any:
        parts = wend.grad(fun, every)(*args)
        return sum((k + 1.0) * wnp.sum(part * part) for k, part in enumerate(parts))

    gradients = (wend.value_and_grad(f, every) for f in (fun, weighted))
    return [of(f, *args) for f in (fun, *gradients)]


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_programs(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for graph, args in every_order(program.fun, *program.args):
        check(graph, args, 1e6)
        if any(is_small(v.type) for node in graph.walk() for v in node.results):
            both_ways(graph, args, monkeypatch)


@settings(max_examples=2 * settings().max_examples, suppress_health_check=list(HealthCheck))
@given(programs(depth=2))
def test_random_programs(program: Any) -> None:
    for graph, args in every_order(staged(program), *ARGS):
        check(graph, args, 1e6)


@settings(suppress_health_check=list(HealthCheck))
@given(programs(depth=2))
def test_random_programs_bit_for_bit(program: Any) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for graph, args in every_order(staged(program), *ARGS)[1:]:
            both_ways(graph, args, monkeypatch)


# What is left of programs
def turned(angle: Any) -> Any:
    y = np.array([1.0, 0.5]) * angle
    while wnp.sum(y * y) < 100.0:
        y = wnp.stack([y[0] * 1.1 - y[1], y[1] * 1.1 + y[0]])
    return y


def stages(x: Any) -> Any:
    """A table of two rows that is filled and read at positions that are not known."""

    def step(c: Any) -> Any:
        i, y, k = c
        row = i % 2
        k = wend.numpy.array(k)
        k[row] = y * 0.5 + k[row - 1]
        return i + 1, y + k[1 - row] * x, k

    start = 0, wnp.ones(2), wnp.zeros((2, 2))
    return wend.while_loop(lambda c: c[0] < 9, step, start)[1]


def sorted_each_trip(x: Any) -> Any:
    """What a loop takes whole stays whole in it."""
    y = wnp.stack([x, -x, 2.0 * x])
    while y[0] > -10.0:
        y = wnp.sort(y) * 2.0
    return y[0]


def loops_of(graph: Graph) -> list[Any]:
    return [node for node in graph.walk() if node.op.name == "while"]


def whole_in(loop: Any) -> set[str]:
    """The operations of a loop that give small arrays."""
    inner = [node for region in loop.regions for node in region.walk()]
    return {n.op.name for n in inner if any(is_small(result.type) for result in n.results)}


@pytest.mark.parametrize("fun", [turned, stages])
def test_no_array_is_left_in_a_loop(fun: Any) -> None:
    def number(x: Any) -> Any:
        return wnp.sum(fun(x))

    for graph, args in every_order(number, 0.3):
        after = check(graph, args)
        left = [whole_in(loop) for loop in loops_of(scalarize_small_arrays(graph))]
        assert set().union(*left) <= {"constant"}, after  # the numbers of rows


def test_tapes_of_small_arrays_are_tapes_of_numbers() -> None:
    graph, _ = of(wend.value_and_grad(lambda x: wnp.sum(turned(x) ** 2) + stages(x)[0]), 0.3)
    assert any(is_small(node.operands[1].type) for node in pushes(graph))
    assert not any(
        is_small(node.operands[1].type) for node in pushes(scalarize_small_arrays(graph))
    )


def test_lists_become_arrays_and_arrays_lists_by_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def orbit(y: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = wnp.stack([c[1] + x[0, 1], -1.1 * c[0] * x[1, 0]])
            return c, wnp.stack([c, c * x[0]])

        _, found = wend.scan(step, y, xs)
        return wnp.sum(found * wnp.cos(found))

    for length in (0, 1, 5):
        rows = np.linspace(0.0, 1.0, 4 * length).reshape(length, 2, 2)
        for graph, args in every_order(orbit, np.array([0.5, 1.0]), rows):
            check(graph, args)
            both_ways(graph, args, monkeypatch)
            left = [whole_in(loop) for loop in loops_of(scalarize_small_arrays(graph))]
            assert set().union(*left) <= {"constant"}


def test_operations_without_native_code_have_it_on_elements() -> None:
    def smoothed(x: Any) -> Any:
        y = wnp.stack([x, -x, 2.0 * x])
        while y[0] < 5.0:
            y = wnp.cumprod(y[::-1] + 2.0) + wnp.argmax(y)
        return wnp.sum(y)

    for graph, args in every_order(smoothed, 0.3):
        check(graph, args)
        run = NATIVE.compile(graph)
        assert run.host_nodes == ()  # type: ignore[attr-defined]


def test_what_a_loop_takes_whole_is_not_made_again_each_trip() -> None:
    graph, args = of(sorted_each_trip, 0.3)
    check(graph, args)
    (loop,) = loops_of(scalarize_small_arrays(graph))
    assert "from_elements" not in whole_in(loop)
    assert [v.type for v in loop.operands if is_small(v.type)] == [tensor("f8", 3)]


def test_elementwise_operations_between_whole_arrays_stay_loops() -> None:
    graph, args = of(lambda x, y: wnp.sin(x * y + 1.0), *np.ones((2, 3)))
    check(graph, args)
    assert names(scalarize_small_arrays(graph)) == names(graph)


def test_functions_of_many_elements_are_left_to_vectors() -> None:
    def deep(x: Any) -> Any:
        return wend.fori_loop(0, 9, lambda i, x: wnp.tanh(x[::-1] * 1.1 + x), x)

    for size, left in ((4, set()), (5, {"tanh"})):
        graph, args = of(deep, np.ones(size))
        check(graph, args)
        (loop,) = loops_of(scalarize_small_arrays(graph))
        assert whole_in(loop) >= left
        assert bool(whole_in(loop)) == bool(left)


def test_graphs_without_small_arrays_are_left_alone() -> None:
    graph, _ = of(lambda x, n: wnp.sum(x) * n, np.ones(20), 2.0)
    assert scalarize_small_arrays(graph) is graph


def test_large_graphs_have_only_smaller_arrays_taken_apart() -> None:
    def long(x: Any, y: Any) -> Any:
        while y[0] < 2.0:
            for _ in wend.unroll(range(45)):
                x = wnp.roll(x, 1) * x + 0.5 * wnp.sum(x)
            y = y * 1.5 + wnp.sum(x)
        return y

    graph, args = of(long, np.zeros(16), np.array([1.0, -1.0]))
    check(graph, args)
    after = scalarize_small_arrays(graph)
    assert after.count("reduce_sum") == graph.count("reduce_sum") > 45
    (loop,) = loops_of(after)
    assert [str(v.type) for v in loop.operands] == ["f64[16]", "f64[]", "f64[]"]


def test_positions_out_of_range_are_refused_as_in_the_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(x: Any, n: Any) -> Any:
        y = wnp.stack([x, 2.0 * x, 3.0 * x])
        i = 0 * n
        while i < n:
            y = y * 1.5 + y[i]
            i = i + 1
        return y[-n]

    def write(x: Any, n: Any) -> Any:
        y = wnp.stack([wnp.stack([x, 2.0 * x]), wnp.stack([x, x])])
        i = 0 * n
        while i < n:
            y[i, i - 1] = y[0, 1] + 1.0
            i = i + 1
        return y[0]

    for fun, most in ((read, 3), (write, 2)):
        for n in range(1, most + 3):
            graph, args = of(fun, 0.5, n)
            check(graph, args)
            both_ways(graph, args, monkeypatch)
            assert "sort" not in names(graph)
            with wend.config(backend="native"):
                if n <= most:
                    wend.function(fun)(0.5, n)
                    continue
                with pytest.raises(IndexError, match="out of bounds") as caught:
                    wend.function(fun)(0.5, n)
                assert any("test_split.py" in note for note in caught.value.__notes__)


FILES = sorted((FOLDER / "scalarize").glob("*.wir"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_texts(file: Any, golden: Golden) -> None:
    golden.check_pass(file, scalarize_small_arrays)


def test_there_are_texts() -> None:
    assert len(FILES) == 3


def sorted_rows(rows):
    total = 0.0
    for r in range(rows.shape[0]):
        x = np.zeros(12)
        for i in range(12):
            here, k = rows[r, i], i
            while k > 0 and x[k - 1] > here:
                x[k] = x[k - 1]
                k -= 1
            x[k] = here
        total += x[5] + x[6]
    return total


def test_arrays_that_loops_address_stay_in_memory() -> None:
    """A chain of selects would take as long as there are elements, at every access."""
    rows = np.random.default_rng(0).standard_normal((9, 12))
    run = wend.function(sorted_rows, backend="native")
    assert run(rows) == sorted_rows(rows)
    (graph,) = run.get_concrete_function(rows).compiled.optimized_graphs()
    emitted = native_module.prepare_for_emission(graph)
    assert sum(node.op.name == "select" for node in emitted.walk()) <= 2
    np.testing.assert_allclose(wend.grad(run)(rows).sum(), 2.0 * len(rows))
