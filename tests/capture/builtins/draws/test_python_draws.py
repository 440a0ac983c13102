"""Draws of Python's `random` that native code makes: the same numbers, state and errors."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.helpers.compiled import compiled
from tests.helpers.shares import sized

import wend
from wend.capture.builtins.draws import python_draws

# Draws of a generator `g`, with the numbers x and y and the integer n of the run
DRAWS = [
    *(
        "g.random()",
        "g.uniform(0, 1)",
        "g.uniform(x, y)",
        "g.uniform(-2, n)",
        "g.uniform(n, n + 3)",
    ),
    *("g.randint(1, 6)", "g.randint(0, n)", "g.randint(n, 5)", "g.randint(0, 2**32 - 1)"),
    *("g.randint(0, 2**32)", "g.randint(-2**60, 2**60)", "g.randint(3, 3)", "g.randrange(7)"),
    *(
        "g.randrange(n)",
        "g.randrange(2, n + 4)",
        "g.randrange(0, 9, 2)",
        "g.choice([1.5, 2.5, 4.0])",
    ),
    *("g.gauss(x, 1.0)", "g.expovariate(1.0)", "g.choice(range(9))", "g.choice([1.0])"),
]
ARGUMENTS = [(0.5, 1.5, 4), (-1.0, 0.25, 1), (2.0, -0.5, 0), (1.0, -2.0, -3), (0.5, 1.5, 40)]


def outcome(fun: Callable[..., Any], *args: Any) -> Any:
    try:
        return fun(*args)
    except ValueError as error:
        return type(error), str(error).partition("\n")[0]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_numbers_states_and_errors_are_those_of_python(draw: str, backend: str) -> None:
    fun = compiled(
        f"def fun(g, x, y, n):\n    s = 0.0\n    for _ in range(400):\n        s += {draw}\n"
        "    return s\n",
        "fun",
    )
    run, g, other = wend.function(fun, backend=backend), random.Random(1), random.Random(1)
    for args in ARGUMENTS:
        assert outcome(run, g, *args) == outcome(fun, other, *args)
        assert g.getstate() == other.getstate()


def test_the_module_and_generators_made_in_the_function() -> None:
    def fun(n: int) -> Any:
        g, total = random.Random(3), 0.0
        first = g.random()
        for _ in range(n):
            total += random.random() + g.uniform(-1, 1) + random.randint(1, 6)
        return first, total, g.randrange(100), random.uniform(1, 2)

    run = wend.function(fun, backend="native")
    for n in (3, 0, 900):
        random.seed(n)
        expected = fun(n)
        random.seed(n)
        assert run(n) == expected


class Loaded(random.Random):
    """A die that other methods draw from."""

    def random(self) -> float:
        return 0.25


def test_a_subclass_draws_by_its_own_methods() -> None:
    g = Loaded(1)
    assert not python_draws.is_known(g)
    run = wend.function(lambda g: [g.random() for _ in range(3)], backend="native")
    assert run(g) == [0.25] * 3


def test_threads_share_a_generator() -> None:
    """A draw has the GIL, so none is torn, and no number is drawn twice."""
    g, count, calls = random.Random(5), 2_000, 20

    @wend.function(backend="native")
    def draw(g: random.Random) -> Any:
        numbers = []
        for _ in range(count):
            numbers.append(g.random())
        return numbers

    draw(random.Random(0))
    draw(g)
    drawn: list[float] = []

    def many(use: Callable[[], Any]) -> None:
        for _ in range(calls):
            drawn.extend(use())

    threads = [threading.Thread(target=many, args=(lambda: draw(g),)) for _ in range(2)]
    threads.append(
        threading.Thread(target=many, args=(lambda: [g.random() for _ in range(count)],))
    )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = random.Random(5)
    for _ in range(count):
        expected.random()
    assert sorted(drawn) == sorted(expected.random() for _ in range(3 * calls * count))
    assert g.getstate() == expected.getstate()


def test_the_state_of_a_generator_is_not_read_while_it_is_traced() -> None:
    g = random.Random(0)
    run = wend.function(lambda g, x: g.gauss(x, 1.0))  # which keeps every second number
    assert len({run(g, 1.0) for _ in range(8)}) == 8
    assert run.trace_count == 1


@pytest.mark.parametrize("seed", range(sized(10, 500)))
def test_random_functions_that_draw(seed: int) -> None:
    writer = random.Random(seed)
    lines = ["s = 0.0"]
    for _ in range(writer.randint(1, 3)):
        first, second = writer.sample(DRAWS, 2)
        lines += writer.choice(
            [
                ["for _ in range(abs(n)):", f"    s = s * 0.5 + {first}", "    if s > x:",
                 f"        s -= {second}"],
                ["if x > y:", f"    s += {first}", "else:", f"    s -= {second}"],
                [f"s += {first}"],
            ]
        )  # fmt: skip
    body = "\n".join(f"    {line}" for line in [*lines, "return s"])
    fun = compiled(f"def fun(g, x, y, n):\n{body}\n", "fun")
    run = wend.function(fun, backend=writer.choice(["native", "numpy"]))
    g, other = random.Random(seed), random.Random(seed)
    for _ in range(3):
        for args in ARGUMENTS:
            assert outcome(run, g, *args) == outcome(fun, other, *args)
            assert g.getstate() == other.getstate()
