"""Elements of a map run side by side: they equal the interpreter's, whichever trips they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.jax_runs import close, equations, jaxprs_of_runs
from tests.helpers.loop_shapes import SHAPES, loop_in_a_branch
from tests.helpers.programs import PROGRAMS, Program
from tests.helpers.raising_elements import PROGRAMS as PROGRAMS_THAT_RAISE
from tests.helpers.raising_elements import columns, in_an_inner_map, loop, of_a_table, of_arrays

import wend
from wend.base import trees


def check(fun: Callable[..., Any], *args: Any) -> None:
    with wend.config(backend="numpy"):
        expected = fun(*args)
    with wend.config(backend="jax"):
        close(fun(*args), expected)
        close(fun(*args), expected)  # with the capacities that the first call has left


def batch(program: Program, count: int) -> list[Any]:
    """Arguments of elements whose floats differ, so that loops make other trips."""
    columns = []
    for arg in map(np.asarray, program.args):
        is_float = arg.dtype.kind == "f"
        columns.append(np.stack([arg * (1 + 0.07 * k) if is_float else arg for k in range(count)]))
    return columns


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


@pytest.mark.sampled(64)
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_value_and_gradient(program: Program, count: int) -> None:
    check(wend.vmap(wend.value_and_grad(program.fun, every(program))), *batch(program, count))


@pytest.mark.sampled(32)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_second_gradient(program: Program) -> None:
    def summed(*args: Any) -> Any:
        return sum(np.sum(1.3 * x) for x in wend.grad(program.fun, every(program))(*args))

    check(wend.vmap(wend.grad(summed, every(program))), *batch(program, 3))


@pytest.mark.sampled(32)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_gradient_of_a_map(program: Program) -> None:
    def total(*args: Any) -> Any:
        return sum(np.sum(x) for x in trees.flatten(wend.vmap(program.fun)(*args))[0])

    check(wend.grad(total, every(program)), *batch(program, 3))


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-9:
        x = 0.5 * (x + a / x)
    return x


def in_a_branch(a: Any) -> Any:
    x = a
    if a > 0.0:
        while x < 10.0:  # never ends where a <= 0
            x = x + a
    else:
        x = x * 3.0
    return x


def in_a_loop(a: Any) -> Any:
    x = a
    while x < 10.0:
        y = 0.0
        while y < 5.0:  # never ends where x >= 10
            y = y + np.maximum(10.0 - x, 0.0)
        x = x + y
    return x


LOOPS = [root, in_a_branch, in_a_loop]


@pytest.mark.parametrize("fun", LOOPS)
def test_no_element_waits_for_a_loop_that_it_is_not_in(fun: Callable[..., Any]) -> None:
    elements = np.array([-2.0, 0.0, 0.5, 3.0, 20.0]) if fun is not root else np.arange(1.0, 60.0)
    check(wend.vmap(fun), elements)
    check(wend.vmap(wend.value_and_grad(fun)), elements)
    check(wend.vmap(wend.grad(wend.grad(fun))), elements)
    check(wend.grad(lambda x: np.sum(wend.vmap(fun)(x) ** 2)), elements)


@pytest.mark.parametrize("fun", LOOPS)
def test_maps_in_maps_and_loops(fun: Callable[..., Any]) -> None:
    def repeated(table: Any) -> Any:
        for _ in range(3):
            table = wend.vmap(wend.vmap(fun))(np.abs(table) + 0.5) * 0.5
        return np.sum(table)

    check(wend.value_and_grad(repeated), np.linspace(0.5, 4.0, 6).reshape(2, 3))


TRIPS, INNER_TRIPS = np.array([0, 1, 16, 17, 5, 3]), np.array([33, 0, 16, 1, 2, 4])


@pytest.mark.sampled
@pytest.mark.parametrize("fun", SHAPES)
@pytest.mark.usefixtures("little_room")
def test_elements_make_trips_of_their_own_at_each_level(fun: Callable[..., Any]) -> None:
    x, n, m = np.linspace(0.3, 0.5, 6), TRIPS, INNER_TRIPS
    slope = wend.value_and_grad(fun)
    with wend.config(backend="native"):
        expected = [slope(*row) for row in zip(x, n, m, strict=True)]
    with wend.config(backend="jax"):
        value, derivative = wend.vmap(slope)(x, n, m)
    close((value, derivative), tuple(map(np.array, zip(*expected, strict=True))))


def test_no_elements() -> None:
    check(wend.vmap(wend.value_and_grad(root)), np.zeros(0))
    check(wend.value_and_grad(lambda w, x: np.sum(wend.vmap(root)(x) * w)), 2.0, np.zeros(0))

    def checked(x: Any) -> Any:
        if x < 0.0:
            raise ValueError("negative")
        return root(x)

    for chunk_size in (None, 4):
        check(wend.vmap(wend.value_and_grad(checked), chunk_size=chunk_size), np.zeros(0))


def test_elements_share_an_invariant() -> None:
    def loss(w: Any, xs: Any) -> Any:
        return np.sum(wend.vmap(lambda x: root(x * np.sum(w)) * w[0])(xs))

    check(wend.value_and_grad(loss, (0, 1)), np.array([1.0, 0.5]), np.arange(1.0, 30.0))


def test_the_first_error_is_raised() -> None:
    def pick(x: Any, k: Any) -> Any:
        while x < 5.0:
            x = x + np.arange(3.0)[k]
        return x

    numbers = np.array([1, 2, 3, 4])
    fun = wend.function(wend.vmap(pick), backend="jax")
    close(fun(np.ones(2), numbers[:2]), np.array([5.0, 5.0]))
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        fun(np.ones(4), numbers)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", [*PROGRAMS_THAT_RAISE, in_an_inner_map, of_a_table, of_arrays])
def test_elements_that_raise_run_side_by_side(fun: Any) -> None:
    own = wend.function(fun, backend="numpy")
    for form in (fun, wend.grad(fun)):
        mapped = wend.function(wend.vmap(form), backend="jax")
        for fails in (False, True):
            x, n = columns(9, fails=fails, seed=9)
            expected, error = loop(wend.function(form, backend="numpy"), (x, n))
            if error is None:
                close(mapped(x, n), np.array(expected))
                continue
            with pytest.raises(error[0]) as caught:
                mapped(x, n)
            assert str(caught.value) == loop(own, (x, n))[1][1]
            if fun is not in_an_inner_map:
                assert f"in element {error[2]} of vmap" in caught.value.__notes__


def test_a_batch_is_one_loop_of_xla() -> None:
    with jaxprs_of_runs() as programs:
        wend.function(wend.vmap(root), backend="jax")(np.arange(1.0, 1000.0))
    (program,) = programs
    assert [x.primitive.name for x in equations(program)].count("while") == 1


@pytest.mark.parametrize("fun", LOOPS)
def test_no_trip_copies_a_tape(fun: Callable[..., Any]) -> None:
    """JAX's own batching of loops chooses between the old and the new carry, tapes included."""
    with jaxprs_of_runs() as programs:
        wend.function(wend.vmap(wend.grad(fun)), backend="jax")(np.arange(1.0, 6.0))
    shapes = {
        x.outvars[0].aval.shape for x in equations(programs[-1]) if x.primitive.name == "select_n"
    }
    assert (5,) in shapes
    assert shapes <= {(), (5,)}


def exits_in_the_middle(x: Any) -> Any:
    while True:
        x = 0.9 * np.sin(x)
        if x < 0.5:
            break
        x = 1.1 * x
    return x


def in_branches(x: Any) -> Any:
    """The backward loop reads records in its branches."""
    for _ in range(5):
        x = np.sin(x) * x if x > 1.0 else np.cos(x) + x
    return x


def nested_with_breaks(x: Any) -> Any:
    for k in range(4):
        y = x
        while y < 3.0 + k:
            y = y + 0.3 * np.sin(y) ** 2 + 0.1
            if y > 4.0:
                break
        x = x + 0.1 * y
    return x


def of_vectors(x: Any) -> Any:
    h = np.stack([x, 2.0 * x, -x])
    while np.sum(h * h) > 0.5:
        h = np.tanh(h[::-1]) * 0.9
    return np.sum(h)


ROWS = [root, in_a_loop, exits_in_the_middle, in_branches, nested_with_breaks, of_vectors]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fun", ROWS)
def test_a_trip_writes_and_reads_a_row_of_all_elements(fun: Callable[..., Any]) -> None:
    with jaxprs_of_runs() as programs:
        check(wend.vmap(wend.grad(fun)), np.linspace(0.7, 4.0, 7))
    operations = [*equations(programs[-1])]
    written = [x for x in operations if x.primitive.name == "dynamic_update_slice"]
    assert written
    assert all(7 in x.outvars[0].aval.shape[1:3] for x in written)  # behind those of the trips
    in_loops = [
        inner.primitive.name
        for x in operations
        if x.primitive.name == "while"
        for inner in equations(x.params["body_jaxpr"].jaxpr)
    ]
    assert not {"gather", "scatter", "transpose"} & {*in_loops}


def with_inner_elements(x: Any) -> Any:
    while x < 30.0:
        x = x + np.sum(wend.vmap(root)(np.array([0.5, 0.9, 2.0]) + x * x))
    return x


def with_loops_in_inner_elements(x: Any) -> Any:
    while x < 30.0:
        x = x + np.sum(wend.vmap(nested_with_breaks)(np.array([0.1, 0.5, 2.0]) * x))
    return x


SLOW = pytest.param(with_loops_in_inner_elements, marks=pytest.mark.slow)
NESTED = [*ROWS, in_a_branch, loop_in_a_branch, with_inner_elements, SLOW]


def elements_for(fun: Callable[..., Any]) -> list[Any]:
    if fun is loop_in_a_branch:
        branches, trips = np.array([0, 1, 4, 3, 2]), np.array([3, 0, 2, 1, 5])
        return [np.array([-0.5, 0.1, 1.2, 2.0, 9.0]), branches, trips]
    return [np.array([-0.5, 0.1, 1.2, 2.0, 9.0]) if fun is not root else np.arange(1.0, 6.0)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fun", NESTED)
def test_records_of_each_order_are_those_of_the_element(fun: Callable[..., Any]) -> None:
    """Backward loops record too, and each element begins them at a trip of its own."""
    check(wend.vmap(wend.grad(lambda *x: wend.grad(fun)(*x))), *elements_for(fun))


def pullback_of_a_map(fun: Callable[..., Any], *others: Any) -> Callable[..., Any]:
    def pulled(x: Any) -> Any:
        pull = wend.vjp(lambda x: wend.vmap(fun)(x, *others), x)[1]
        return pull(np.ones(len(x)))[0]

    return pulled


@pytest.mark.sampled(8)
@pytest.mark.parametrize("fun", NESTED)
def test_pullbacks_of_maps(fun: Callable[..., Any]) -> None:
    """What is recorded leaves the program that maps, and enters another."""
    x, *others = elements_for(fun)
    check(pullback_of_a_map(fun, *others), x)


def map_of_pullbacks(fun: Callable[..., Any], *others: Any) -> Callable[..., Any]:
    def pulled(x: Any, *others: Any) -> Any:
        return wend.vjp(lambda x: fun(x, *others), x)[1](1.0)[0]

    return lambda x: wend.vmap(pulled)(x, *others)


def pullback_of_a_map_of_gradients(fun: Callable[..., Any], *others: Any) -> Callable[..., Any]:
    return pullback_of_a_map(wend.grad(fun), *others)


def pullback_of_a_pullback(fun: Callable[..., Any], *others: Any) -> Callable[..., Any]:
    pulled = pullback_of_a_map(fun, *others)
    return lambda x: wend.vjp(pulled, x)[1](np.ones(len(x)))[0]


FORMS = [pullback_of_a_map, map_of_pullbacks]
FORMS += [pullback_of_a_map_of_gradients, pullback_of_a_pullback]


@pytest.mark.sampled(64)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fun", SHAPES)
@pytest.mark.usefixtures("little_room")
def test_pullbacks_and_maps_of_each_shape(
    fun: Callable[..., Any], form: Callable[..., Any]
) -> None:
    """Lists in lists have room for 0, 1, 2ᵏ and 2ᵏ + 1 records at each level."""
    x = np.linspace(0.3, 0.5, 6)
    run = form(fun, TRIPS, INNER_TRIPS)
    with wend.config(backend="native"):
        expected = run(x)
    with wend.config(backend="jax"):
        close(run(x), expected)
