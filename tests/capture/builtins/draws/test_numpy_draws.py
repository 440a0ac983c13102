"""Draws that native code makes by NumPy's functions: the same numbers, state and errors."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.compiled import compiled
from tests.helpers.shares import sized

import wend
from wend.backends.native.rt import numpy_draws

# Draws of a generator `g`, with the numbers x and y and the integer n of the run
DRAWS = [
    *("g.random()", "g.random(3).sum()", "g.random(size=())", "g.random((2, 2))[1, 0]"),
    *("g.standard_normal()", "g.standard_normal(4)[1]", "g.standard_exponential()"),
    *("g.normal()", "g.normal(x)", "g.normal(x, y)", "g.normal(loc=1.0, scale=y, size=2)[1]"),
    *("g.uniform()", "g.uniform(x, x + y)", "g.uniform(low=-1, high=y)", "g.uniform(x, y, 2)[0]"),
    *("g.integers(7)", "g.integers(n)", "g.integers(-3, n)", "g.integers(n - 2, n, size=3).sum()"),
    *("g.integers(2, 9, endpoint=True)", "g.integers(n, endpoint=True)", "g.integers(1)"),
    *("g.integers(-2**60, 2**60)", "g.integers(0, 2**32)", "g.integers(n, n + 2**33)"),
    *("g.integers(0, 2**32 - 1, endpoint=True)", "g.integers(9, dtype=np.int32)"),
    *("g.exponential()", "g.exponential(y)", "g.lognormal(x, y)", "g.laplace(x, y)", "g.gumbel()"),
    *("g.rayleigh(y)", "g.logistic(x)", "g.gamma(2.0)", "g.gamma(2.0, y)", "g.beta(0.5, 1.5)"),
    *("g.poisson(3.0)", "g.poisson(y)", "g.chisquare(3)", "g.standard_t(4.0)", "g.weibull(1.5)"),
    *("g.pareto(2.0)", "g.power(1.5)", "g.standard_cauchy()", "g.standard_gamma(0.7)"),
    *("g.random(dtype=np.float32)", "g.standard_exponential(method='inv')"),
    *("g.normal(np.array([x, y])).sum()", "g.binomial(4, 0.5)", "g.permutation(4)[0]"),
    *("g.random(n).sum()", "g.choice(5)", "g.choice(9, 3).sum()", "g.choice([0.5, 1.5, 4.0])"),
    *("g.choice(np.arange(6.0).reshape(2, 3))[1]", "g.choice(5, replace=False)"),
]
OLD_DRAWS = [
    *(
        "g.rand()",
        "g.rand(2, 2).sum()",
        "g.random_sample()",
        "g.random()",
        "g.uniform(x, y)",
        "g.randint(5)",
    ),
    *("g.randint(n)", "g.randint(2, n + 3)", "g.randint(0, 9, size=2).sum()", "g.randn()"),
    *(
        "g.normal(x, 1.0)",
        "g.normal(x, y)",
        "g.normal(0, 1, 3)[2]",
        "g.standard_normal((2, 1))[0, 0]",
    ),
    *("g.randn(3)[1]", "g.uniform(0, np.inf)", "g.choice(4)", "g.exponential(y)"),
    *("g.choice(np.array([0.5, 1.5, 4.0]), 2)[1]", "g.choice(np.ones((2, 2)))[0]", "g.choice(0)"),
]


def outcome(fun: Callable[..., Any], *args: Any) -> Any:
    try:
        return fun(*args)
    except (ValueError, OverflowError) as error:
        return type(error), str(error).partition("\n")[0]


def state_of(g: Any) -> str:
    return repr(g.get_state() if isinstance(g, np.random.RandomState) else g.bit_generator.state)


@pytest.mark.parametrize("draw", [*DRAWS, *OLD_DRAWS])
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_numbers_states_and_errors_are_those_of_numpy(draw: str, backend: str) -> None:
    fun = compiled(
        f"def fun(g, x, y, n):\n    s = 0.0\n    for _ in range(3):\n        s += {draw}\n"
        "    return s\n",
        "fun",
    )
    g: Any = np.random.default_rng(1) if draw in DRAWS else np.random.RandomState(1)
    run, other = wend.function(fun, backend=backend), copy.deepcopy(g)
    for args in [(0.5, 1.5, 4), (-1.0, 0.25, 1), (2.0, -0.0, 0), (1.0, -2.0, -3), (0.5, 1.5, 9)]:
        assert outcome(run, g, *args) == outcome(fun, other, *args)
        assert state_of(g) == state_of(other)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_negative_sizes_are_errors_that_handlers_see(backend: str) -> None:
    def fun(g: Any, n: int) -> Any:
        total = 0.0
        for draw in (g.random, g.standard_normal, lambda n: g.integers(4, size=(2, n))):
            try:
                total += draw(n).sum()
            except ValueError as error:
                total -= len(str(error))
        return total, len(g.permutation(n)), g.random()

    g, other = np.random.default_rng(1), np.random.default_rng(1)
    for n in (-1, 2, -3, 0):
        run = wend.function(lambda g, n=n: fun(g, n), backend=backend)
        assert run(g) == fun(other, n)
        assert state_of(g) == state_of(other)


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_any_bit_generator(bits: str) -> None:
    make = getattr(np.random, bits)
    g, other = (np.random.Generator(make(7)) for _ in range(2))

    def fun(g: Any) -> Any:
        return [g.normal() + g.integers(100) for _ in range(4)]

    run = wend.function(fun, backend="native")
    for _ in range(3):
        assert run(g) == fun(other)


def test_python_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of generators that the run makes; where NumPy exports no functions it does."""

    def fun(n: int) -> Any:
        g, total = np.random.default_rng(n), 0.0
        for _ in range(n):
            total += g.normal() + g.uniform(-1, 1) + g.integers(5) + g.random(2).sum()
        return total

    run = wend.function(fun, backend="native")
    assert [run(n) for n in (3, 0, 20)] == [fun(n) for n in (3, 0, 20)]
    (executable,) = run.get_concrete_function(3).compiled.executables()
    assert len(executable.host_nodes) == 1  # which makes the generator
    monkeypatch.setattr(numpy_draws, "is_available", lambda stem: False)
    other = wend.function(lambda n: fun(n), backend="native")
    assert other(5) == fun(5)
    (executable,) = other.get_concrete_function(5).compiled.executables()
    assert len(executable.host_nodes) > 4


def test_a_generator_made_in_the_function_draws_with_parameters_of_the_run() -> None:
    def fun(x: float) -> Any:
        g = np.random.default_rng(3)
        first = g.random(2)
        return first, g.normal(x, 0.5), g.uniform(x, 3.0, 2), g.random()

    for backend in ("native", "numpy"):
        run = wend.function(fun, backend=backend)
        for x in (0.5, -1.0, 2.0):
            for a, b in zip(run(x), fun(x), strict=True):
                np.testing.assert_array_equal(a, b)


def test_threads_share_a_generator() -> None:
    """A call has the generator's lock, so no number is drawn twice, and none is left out."""
    g, count, calls = np.random.default_rng(0), 50, 40

    @wend.function(backend="native")
    def draw() -> Any:
        numbers = np.zeros(count)
        for k in range(count):
            numbers[k] = g.random()
        return numbers

    draw()
    g, drawn = np.random.default_rng(5), []

    def many(use: Callable[[], Any]) -> None:
        drawn.extend(use() for _ in range(calls))

    draw()
    threads = [threading.Thread(target=many, args=(draw,)) for _ in range(2)]
    threads.append(threading.Thread(target=many, args=(lambda: g.random(count),)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = np.random.default_rng(5).random((3 * calls + 1, count))
    assert sorted(np.ravel(drawn)) == sorted(np.ravel(expected[1:]))


class Writer:
    """Writes functions that draw in loops, branches and handlers, of generators of all kinds."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.maker = self.random.choice(
            [
                *("", "g = np.random.default_rng(5)", "g = np.random.default_rng(abs(n))"),
                "g = np.random.RandomState(2)",
            ]
        )

    def draw(self) -> str:
        return self.random.choice(OLD_DRAWS if "RandomState" in self.maker else DRAWS)

    def statement(self) -> list[str]:
        choice, draw, other = self.random.random(), self.draw(), self.draw()
        if choice < 0.35:
            bound, least = self.random.choice(["3", "n", "abs(n)"]), self.random.choice("xy")
            lines = [f"for _ in range({bound}):", f"    s = s * 0.5 + {draw}"]
            return [*lines, f"    if s > {least}:", f"        s -= {other}"]
        if choice < 0.6:
            return ["if x > y:", f"    s += {draw}", "else:", f"    s -= {other}"]
        if choice < 0.75:
            return ["while abs(s) < 1.0:", f"    s = s + 0.4 + abs({draw})"]
        return [f"s += {draw}"]

    def function(self) -> str:
        lines = [x for _ in range(self.random.randint(1, 3)) for x in self.statement()]
        maker = [self.maker] if self.maker else []
        body = "\n".join(f"    {x}" for x in [*maker, "s = 0.0", *lines, "return s"])
        return f"def fun(g, x, y, n):\n{body}\n"


@pytest.mark.parametrize("seed", range(sized(20, 1000)))
def test_random_functions_that_draw(seed: int) -> None:
    writer = Writer(seed)
    fun = compiled(writer.function(), "fun")
    run = wend.function(fun, backend=writer.random.choice(["native", "native", "numpy"]))
    g = np.random.default_rng(seed)
    other = copy.deepcopy(g)
    for _ in range(8):
        x, y = (round(writer.random.uniform(-1, 2), 2) for _ in range(2))
        args = x, y, writer.random.randint(-1, 6)
        found, expected = outcome(run, g, *args), outcome(fun, other, *args)
        assert found == (
            expected if isinstance(expected, tuple) else pytest.approx(expected, rel=1e-12)
        )
        assert state_of(g) == state_of(other)


def test_calls_that_draw_enter_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    g, other = np.random.default_rng(3), np.random.default_rng(3)
    one = wend.function(lambda x: x + g.normal(), backend="native")
    two = wend.function(lambda a, b, x: a.random() + b.random() * x, backend="native")
    own = wend.function(lambda a: a.random() + random.random(), backend="native")
    for k in range(12):
        assert one(1.0) == 1.0 + other.normal()
        assert two(g, np.random.mtrand._rand, 2.0) > 0.0
        other.random()
        random.seed(k)
        expected = other.random() + random.random()
        random.seed(k)
        assert own(g) == expected
    runs: list[Any] = []
    kind = type(one.get_concrete_function(1.0))
    run = kind.run
    monkeypatch.setattr(kind, "run", lambda self, *args: runs.append(self) or run(self, *args))
    for fun, args in ((one, (1.0,)), (two, (g, np.random.mtrand._rand, 2.0)), (own, (g,))):
        assert len({fun(*args) for _ in range(5)}) == 5
    assert not runs
