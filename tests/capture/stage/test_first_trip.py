"""Loops whose first trip differs, and names that some runs bind, against plain Python."""

from __future__ import annotations

import contextlib
import io
import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.shares import sized

import wend
from wend.testing import check_grads

XS = np.array([1.0, 2.0, 3.0])
SQUARE = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])

Case = tuple[Callable[..., Any], list[tuple[Any, ...]]]
CASES: list[Case] = []


def on(*arguments: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(fun: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((fun, [*arguments]))
        return fun

    return add


@on((SQUARE,))
def a_sum_of_rows(rows):
    s = 0
    for row in rows:
        s = s + row * row
    return s


@on((SQUARE,))
def a_sum_in_place(rows):
    s = 0
    for row in rows:
        s += row
    return s, rows


@on((SQUARE, 3), (SQUARE, 1))
def a_sum_of_some_rows(rows, n):
    s = 0.0
    for k in range(n):
        s = s + rows[k] * k
    return s * 2


@on((XS, 31.0), (XS, 5.0))
def a_while_that_starts_with_a_number(x, bound):
    s = 0
    while np.sum(s) < bound:
        s = s + x
    return s


@on((SQUARE,))
def nested_sums(rows):
    total = 0
    for i in range(3):
        s = 0
        for j in range(3):
            s = s + rows[i] * rows[j]
        total = total + s
    return total


@on((np.float32(2.0), 10), (np.float32(2.0), 1))
def another_dtype(x, n):
    s = np.int64(0)
    for _ in range(n):
        s = s + x
    return s


@on((XS,))
def a_state_that_starts_as_none(x):
    m = None
    for _ in range(100):
        if m is None:
            m = x * 0
        m = 0.9 * m + 0.1 * x
    return m


@on((XS, 5), (XS, 0))
def none_that_is_not_read_afterwards(x, n):
    m = None
    for _ in range(n):
        if m is None:
            m = x * 0
        m = 0.9 * m + 0.1 * x
        x = x - m
    return x * 2


@on((XS, np.array([3.0, -1.0, 2.0])), (XS[::-1].copy(), XS))
def the_smallest(x, y):
    best = None
    for k in range(len(x)):
        if best is None or x[k] * y[k] < best:
            best = x[k] * y[k]
    return best


class Adam:
    def __init__(self):
        self.m = None
        self.v = None
        self.t = 0

    def step(self, x, slope):
        if self.m is None:
            self.m = np.zeros_like(x)
            self.v = np.zeros_like(x)
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * slope
        self.v = 0.99 * self.v + 0.01 * slope**2
        mean = self.m / (1 - 0.9**self.t)
        return x - 0.1 * mean / (np.sqrt(self.v / (1 - 0.99**self.t)) + 1e-8)


@on((XS, 4), (XS, 1), (XS, 0))
def attributes_that_start_as_none(x, n):
    adam = Adam()
    for _ in range(n):
        x = adam.step(x, 2 * x)
    return x


@on((XS, 1e-2), (XS, 10.0))
def attributes_in_a_while(x, tolerance):
    adam = Adam()
    while np.abs(x).max() > tolerance:
        x = adam.step(x, 2 * x)
    return x


@on((XS,))
def a_test_of_the_counter(x):
    for k in range(len(x)):
        if k == 0:
            s = x[0]
        else:
            s = s + x[k] * s
    return s


@on((XS, 3), (XS, 1), (XS, 0))
def what_the_trip_before_left(x, n):
    s = 0.0
    for k in range(n):
        if k > 0:
            s = s + x[k] * last
        last = x[k]
    return s


@on((SQUARE, 3), (SQUARE, 1))
def a_vector_from_the_second_trip_on(rows, n):
    total = 0
    for k in range(n):
        if k > 0:
            total = total + np.abs(rows[k] - last)
        last = rows[k]
    return total + np.zeros(3)


@on((XS,))
def another_structure(x):
    state = None
    for k in range(200):
        state = (x, x) if state is None else (state[0] * 0.5 + state[1], x * k)
    return state


@on((XS, 3), (XS, 0))
def read_after_a_for(x, n):
    for k in range(n):
        y = x * k
    return y + k


@on((3.0,), (0.5,))
def read_after_a_while(x):
    while x > 1:
        y = x
        x = x / 2
    return y


@on((XS, 3), (XS, 1), (XS, 0))
def bound_in_an_inner_loop(x, n):
    for i in range(n):
        for j in range(i):
            y = x[j] * i
    return y


@on((1.0,), (-1.0,), (3.0,))
def bound_on_one_path(x):
    if x > 0:
        y = x * 2
    if x > 2:
        y = y + 1
    return y


@on((1.0,), (-1.0,))
def read_on_the_same_path(x):
    if x > 0:
        y = x * 2
    z = x
    if x > 0:
        z = z + y
    return z


@on((1.0,), (-1.0,))
def read_by_a_function(x):
    if x > 0:
        y = x * 2

    def double():
        return 2 * y

    return double() if x > -5 else x


@on((1.0, 2), (-1.0, 2), (1.0, 0))
def deleted_on_one_path(x, n):
    y = x
    if n > 1:
        del y
    if x > 0:
        y = x + 1
    return y


@on((XS, 2), (XS, 0))
def effects_of_the_first_trip(x, n):
    s = 0
    for k in range(n):
        print("trip", k)
        s = s + x
    return x


@on((XS, 0.5), (XS, 2.5), (XS, 9.0))
def an_error_of_a_later_trip(x, bound):
    s = 0
    for k in range(3):
        if x[k] > bound:
            raise ValueError(f"{x[k]} is too large")
        s = s + x
    return s


def outcome(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, str, Any]:
    args = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            result = fun(*args)
        except (NameError, TypeError, ValueError, wend.WendError) as error:
            result = error
    return result, out.getvalue(), args


def is_equal(ours: Any, pythons: Any) -> bool:
    """Compare results; a number may have become a float or, without a trip, an array."""
    if isinstance(pythons, BaseException):
        return type(ours) is type(pythons) and str(ours) == str(pythons)
    if isinstance(pythons, tuple):
        return len(ours) == len(pythons) and all(map(is_equal, ours, pythons))
    if pythons is None or ours is None:
        return pythons is ours
    x, y = np.asarray(ours), np.asarray(pythons)
    if isinstance(pythons, (int, float)):
        return bool((x == y).all())
    return x.shape == y.shape and x.dtype == y.dtype and np.allclose(x, y, rtol=1e-12, atol=1e-12)


def assert_as_in_python(fun: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    traced = wend.function(fun)
    for args in calls:
        result, printed, left = outcome(traced, args)
        expected, expected_print, expected_left = outcome(fun, args)
        assert is_equal(result, expected), (args, result, expected)
        assert printed == expected_print
        assert is_equal(left, expected_left)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_as_in_python(case: Case, backend: str) -> None:
    with wend.config(backend=backend):
        assert_as_in_python(*case)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_derivatives(case: Case) -> None:
    fun, calls = case
    args = calls[0]
    if np.asarray(args[0]).dtype != np.float64 or isinstance(outcome(fun, args)[0], Exception):
        pytest.skip("not a function of float64")

    def total(x: Any) -> Any:
        value = wend.function(fun)(x, *args[1:])
        value = value[0] if isinstance(value, tuple) else value
        return np.sum(value * np.arange(1.0, 1.0 + np.size(value)).reshape(np.shape(value)))

    with contextlib.redirect_stdout(io.StringIO()):
        check_grads(total, (np.asarray(args[0])[()],), order=1)


def test_it_stays_one_node() -> None:
    graph = str(wend.function(a_sum_of_some_rows).get_concrete_function(SQUARE, 3).graph)
    assert graph.count("while(") == 1


def test_what_gets_an_axis_in_every_trip_is_refused() -> None:
    def grow(x, most):
        while x.sum() < most:
            x = np.stack([x, x])
        return x

    with pytest.raises(wend.WendError, match=r"enters the loop as f64\[3\]"):
        wend.function(grow)(XS, 100.0)


@pytest.mark.usefixtures("integers_stay_traced")
def test_none_without_a_trip_is_none_after_the_loop() -> None:
    def last(x, n):
        m = None
        for _ in range(n):
            m = x
        return m

    compiled = wend.function(last)
    np.testing.assert_array_equal(compiled(XS, np.int64(2)), XS)
    assert compiled(XS, np.int64(0)) is None


# ---------------------------------------------------------------- random programs
class _Program:
    """Loops and branches that bind, change and read three names, in Python's source."""

    names = ("a", "b", "c")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        lines = ["def f(x, y, n):"]
        for name in self.names:
            start = self.choose("0", "0", "0", "None", "x * 1.0", "")
            lines += [f"    {name} = {start}"] if start else []
        lines += self.block(3, 1, None) + self.statement(3, 1, None)
        self.text = (
            "\n".join([*lines, f"    return {self.choose('a', 'b', 'c', 'a, b, c')}"]) + "\n"
        )

    def choose(self, *options: str) -> str:
        return self.random.choice(options)

    def value(self) -> str:
        parts = ["x[0]", "x[1]", "1.5", "2", "0", *self.random.sample(self.names, 2)]
        a, b = self.choose(*parts), self.choose(*parts)
        return self.choose(a, f"{a} + {b}", f"{a} * 0.5 + {b}", f"{a} - x", f"{b} * x", f"{a} + y")

    def test(self, counter: str | None) -> str:
        options = [f"x[{self.random.randrange(3)}] > 1", "n > 2", "np.sum(y) > 3"]
        if counter:
            options += 2 * [f"{counter} == 0", f"{counter} > 0", f"{counter} == n - 1"]
        return self.choose(*options, *options, f"{self.choose(*self.names)} is None")

    def block(self, depth: int, level: int, counter: str | None) -> list[str]:
        count = self.random.randrange(1, 4)
        return [line for _ in range(count) for line in self.statement(depth, level, counter)]

    def statement(self, depth: int, level: int, counter: str | None) -> list[str]:
        indent, kind = "    " * level, self.random.random()
        name = self.choose(*self.names)
        if kind < 0.4 or not depth:
            return [
                indent
                + self.choose(
                    *[f"{name} = {self.value()}"] * 6,
                    f"{name} = 0",
                    f"{name} += {self.value()}",
                    f"{name} = {self.choose('x', 'y', *self.names)}",
                    f"{self.choose('x', 'y', name)}[1:] = {self.choose('2.5', 'x[1]', 'n')}",
                )
            ]
        if kind < 0.65 or self.loops == 3:
            lines = [
                f"{indent}if {self.test(counter)}:",
                *self.block(depth - 1, level + 1, counter),
            ]
            if counter and self.random.random() < 0.15:
                lines.append(f"{indent}    {self.choose('break', 'continue')}")
            if self.random.random() < 0.4:
                lines += [f"{indent}else:", *self.block(depth - 1, level + 1, counter)]
            return lines
        self.loops += 1
        counter = f"k{self.loops}"
        if kind < 0.9:
            numbers = self.choose("range(n)", "range(n)", "range(3)", "range(n + 70)", "range(100)")
            head = [f"{indent}for {counter} in {numbers}:"]
            body = self.block(depth - 1, level + 1, counter)
        else:
            head = [f"{indent}{counter} = 0", f"{indent}while {counter} < n:"]
            head.append(f"{indent}    {counter} = {counter} + 1")
            body = self.block(depth - 1, level + 1, counter)
        return head + body


def _compare(seed: int) -> str:
    """Return whether a program is equal or refused; fail if it differs."""
    text, file = _Program(seed).text, f"<program {seed}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {"np": np}
    exec(compile(text, file, "exec"), names)
    fun = names["f"]
    traced = wend.function(fun)
    y = np.array([0.5, 0.25, 1.0])
    calls = [(XS, y, 3), (XS - 2.0, y, 0), (XS[::-1].copy(), y - 4.0, 1), (-XS, 5 * y, 2)]
    for args in calls:
        result, _, left = outcome(traced, args)
        if isinstance(result, wend.WendError):
            return "refused"
        expected, _, expected_left = outcome(fun, args)
        if isinstance(expected, TypeError):  # of None; the text names another type
            assert isinstance(result, TypeError), (text, args, result)
            continue
        assert is_equal(result, expected), (text, args, result, expected)
        assert is_equal(left, expected_left), (text, args)
    return "equal"


def _check_programs(seeds: range) -> None:
    kinds = [_compare(seed) for seed in seeds]
    assert kinds.count("equal") > 0.25 * len(kinds)


def test_random_programs() -> None:
    with wend.config(backend="numpy", verify=False):
        _check_programs(range(sized(12, 60)))


@pytest.mark.slow
def test_many_random_programs() -> None:
    with wend.config(backend="numpy", verify=False):
        _check_programs(range(60, 5_000))
    with wend.config(backend="native", verify=False):
        _check_programs(range(5_000, 5_300))
