"""Arguments left out, or given as their defaults, share a trace."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import wend

X = np.arange(3.0)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((X,), {}),
    ((X, 2.0), {}),
    ((X,), {"y": 2.0}),
    ((X,), {"k": 1.0, "y": 2.0}),
    ((), {"y": 2.0, "k": 1.0, "x": X}),
    ((X, 2.0), {"mode": "sum"}),
]


def native(fun: Any) -> Any:
    return wend.function(fun, backend="native")


def make() -> Any:
    def fun(x: Any, y: Any = 2.0, *, k: Any = 1.0, mode: Any = "sum") -> Any:
        return x * y + k if mode == "sum" else x - y * k

    return fun


def same(a: Any, b: Any) -> bool:
    return np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize("calls", [*itertools.permutations(CALLS[:3]), CALLS, CALLS[::-1]])
def test_a_default_given_or_left_out_is_one_trace(calls: Any) -> None:
    fun = make()
    compiled = native(fun)
    for _ in range(12):
        for args, kwargs in calls:
            assert same(compiled(*args, **kwargs), fun(*args, **kwargs))
    assert compiled.trace_count == 1
    before = compiled._cache._calls.in_python
    for args, kwargs in calls:
        compiled(*args, **kwargs)
    assert compiled._cache._calls.in_python == before


@pytest.mark.filterwarnings("ignore::wend.base.errors.RetraceWarning")
def test_any_calls_while_defaults_change() -> None:
    random.seed(3)
    for _ in range(3):
        fun = make()
        compiled = native(fun)
        for _ in range(60):
            if random.random() < 0.1:
                fun.__defaults__ = (random.choice([2.0, 3.0, 2, -0.0, 0.0]),)
            if random.random() < 0.1:
                fun.__kwdefaults__["k"] = random.choice([1, 1.0, True, 5])
            if random.random() < 0.05:
                fun.__kwdefaults__ = {"k": 1, "mode": random.choice(["sum", "difference"])}
            args: tuple[Any, ...] = (random.choice([X, 2.5]),)
            kwargs: dict[str, Any] = {}
            if random.random() < 0.5:
                args = (*args, random.choice([2.0, 2.0, 2, 3.0, 0.0, -0.0, np.float64(2)]))
            if random.random() < 0.5:
                kwargs["k"] = random.choice([1, 1, 1.0, True, 4])
            if random.random() < 0.3:
                kwargs["mode"] = random.choice(["sum", "difference"])
            for _ in range(random.choice([1, 3])):
                assert same(compiled(*args, **kwargs), fun(*args, **kwargs)), (args, kwargs)


def test_other_values_are_not_the_default() -> None:
    compiled = native(lambda x, y=0.0: x / (y + 1.0) * (1.0 if y == 0.0 else 2.0))
    for y in (0.0, -0.0, 1.0, 0.0, 3.0):
        for _ in range(4):
            assert compiled(2.0, y) == 2.0 / (y + 1.0) * (1.0 if y == 0.0 else 2.0)
            assert compiled(2.0) == 2.0
    assert compiled.trace_count == 1


def test_ints_that_steer_structure() -> None:
    def fun(x: Any, n: Any = 3) -> Any:
        return [x**k for k in range(n)]

    for calls, traces in ([(2.0,), (2.0, 3)], 1), ([(2.0, 3), (2.0,)], 2):
        compiled = native(fun)
        for args in calls * 4:
            assert compiled(*args) == fun(*args)
        assert compiled.trace_count == traces
        assert compiled(2.0, 4) == fun(2.0, 4)


@pytest.mark.parametrize("default", [2, True])
def test_an_integer_left_out_is_pythons(default: Any) -> None:
    """Whatever was called before: the power of a bool array by a traced integer is wider."""
    small = np.array([True, False])

    def power(b: Any, n: Any = default) -> Any:
        return b**n

    compiled = native(power)
    for _ in range(5):
        compiled(small, default)
        assert same(compiled(small), power(small))


def test_positional_only_parameters() -> None:
    def fun(x: Any, a: Any = 1.0, b: Any = 2.0, /, **more: Any) -> Any:
        return x + 10.0 * a + 100.0 * b + 1000.0 * sum(more.values())

    for first in ({}, {"c": 5.0}):
        compiled = native(fun)
        for args in [(1.0,), (1.0, 1.0, 5.0), (1.0, 1.0), (1.0, 3.0, 2.0), (1.0, 1.0, 2.0)] * 4:
            assert compiled(1.0, **first) == fun(1.0, **first)
            assert compiled(*args) == fun(*args)


def test_containers_as_defaults_are_read_at_each_call() -> None:
    kept = [1.0]
    compiled = native(lambda x, y=kept: x * y[0])
    assert [compiled(3.0), compiled(3.0, [1.0])] == [3.0, 3.0]
    kept[0] = 2.0
    assert [compiled(3.0) for _ in range(3)] == [6.0] * 3


def test_more_positional_arguments() -> None:
    def fun(x: Any, y: Any = 2.0, *more: Any, k: Any = 1.0) -> Any:
        return x * y + k + sum(more)

    compiled = native(fun)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1.0,), {}),
        ((1.0, 2.0), {}),
        ((1.0, 2.0, 3.0), {}),
        ((1.0, 2.0, 3.0), {"k": 1.0}),
    ]
    for args, kwargs in calls * 4:
        assert compiled(*args, **kwargs) == fun(*args, **kwargs)
    assert compiled.trace_count == 2


def test_methods() -> None:
    class Scaled:
        rate = 3.0

        @wend.function
        def apply(self, x: Any, y: Any = 2.0) -> Any:
            return x * y * self.rate

    scaled = Scaled()
    for _ in range(4):
        assert scaled.apply(1.0) == scaled.apply(1.0, 2.0) == scaled.apply(1.0, y=2.0) == 6.0
    assert scaled.apply.trace_count == 1
