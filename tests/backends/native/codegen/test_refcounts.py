"""Arrays in native code: who keeps them, and what is changed in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.backend import NativeBackend
from wend.passes.pipeline import OPTIMIZE, run_passes


def native(fun: Callable[..., Any]) -> Any:
    return wend.function(fun, backend="native")


def pool_bytes(fun: Any, *args: Any) -> int:
    """How much memory a function's arrays needed."""
    run = fun.get_concrete_function(*args).compiled.executable("native")
    run(args)
    return max(len(space.pool) for space in run._workspaces.all())


def test_a_loop_uses_the_same_memory_again() -> None:
    @native
    def fun(x: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, x: wnp.sin(x) + x * 0.5 - wnp.max(x), x)

    assert pool_bytes(fun, np.ones(1000), 10_000) < 100_000


def test_records_of_an_inner_loop_are_given_back() -> None:
    def cost(x: Any) -> Any:
        return wnp.sum(wend.fori_loop(0, 20, lambda i, y: wnp.tanh(y) * 1.1, x))

    fun = native(lambda x, n: wend.fori_loop(0, n, lambda i, x: x - 0.1 * wend.grad(cost)(x), x))
    assert pool_bytes(fun, np.ones(1000), 100) < 1_000_000


def set_all(x: Any, n: Any) -> Any:
    for i in range(n):
        x[i] = x[i - 1] + 1.0
    return x


def test_an_element_is_changed_in_place() -> None:
    def seconds(size: int) -> float:
        fun, x = native(set_all), np.zeros(size)
        fun(x, 10)
        start = time.perf_counter()
        fun(x, 20_000)
        return time.perf_counter() - start

    np.testing.assert_array_equal(native(set_all)(np.zeros(5), 4), [1.0, 2.0, 3.0, 4.0, 0.0])
    assert seconds(1_000_000) < 1.0  # 160 GB would be moved otherwise


def test_another_reference_keeps_what_it_was() -> None:
    @native
    def fun(x: Any, n: Any) -> Any:
        old = wnp.copy(x)
        i = 0
        while i < n:
            old = wnp.copy(x)
            x[0] = x[0] + 1.0
            i = i + 1
        return old, x

    old, new = fun(np.zeros(3), 3)
    np.testing.assert_array_equal(old, [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(new, [3.0, 0.0, 0.0])


def test_arguments_and_constants_are_not_changed() -> None:
    constant = np.arange(3.0)

    def fun(x: Any) -> Any:
        y = wnp.array(constant)
        y[1] = x[0]
        z = wnp.copy(x)
        z[0] = 7.0
        return y, z

    fun = native(fun)
    x = np.zeros(3)
    for _ in range(2):
        y, z = fun(x)
        np.testing.assert_array_equal(y, [0.0, 0.0, 2.0])
        np.testing.assert_array_equal(z, [7.0, 0.0, 0.0])
        np.testing.assert_array_equal(x, np.zeros(3))


def test_results_are_their_own() -> None:
    fun = native(lambda x: (x, x * 2.0, x))
    x = np.ones(3)
    first, second, third = fun(x)
    first[0] = 5.0
    fun(np.zeros(3))
    np.testing.assert_array_equal(second, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(third, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(x, [1.0, 1.0, 1.0])


@pytest.mark.parametrize("make", [lambda x: x[::2], lambda x: x[:3].T, lambda x: x.astype("f4")])
def test_arguments_of_any_layout(make: Callable[[Any], Any]) -> None:
    x = make(np.arange(12.0).reshape(6, 2))
    np.testing.assert_array_equal(native(lambda x: x + x)(x), x + x)


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_swapped_carries(trips: int) -> None:
    def fun(x: Any, y: Any) -> Any:
        return wend.fori_loop(0, trips, lambda i, c: (c[1], c[0]), (x, y))

    given = (np.arange(3.0), -np.arange(3.0))
    for found, expected in zip(native(fun)(*given), wend.function(fun)(*given), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_carry_that_changes_its_size() -> None:
    def fun(x: Any) -> Any:
        return wend.while_loop(
            lambda x: wnp.sum(x) < 50.0,
            lambda x: wnp.concatenate([x, x + 1.0]),
            x,
            shape_invariants=wend.TensorSpec((None,), np.float64),
        )

    x = np.arange(3.0)
    np.testing.assert_array_equal(native(fun)(x), wend.function(fun)(x))


def test_sizes_that_differ_between_calls() -> None:
    fun = native(lambda x: wnp.cumsum(wnp.sin(x) * 2.0)[::-1] + x)
    with wend.config(backend="native"):
        for size in (3, 5, 0, 17, 1):
            x = np.linspace(0.0, 1.0, size)
            np.testing.assert_allclose(fun(x), np.cumsum(np.sin(x) * 2.0)[::-1] + x, rtol=1e-14)


def takes(fun: Callable[..., Any], *args: Any) -> int:
    """In how many places the code takes memory for an array."""
    graph = run_passes(wend.function(fun).get_concrete_function(*args).graph, OPTIMIZE)
    return NativeBackend().text(graph).count("= call noalias ptr @wend.take")


def test_a_chain_of_elementwise_operations_is_one_loop() -> None:
    assert takes(lambda x: wnp.sqrt(x * 2.0 + 1.0) - x / 3.0, np.ones(5)) == 1

    def shared(x: Any) -> Any:
        y = wnp.exp(x)  # read twice
        return y * (y + 1.0)

    assert takes(shared, np.ones(5)) == 1
    np.testing.assert_allclose(native(shared)(np.ones(5)), shared(np.ones(5)), rtol=1e-15)


def test_what_is_computed_later_reads_what_was_there() -> None:
    @native
    def fun(x: Any, trips: Any) -> Any:
        x = x + 0.0
        y = x * 2.0
        x[0] = 5.0
        z = y + 1.0
        for _i in range(trips):
            y = x + z
            x[1] = y[0]
            z = y * 0.5
        return x, z

    def expected(x: Any, trips: int) -> Any:
        x = x + 0.0
        y = x * 2.0
        x[0] = 5.0
        z = y + 1.0
        for _ in range(trips):
            y = x + z
            x[1] = y[0]
            z = y * 0.5
        return x, z

    for trips in (0, 1, 4):
        for a, b in zip(fun(np.arange(3.0), trips), expected(np.arange(3.0), trips), strict=True):
            np.testing.assert_array_equal(a, b)
