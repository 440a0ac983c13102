"""Draws of NumPy's and Python's generators in captured code: those of plain Python."""
# ruff: noqa: NPY002

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend

NEW = np.random.default_rng(0)
OLD = np.random.RandomState(0)
PYTHON = random.Random(0)
P = np.array([0.2, 0.3, 0.5])
ITEMS = np.array([1.5, 2.5, 3.5], np.float32)

# Distributions of both kinds of generators: two traced numbers, positive and below 1
BOTH: dict[str, Callable[..., Any]] = {
    "beta": lambda r, x, y: (r.beta(x, y), r.beta(x, [y, 2.0])),
    "binomial": lambda r, x, y: (r.binomial(5, x), r.binomial(5, x, size=3)),
    "chisquare": lambda r, x, y: r.chisquare(x, (2, 1)),
    "exponential": lambda r, x, y: (r.exponential(), r.exponential(x), r.exponential(size=())),
    "f": lambda r, x, y: r.f(x, y, 2),
    "gamma": lambda r, x, y: (r.gamma(x), r.gamma(2.0, scale=np.array([x, y]))),
    "geometric": lambda r, x, y: (r.geometric(x), r.geometric(0.5, 3)),
    "gumbel": lambda r, x, y: r.gumbel(x, y),
    "hypergeometric": lambda r, x, y: r.hypergeometric(5, 4, 3, size=4),
    "laplace": lambda r, x, y: r.laplace(x, scale=y, size=2),
    "logistic": lambda r, x, y: r.logistic(),
    "lognormal": lambda r, x, y: r.lognormal(x, y),
    "logseries": lambda r, x, y: r.logseries(x, 3),
    "negative_binomial": lambda r, x, y: r.negative_binomial(3, x),
    "noncentral_chisquare": lambda r, x, y: r.noncentral_chisquare(x, y),
    "noncentral_f": lambda r, x, y: r.noncentral_f(3.0, 2.0, x),
    "normal": lambda r, x, y: (r.normal(), r.normal(x, y), r.normal(0, 1, (2, 3)),
                               r.normal(size=2)),
    "of_arrays": lambda r, x, y: r.normal(x * P, np.array([[y], [1.0]])),
    "pareto": lambda r, x, y: r.pareto(x),
    "poisson": lambda r, x, y: (r.poisson(x), r.poisson(), r.poisson([1.0, y])),
    "power": lambda r, x, y: r.power(x, size=2),
    "rayleigh": lambda r, x, y: r.rayleigh(x),
    "standard_cauchy": lambda r, x, y: r.standard_cauchy(2),
    "standard_exponential": lambda r, x, y: r.standard_exponential(),
    "standard_gamma": lambda r, x, y: r.standard_gamma(x),
    "standard_normal": lambda r, x, y: (r.standard_normal(), r.standard_normal((2, 2))),
    "standard_t": lambda r, x, y: r.standard_t(x),
    "triangular": lambda r, x, y: r.triangular(0, x, 1),
    "uniform": lambda r, x, y: (r.uniform(), r.uniform(-x, y, size=3), r.uniform(y, 2)),
    "vonmises": lambda r, x, y: r.vonmises(x, y),
    "wald": lambda r, x, y: r.wald(x, y),
    "weibull": lambda r, x, y: r.weibull(x),
    "zipf": lambda r, x, y: r.zipf(1 + x),
    "multinomial": lambda r, x, y: (r.multinomial(5, P), r.multinomial(5, [x, 1 - x], size=2)),
    "dirichlet": lambda r, x, y: (r.dirichlet([x, y]), r.dirichlet(P, 2)),
    "multivariate_normal": lambda r, x, y: r.multivariate_normal([x, y], np.eye(2), size=3),
    "choice": lambda r, x, y: (r.choice(3), r.choice(ITEMS), r.choice(ITEMS * x, 2),
                               r.choice(5, (2, 2))),
    "choice_p": lambda r, x, y: (r.choice(3, p=P), r.choice(3, 2, False, [x, 0, 1 - x]),
                                 r.choice([1.0, x, y], size=2, replace=False)),
    "permutation": lambda r, x, y: (r.permutation(4), r.permutation(ITEMS * x),
                                    r.permutation([x, y])),
    "float32": lambda r, x, y: np.float32(x) * r.normal() + ITEMS * r.uniform(),
}  # fmt: skip
NEWER: dict[str, Callable[..., Any]] = {
    "random": lambda r, x, y: (r.random(), r.random(3), r.random((1, 2), np.float32)),
    "integers": lambda r, x, y: (r.integers(5), r.integers(2, 5, 3), r.integers(3, endpoint=True),
                                 r.integers(5, dtype=np.int32), r.integers(0, [3, 9], dtype="u1")),
    "standard_normal_f4": lambda r, x, y: r.standard_normal(2, dtype=np.float32),
    "choice_axis": lambda r, x, y: r.choice(np.eye(3) * x, 2, axis=1, replace=False),
    "permuted": lambda r, x, y: r.permuted(np.arange(6.0).reshape(2, 3) * x, axis=1),
    "hypergeometric_vectors": lambda r, x, y: r.multivariate_hypergeometric([3, 4], 5, size=2),
}  # fmt: skip
OLDER: dict[str, Callable[..., Any]] = {
    "rand": lambda r, x, y: (r.rand(), r.rand(2, 1)),
    "randn": lambda r, x, y: (r.randn(), r.randn(3)),
    "randint": lambda r, x, y: (r.randint(5), r.randint(2, 5, 3), r.randint(5, dtype="u1")),
    "random_sample": lambda r, x, y: (r.random_sample(), r.random_sample((2,)), r.random(2)),
    "seed": lambda r, x, y: (r.seed(3), r.rand())[1],
    "tomaxint": lambda r, x, y: r.tomaxint(),
}


def shuffled(r: Any, x: Any, y: Any) -> Any:
    items = np.arange(5) * x
    r.shuffle(items)
    return items


def branching(r: Any, x: Any, y: Any) -> Any:
    """A test of a draw, a loop of an unknown number of draws, and the draws after it."""
    trips = 0.0
    while r.normal() < 1.0 + x:
        trips = trips + r.uniform(0, x)
    total = r.normal(size=3) if r.uniform() < 0.5 else r.uniform(size=3)
    for k in range(4):
        total = total + k * r.normal(k, y)
    return trips, total, r.normal()


def in_helpers(r: Any, x: Any, y: Any) -> Any:
    def step(z: Any) -> Any:
        return z + r.normal(0, z * z)

    return step(step(x)), [step(y) for _ in range(3)]


PROGRAMS = {"shuffle": shuffled, "branches": branching, "helpers": in_helpers}
CASES = [
    *((NEW, name, run) for name, run in {**BOTH, **NEWER, **PROGRAMS}.items()),
    *((OLD, name, run) for name, run in {**BOTH, **OLDER, **PROGRAMS}.items()),
]


def outcome(run: Callable[..., Any], *args: Any) -> list[tuple[str, Any]]:
    """The dtype and elements of each array of a result."""
    flat: list[Any] = []

    def add(x: Any) -> None:
        if isinstance(x, (list, tuple)):
            for item in x:
                add(item)
        else:
            flat.append((np.asarray(x).dtype.str, np.asarray(x).tolist()))

    add(run(*args))
    return flat


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    ("generator", "name", "run"), CASES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_draws_are_those_of_plain_python(generator: Any, name: str, run: Any, backend: str) -> None:
    twin = copy.deepcopy(generator)
    traced = wend.function(lambda x, y: run(generator, x, y), backend=backend)
    for x, y in ((0.25, 0.5), (0.5, 0.75)):
        assert outcome(traced, x, y) == outcome(run, twin, x, y)
    assert generator.standard_normal() == twin.standard_normal()  # as many


def test_the_stream_of_the_module() -> None:
    def draws(x: Any) -> Any:
        np.random.seed(7)
        a = np.random.rand(2), np.random.ranf(), np.random.sample(2), np.random.randn() * x
        return a, np.random.randint(9), np.random.choice([1.0, x]), np.random.permutation(3)

    traced = wend.function(draws)
    assert outcome(traced, 2.0) == outcome(draws, 2.0)
    assert np.random.rand() == [draws(2.0), np.random.rand()][1]


def test_the_sizes_of_a_draw_follow_those_of_an_array() -> None:
    def noisy(r: Any, x: Any) -> Any:
        n = len(x)
        return x + r.normal(size=x.shape) + r.uniform(size=n) + x[r.permutation(n)] + r.choice(x, n)

    twin = copy.deepcopy(NEW)
    traced = wend.function(lambda x: noisy(NEW, x))
    for n in (3, 4, 6, 5):
        x = np.arange(float(n))
        np.testing.assert_array_equal(traced(x), noisy(twin, x))
    assert " 2 traces" in str(traced.explain())


def test_python_s_generator() -> None:
    def draws(r: Any, x: Any) -> Any:
        total = r.random() + r.uniform(0, x) + r.gauss(0, 1) + r.randint(1, 6) + r.randrange(5)
        while r.random() < x:
            total = total + r.expovariate(x)
        return total

    twin = copy.deepcopy(PYTHON)
    traced = wend.function(lambda x: draws(PYTHON, x))
    assert [traced(0.5) for _ in range(3)] == [draws(twin, 0.5) for _ in range(3)]


def test_draws_are_constant_to_derivatives_and_made_once() -> None:
    twin = copy.deepcopy(NEW)

    def cost(x: Any) -> Any:
        return x * x * NEW.normal(x, 1.0)

    traced = wend.value_and_grad(cost)
    noise = twin.normal(3.0, 1.0)
    assert traced(3.0) == (9 * noise, 6 * noise)
    second = wend.grad(wend.grad(cost))(3.0)
    assert second == 2 * twin.normal(3.0, 1.0)
    primal, tangent = wend.jvp(cost, (3.0,), (1.0,))
    noise = twin.normal(3.0, 1.0)
    assert (primal, tangent) == (9 * noise, 6 * noise)
    assert NEW.normal() == twin.normal()
    assert "draws by Generator.normal, constant to derivatives, at" in str(traced.explain())


def test_errors_of_a_run_are_numpys() -> None:
    run = wend.function(lambda x: NEW.normal(0.0, x))
    run(1.0)
    with pytest.raises(ValueError, match="scale < 0"):
        run(-1.0)
    with pytest.raises(ValueError, match="scale < 0"):
        wend.function(lambda x: x * NEW.normal(0.0, -1.0))(1.0)
    skips = wend.function(lambda x: NEW.normal(0.0, -1.0) if x > 0 else x)
    assert skips(-1.0) == -1.0
    for call in (lambda x: NEW.normal(x, 1, 2, 3), lambda x: NEW.normal(x, of=3)):
        with pytest.raises(TypeError):
            wend.function(call)(1.0)


def test_what_cannot_be_recorded_is_refused() -> None:
    for call, says in (
        (lambda x: NEW.shuffle({0: x}), "x = rng.permutation"),
        (lambda x: NEW.bytes(3), "Generator.bytes"),
        (lambda x: OLD.get_state(), "RandomState.get_state"),
        (lambda x: NEW.choice(["a", "b"]), "which are no numbers"),
        (lambda x: PYTHON.shuffle({0: x}), "Random.shuffle"),
    ):
        with pytest.raises(NotImplementedError, match=says):
            wend.function(call)(1.0)


def test_lists_of_outside_are_shuffled() -> None:
    for kind in np.random.default_rng, random.Random:
        outcomes = []
        for wrap in (lambda fun: fun), wend.function:
            generator, items = kind(3), [1.0, 2.0, 3.0, 4.0]
            run = wrap(lambda x, generator=generator, items=items: generator.shuffle(items))
            outcomes.append([(run(1.0), [*items])[1] for _ in range(4)])
        assert outcomes[1] == outcomes[0]


def _drawn_in_a_for(x):
    rng = np.random.default_rng(2)
    total = rng.normal()
    for _ in range(3):
        total += rng.normal() * x
    return total, rng.normal()


def _drawn_in_a_while(x):
    rng = np.random.RandomState(2)
    total, k = 0.0, 0
    while k < 4:
        if k > x:
            total += rng.rand()
        total, k = total + rng.randn() * x, k + 1
    return total, rng.rand()


def _drawn_by_python(x):
    rng = random.Random(3)
    total = rng.random()
    for _ in range(3):
        total += rng.gauss(0.0, 1.0) * x
    return total, rng.random()


@pytest.mark.parametrize("fun", [_drawn_in_a_for, _drawn_in_a_while, _drawn_by_python])
def test_what_a_first_trip_draws_is_not_lost_where_the_loop_is_recorded_after_it(fun) -> None:
    compiled = wend.function(fun)
    for x in (1.5, 2.5):
        assert compiled(x) == pytest.approx(fun(x))
