"""Draws of the items of sequences, and shuffled lists: those of plain Python, from its stream."""
# ruff: noqa: NPY002

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import UnsupportedError
from wend.testing import check_grads

PYTHON, OLD = random.Random(0), np.random.RandomState(0)
PROGRAMS: dict[str, Callable[..., Any]] = {
    "choice_of_a_list": lambda xs: random.choice(xs) + 2.0 * random.choice(xs),
    "choice_of_an_array": lambda xs: random.choice(np.array(xs)),
    "choice_of_tuples": lambda xs: random.choice([(1, xs[0]), (2, 4.0)]),
    "choice_of_a_range": lambda xs: xs[random.choice(range(2, -1, -1))],
    "choice_of_texts": lambda xs: [random.choice("abc"), random.choice(["up", "down"])],
    "of_a_generator": lambda xs: (PYTHON.choice(xs), PYTHON.sample(xs, 2)),
    "choices": lambda xs: random.choices(xs, k=3),
    "choices_by_weights": lambda xs: (random.choices(xs, [x * x for x in xs], k=2),
                                      random.choices(range(3), cum_weights=[1, 2, 9])),
    "sample": lambda xs: (random.sample(xs, 2), random.sample(range(100), k=5)),
    "sample_of_nothing": lambda xs: random.sample(xs, 0),
    "choice_of_nothing": lambda xs: random.choice([]),
    "sample_of_too_many": lambda xs: random.sample(xs, 9),
    "choices_without_weights": lambda xs: random.choices(xs, [0.0 * x for x in xs]),
}  # fmt: skip


def shuffled(xs: Any) -> Any:
    ys, names = [x * k for x in xs for k in range(3)], ["a", "b", "c"]
    random.shuffle(ys)
    OLD.shuffle(names)
    return ys, names, [np.random.shuffle(ys)], ys


def shuffled_argument(xs: Any) -> None:
    random.shuffle(xs)


def shuffled_growing(xs: Any) -> Any:
    ys = []
    for k in range(100):
        if k * xs[0] < 50.0:
            ys.append(k * xs[1])
    random.shuffle(ys)
    return ys, random.choice(ys)


def swapped(xs: Any) -> Any:
    for _ in range(100):
        i, j = random.sample(range(len(xs)), 2)
        xs[i], xs[j] = xs[j], xs[i]
    return random.choice(xs)


def walk(xs: Any) -> Any:
    x, trips = xs[0], 0
    while abs(x) < 5.0:
        x, trips = x + random.choice([-1, 0, 1]) * xs[1], trips + 1
    return x, trips


PROGRAMS |= {f.__name__: f for f in (shuffled, shuffled_argument, shuffled_growing, swapped, walk)}


def outcome(function: Callable[..., Any], xs: list[float]) -> Any:
    xs = copy.copy(xs)
    for stream in (random, np.random, PYTHON, OLD):
        stream.seed(7)  # type: ignore[attr-defined]
    try:
        return [function(xs), function(xs)], xs, random.random()
    except (IndexError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_runs_draw_what_python_draws(name: str, backend: str) -> None:
    function, xs = PROGRAMS[name], [1.0, 2.0, 3.5]
    compiled = wend.function(function, backend=backend)
    for _ in range(2):
        assert outcome(compiled, xs) == outcome(function, xs)
    assert compiled.trace_count <= 2


def test_drawn_items_have_derivatives() -> None:
    def loss(x: Any) -> Any:
        generator, ys = random.Random(3), [x, x * x, np.sin(x)]
        generator.shuffle(ys)
        y = sum(k * item for k, item in enumerate(ys))
        for _ in range(3):
            y = y * generator.choice(ys) + generator.sample(ys, 2)[1]
        return y

    check_grads(loss, (0.7,), order=2)


@pytest.mark.parametrize("draw", [
    lambda x: random.choice({"a": x}),
    lambda x: random.sample([1.0, 2.0, 3.0], int(x)),
    lambda x: random.shuffle(np.array([x, 2.0])),  # type: ignore[arg-type]
])  # fmt: skip
def test_other_draws_are_refused(draw: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="draws a random number"):
        wend.function(draw)(2.0)
