"""Elements of a map run side by side: they equal the interpreter's, whichever trips they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from tests.backends.jax.test_control import SHAPES
from tests.function.mapping.test_vmap_checks import PROGRAMS as PROGRAMS_THAT_RAISE
from tests.function.mapping.test_vmap_checks import (
    columns,
    in_an_inner_map,
    loop,
    of_a_table,
    of_arrays,
)
from tests.helpers.programs import PROGRAMS, Program

import wend
from wend.backends.jax.executable import XlaProgram
from wend.base import trees

_EXACT = 1e-9


def close(found: Any, expected: Any) -> None:
    for a, b in zip(trees.flatten(found)[0], trees.flatten(expected)[0], strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), b, rtol=_EXACT, atol=_EXACT)


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


@pytest.mark.sampled(16)
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_value_and_gradient(program: Program, count: int) -> None:
    check(wend.vmap(wend.value_and_grad(program.fun, every(program))), *batch(program, count))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_second_gradient(program: Program) -> None:
    def summed(*args: Any) -> Any:
        return sum(np.sum(1.3 * x) for x in wend.grad(program.fun, every(program))(*args))

    check(wend.vmap(wend.grad(summed, every(program))), *batch(program, 3))


@pytest.mark.sampled(16)
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


@pytest.mark.sampled
@pytest.mark.parametrize("fun", SHAPES)
@pytest.mark.usefixtures("little_room")
def test_elements_make_trips_of_their_own_at_each_level(fun: Callable[..., Any]) -> None:
    x, n, m = (
        np.linspace(0.3, 0.5, 6),
        np.array([0, 1, 16, 17, 5, 3]),
        np.array([33, 0, 16, 1, 2, 4]),
    )
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


def test_a_batch_is_one_loop_of_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[int] = []
    run = XlaProgram.__call__

    def counted(self: XlaProgram, leaves: Any) -> Any:
        loops.append(str(jax.make_jaxpr(self._function)(leaves)).count("while["))
        return run(self, leaves)

    monkeypatch.setattr(XlaProgram, "__call__", counted)
    wend.function(wend.vmap(root), backend="jax")(np.arange(1.0, 1000.0))
    assert loops == [1]


def selected_shapes(jaxpr: Any) -> list[tuple[int, ...]]:
    """The shapes of all that is chosen between two values, in loops too."""
    shapes = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "select_n":
            shapes.append(equation.outvars[0].aval.shape)
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(part, "jaxpr", part)
                shapes += selected_shapes(inner) if hasattr(inner, "eqns") else []
    return shapes


@pytest.mark.parametrize("fun", LOOPS)
def test_no_trip_copies_a_tape(fun: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's own batching of loops chooses between the old and the new carry, tapes included."""
    shapes: list[tuple[int, ...]] = []
    run = XlaProgram.__call__

    def traced(self: XlaProgram, leaves: Any) -> Any:
        shapes.extend(selected_shapes(jax.make_jaxpr(self._function)(leaves).jaxpr))
        return run(self, leaves)

    monkeypatch.setattr(XlaProgram, "__call__", traced)
    wend.function(wend.vmap(wend.grad(fun)), backend="jax")(np.arange(1.0, 6.0))
    assert (5,) in shapes
    assert set(shapes) <= {(), (5,)}
