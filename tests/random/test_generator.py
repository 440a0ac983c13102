"""`Generator`: functions draw what plain Python draws."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.stats

import wend
import wend.numpy as wnp
from wend import random
from wend.base.errors import VariableError
from wend.random import Generator

METHODS = """random uniform standard_normal normal exponential gumbel integers permutation
choice""".split()


@pytest.mark.parametrize("name", METHODS)
def test_names_and_defaults_are_those_of_numpy(name: str) -> None:
    theirs = inspect.signature(getattr(np.random.default_rng(0), name)).parameters
    mine = inspect.signature(getattr(Generator(0), name)).parameters
    wanted = {key: p.default for key, p in theirs.items() if key != "out"}
    assert {key: p.default for key, p in mine.items()} == wanted


def program(rng: Generator, n: int) -> Any:
    """Draws in loops, branches, and functions that are called."""
    x = 0.0
    for _ in range(n):
        if rng.random() < 0.5:
            x = x + rng.normal(1.0, 2.0)
        else:
            x = x * rng.uniform(0.5, 1) + rng.integers(5)
            while rng.random() < 0.3:
                x = x - rng.exponential(0.1)
    return {
        "x": x,
        "order": rng.permutation(4),
        "some": rng.choice(5, 3, replace=False),
        "faces": rng.integers(1, 6, size=(2, 3), endpoint=True),
        "noise": rng.standard_normal(3, np.float32),
        "rows": rng.permutation(np.arange(6.0).reshape(3, 2)),
        "biased": rng.choice([10, 20, 30], 4, p=[0.1, 0.1, 0.8]),
        "peaks": rng.gumbel(np.zeros(2)),
    }


def assert_equal(found: Any, expected: Any) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].dtype == np.asarray(value).dtype, name
        assert np.array_equal(found[name], value), name


def test_functions_draw_what_python_draws() -> None:
    plain, traced = Generator(3), Generator(3)
    draw = wend.function(lambda n: program(traced, n))
    for n in (10, 0, 25):
        assert_equal(draw(n), program(plain, n))
        assert np.array_equal(traced.state.value, plain.state.value)
    assert draw.trace_count == 1
    assert_equal(program(traced, 5), program(plain, 5))


def test_calls_of_calls_go_on_drawing() -> None:
    plain, traced = Generator(4), Generator(4)
    inner = wend.function(lambda: traced.normal())

    @wend.function
    def outer() -> Any:
        return wnp.stack([inner(), traced.normal(), inner()])

    assert np.array_equal(outer(), [plain.normal() for _ in range(3)])
    assert np.array_equal(traced.state.value, plain.state.value)


def test_what_is_not_reached_draws_nothing() -> None:
    rng = Generator(5)

    @wend.function
    def maybe(n: Any) -> Any:
        for _ in range(n):
            rng.random()
        return wend.cond(n > 3, lambda: rng.random(), lambda: 0.0)

    before = rng.state.value
    maybe(0)
    assert np.array_equal(rng.state.value, before)
    maybe(1)
    assert not np.array_equal(rng.state.value, before)


def test_the_state_can_be_set_back() -> None:
    rng = Generator(6)
    kept = rng.state.value
    first = rng.normal(size=4)
    rng.state.assign(kept)
    assert np.array_equal(rng.normal(size=4), first)
    assert np.array_equal(Generator(random.key(6)).normal(size=4), first)
    assert not np.array_equal(rng.normal(size=4), first)


def test_parameters_broadcast_and_have_derivatives() -> None:
    rng = Generator(7)
    loc, scale = np.zeros((3, 1)), np.ones(2)
    assert rng.normal(loc, scale).shape == (3, 2)
    assert rng.normal(np.float32(1)).dtype == np.float64
    assert rng.integers(np.array([1, 5]), np.array([[2], [9]]) + 5).shape == (2, 2)

    def total(loc: Any, scale: Any) -> Any:
        rng.state.assign(random.key(7))
        return wnp.sum(rng.normal(loc, scale, (4, 2)))

    by_loc, by_scale = wend.grad(total, argnums=(0, 1))(np.zeros(2), np.ones(2))
    noise = Generator(7).normal(size=(4, 2))
    assert np.array_equal(by_loc, [4.0, 4.0])
    np.testing.assert_allclose(by_scale, noise.sum(axis=0))


def test_unknown_sizes() -> None:
    plain, traced = Generator(8), Generator(8)
    spec = [wend.TensorSpec([None])]
    draw = wend.function(lambda x: traced.normal(x, 2.0), input_signature=spec)
    x = np.arange(5.0)
    assert np.array_equal(draw(x), plain.normal(x, 2.0))


def test_numbers_have_their_distribution() -> None:
    rng = Generator(9)
    one_by_one = np.array([rng.normal() for _ in range(2000)])
    assert scipy.stats.kstest(one_by_one, "norm").pvalue > 1e-3
    assert scipy.stats.kstest(rng.uniform(2, 5, 5000), "uniform", (2, 3)).pvalue > 1e-3
    assert scipy.stats.kstest(rng.exponential(3.0, 5000), "expon", (0, 3)).pvalue > 1e-3


def test_importing_wend_does_not_import_it() -> None:
    import subprocess
    import sys

    code = (
        "import sys, wend; assert 'wend.random' not in sys.modules; "
        "wend.random.normal(wend.random.key(0)); assert not hasattr(wend, 'randomness')"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def drawn_in_all_ways(rng: Generator, x: Any, n: Any) -> Any:
    """Draws in functions called in loops and branches, that draw in loops and branches."""

    def step(x: Any, k: Any) -> Any:
        noise = rng.normal()
        if noise > 0.5:
            return x * rng.uniform(0.5, 1.0)
        while rng.random() < 0.4:
            x = x + rng.exponential() * k
        return x + noise

    inner = wend.function(step)
    for k in range(n):
        x = inner(x, k) if k % 2 == 0 else step(x, k)
        if rng.random() < 0.1:
            break
    return wend.while_loop(lambda x: rng.random() < 0.7, lambda x: x + rng.normal(), x)


@pytest.mark.parametrize("n", [0, 1, 12])
def test_the_stream_is_one_in_every_mode(n: int) -> None:
    plain = Generator(11)
    expected = drawn_in_all_ways(plain, 1.0, n)
    runs = {
        "function": lambda rng: wend.function(lambda x, n: drawn_in_all_ways(rng, x, n))(1.0, n),
        "grad": lambda rng: wend.value_and_grad(lambda x: drawn_in_all_ways(rng, x, n))(1.0)[0],
        "vjp": lambda rng: wend.vjp(lambda x: drawn_in_all_ways(rng, x, n), 1.0)[0],
        "jvp": lambda rng: wend.jvp(lambda x: drawn_in_all_ways(rng, x, n), (1.0,), (1.0,))[0],
    }
    for name, run in runs.items():
        for eager in (False, True):
            rng = Generator(11)
            with wend.config(eager=eager):
                assert run(rng) == expected, (name, eager)
            assert np.array_equal(rng.state.value, plain.state.value), (name, eager)


def test_a_host_call_goes_on_drawing() -> None:
    """Of a generator of its own: one that the function around it uses is refused."""
    plain, drawn, other = Generator(12), Generator(12), Generator(13)

    @wend.function
    def fun(n: Any) -> Any:
        total = 0.0
        for _ in range(n):
            total = total + wend.py_function(lambda: drawn.normal(), 0.0) + 0.0 * other.normal()
        return total

    assert fun(3) == sum([plain.normal() for _ in range(3)])
    assert fun(2) == sum([plain.normal() for _ in range(2)])
    both = wend.function(lambda: wend.py_function(lambda: other.normal(), 0.0) + other.normal())
    with pytest.raises(TypeError, match="assigned to <Variable 'random_state'"):
        both()


def layer(rng):
    made = []

    def call(x):
        if not made:
            made.append(wend.Variable(rng.normal(size=3)))
            made.append(wend.Variable(2.0 * rng.normal()))
        return made[0] * x, made[1].value, rng.normal()

    return call


def test_initial_values_advance_it():
    plain = layer(Generator(0))
    traced = wend.function(layer(Generator(0)))
    inside = layer(Generator(0))
    inner = wend.function(inside)
    around = wend.function(lambda x: inner(x))
    for _ in range(3):
        expected = [np.asarray(x) for x in plain(2.0)]
        for fun in (traced, around):
            for x, y in zip(fun(2.0), expected, strict=True):
                np.testing.assert_array_equal(x, y)


def test_initial_values_repeat_nothing():
    """Drawn before the call, whatever the call itself draws before them."""
    rng, made, scaled = Generator(0), [], []

    @wend.function
    def fun(x):
        first = rng.normal()
        if not made:
            made.append(wend.Variable(rng.normal()))
            scaled.append(wend.Variable(rng.normal() * x))
        return first, made[0].value, scaled[0].value, rng.normal()

    drawn = [*fun(1.0), fun(1.0)[0], rng.normal()]
    assert len({*map(float, drawn)}) == 6


def test_made_in_a_loop_each_trip_would_draw():
    rng = Generator(0)
    with pytest.raises(VariableError, match="depends on what is computed there"):
        wend.function(
            lambda x: wend.fori_loop(0, 3, lambda i, c: c + wend.Variable(rng.normal()), x)
        )(1.0)
