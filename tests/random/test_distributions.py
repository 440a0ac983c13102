"""Floats, integers and choices: their distributions, shapes, dtypes and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import wend
import wend.numpy as wnp
from wend import random
from wend.testing import check_grads

KEY = random.key(2024)
COUNT = 20_000
UNKNOWN = [wend.TensorSpec([2], np.uint64), wend.TensorSpec([None, None])]


def everywhere(draw: Any, *args: Any) -> Any:
    """What Python draws; a trace, and a loop in one, draw it as well, to the last bit."""
    expected = draw(KEY, *args)
    traced = wend.function(draw)(KEY, *args)
    looped = wend.function(
        lambda key, *args: wend.map(lambda key: draw(key, *args), wnp.stack([key, key + 1]))[0]
    )(KEY, *args)
    for found in (traced, looped):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)
    return expected


# Floats
@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (random.uniform, scipy.stats.uniform()),
        (lambda k, s, d: random.uniform(k, s, d, -2, 3.0), scipy.stats.uniform(-2, 5)),
        (random.normal, scipy.stats.norm()),
        (random.exponential, scipy.stats.expon()),
        (random.gumbel, scipy.stats.gumbel_r()),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_have_their_distribution(draw: Any, law: Any, dtype: Any) -> None:
    found = everywhere(lambda key: draw(key, (COUNT,), dtype))
    assert found.dtype == dtype
    assert scipy.stats.kstest(np.float64(found), law.cdf).pvalue > 1e-3
    deviation = law.std() / np.sqrt(COUNT)
    assert abs(found.mean(dtype=float) - law.mean()) < 4 * deviation
    assert abs(found.var(dtype=float) / law.var() - 1) < 0.05


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), 3, (2, 0), (2, 3)])
def test_shapes_and_dtypes(shape: Any, dtype: Any) -> None:
    sizes = (shape,) if isinstance(shape, int) else shape
    for draw in (random.uniform, random.normal, random.exponential, random.gumbel):
        found = everywhere(lambda key, draw=draw: draw(key, shape, dtype))
        assert found.shape == sizes
        assert found.dtype == dtype
        assert np.isfinite(found).all()


def test_smaller_floats_stay_below_one() -> None:
    found = random.uniform(KEY, 100_000, np.float16)
    assert found.min() == 0
    assert found.max() == 1 - 2.0**-11


def test_extreme_bits_stay_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    for word in (0, 2**64 - 1):
        bits = np.array([word], np.uint64)
        monkeypatch.setattr("wend.random.floats.draw", lambda key, shape, bits=bits: bits)
        for draw in (random.normal, random.gumbel, random.exponential):
            assert np.isfinite(draw(KEY, 1)).all()
        assert 0 <= random.uniform(KEY, 1)[0] < 1
        assert 0 <= random.uniform(KEY, 1, np.float32)[0] < 1


def test_bounds_broadcast() -> None:
    low, high = np.array([0.0, 10.0]), np.array([[1.0], [20.0]])
    found = everywhere(
        lambda key, low, high: random.uniform(key, (2, 2), minval=low, maxval=high), low, high
    )
    unit = random.uniform(KEY, (2, 2))
    assert np.array_equal(found, low + (high - low) * unit)


# Integers
@pytest.mark.parametrize("bounds", [(0, 1), (0, 2), (-3, 10), (0, 2**33 + 7)])
def test_integers_are_as_likely(bounds: tuple[int, int]) -> None:
    found = everywhere(lambda key: random.randint(key, (COUNT,), *bounds))
    span = bounds[1] - bounds[0]
    assert found.dtype == np.int64
    assert found.min() >= bounds[0]
    assert found.max() < bounds[1]
    groups = np.bincount((found - bounds[0]) * min(span, 13) // span)
    assert len(groups) == 1 or scipy.stats.chisquare(groups).pvalue > 1e-3


def test_integers_that_are_refused_are_drawn_again() -> None:
    # Of 2⁶⁴ words a quarter has no place among three times 2⁶² + 1 integers.
    span = 3 * 2**62 + 1
    found = everywhere(lambda key: random.randint(key, (COUNT,), -(2**63), span - 2**63))
    words = random.bits(KEY, COUNT)
    assert abs((words < np.uint64(2**64 % span)).mean() - 0.25) < 0.02
    moved = np.float64(found) + 2.0**63
    assert scipy.stats.kstest(moved / span, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_integers_of_every_dtype(dtype: str) -> None:
    limits = np.iinfo(dtype)
    first, stop = int(limits.min), int(limits.max) + 1
    everything = everywhere(lambda key: random.randint(key, 3000, first, stop, dtype))
    assert everything.dtype == dtype
    assert np.ptp(np.float64(everything)) > 0.95 * (stop - first - 1)
    low, high = np.array([0, 5, 100], dtype), np.array([1, 8, 127], dtype)
    some = everywhere(
        lambda key, low, high: random.randint(key, (500, 3), low, high, dtype), low, high
    )
    assert ((low <= some) & (some < high)).all()
    assert set(some[:, 1].tolist()) == {5, 6, 7}


def test_integers_between_bounds_that_are_not_in_order() -> None:
    draw = wend.function(lambda low, high: random.randint(KEY, (4,), low, high))
    assert draw(3, 3).tolist() == [3] * 4
    assert draw(np.int64(5), np.int64(-5)).tolist() == [5] * 4


# Choices
def test_events() -> None:
    p = np.array([0.0, 0.1, 0.5, 1.0])
    found = everywhere(lambda key, p: random.bernoulli(key, p, (COUNT, 4)), p)
    assert found.dtype == bool
    assert np.abs(found.mean(axis=0) - p).max() < 0.02
    assert everywhere(random.bernoulli, p).shape == (4,)
    assert everywhere(random.bernoulli, np.float32(0.5)).shape == ()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_categories(axis: int) -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.25, 0.0, 0.75]])
    logits = np.log(p, where=p > 0, out=np.full_like(p, -np.inf))
    logits = logits.T if axis == 0 else logits
    found = everywhere(lambda key, x: random.categorical(key, x, axis, (COUNT, 2)), logits)
    for row in range(2):
        seen = np.bincount(found[:, row], minlength=3) / COUNT
        assert np.abs(seen - p[row]).max() < 0.02
    assert everywhere(lambda key, x: random.categorical(key, x, axis), logits).shape == (2,)


def test_permutations() -> None:
    assert sorted(everywhere(lambda key: random.permutation(key, 50)).tolist()) == [*range(50)]
    x = np.arange(24.0).reshape(4, 6)
    for axis in (0, 1, -1):
        found = everywhere(lambda key, x, axis=axis: random.permutation(key, x, axis), x)
        assert np.array_equal(np.sort(found, axis), x)
        apart = everywhere(lambda key, x, axis=axis: random.permutation(key, x, axis, True), x)
        assert np.array_equal(np.sort(apart, axis), x)
    assert everywhere(lambda key: random.permutation(key, 0)).shape == (0,)


def test_orders_are_as_likely() -> None:
    keys = random.split(KEY, 6000)
    orders = wend.map(lambda key: random.permutation(key, 3), keys)
    seen = np.unique(orders @ np.array([9, 3, 1]), return_counts=True)[1]
    assert len(seen) == 6
    assert scipy.stats.chisquare(seen).pvalue > 1e-3


def test_choices_of_an_array() -> None:
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    p = np.array([0.0, 0.5, 0.5, 0.0])
    assert set(everywhere(lambda key, x: random.choice(key, x, (200,)), x)) == set(x)
    assert set(everywhere(lambda key, x: random.choice(key, x, 200, p=p), x)) == {10.0, 100.0}
    some = everywhere(lambda key, x: random.choice(key, x, (3,), replace=False), x)
    assert len(set(some)) == 3
    weighted = everywhere(lambda key: random.choice(key, 4, (2,), replace=False, p=p + 1e-300))
    assert set(weighted) == {1, 2}
    assert everywhere(lambda key, x: random.choice(key, x), x).shape == ()
    pairs = everywhere(lambda key, x: random.choice(key, x.reshape(2, 2), (5,), axis=1), x)
    assert pairs.shape == (2, 5)


# Sizes that are not known before the run
def test_unknown_sizes() -> None:
    draws = [
        lambda key, x: random.normal(key, x.shape),
        lambda key, x: random.uniform(key, x.shape, minval=x, maxval=x + 1),
        lambda key, x: random.randint(key, x.shape, 0, 7),
        lambda key, x: random.bernoulli(key, x),
        lambda key, x: random.categorical(key, x, shape=(3, x.shape[0])),
        lambda key, x: random.permutation(key, x),
        lambda key, x: random.permutation(key, x, 1, independent=True),
        lambda key, x: random.choice(key, x, (3,)),
        lambda key, x: random.choice(key, x, (2,), replace=False),
        lambda key, x: random.split(key, x.shape[0]),
    ]
    x = np.linspace(0, 1, 12).reshape(4, 3)
    for draw in draws:
        found = wend.function(draw, input_signature=UNKNOWN)(KEY, x)
        assert np.array_equal(found, draw(KEY, x))


def test_traced_sizes() -> None:
    def draw(key: Any, n: Any) -> Any:
        first, second = random.split(key)
        return random.normal(first, (n, 2)), random.permutation(second, n), random.choice(key, n)

    for found, expected in zip(wend.function(draw)(KEY, 6), draw(KEY, 6), strict=True):
        assert np.array_equal(found, expected)


# Control flow
def walk(key: Any, n: int) -> Any:
    x, i = 0.0, 0
    while i < n:
        key, mine, other = random.split(key, 3)
        if random.uniform(mine) < 0.5:
            x = x + random.normal(other)
        else:
            x = 0.9 * x - random.randint(other, (), 0, 5)
        i += 1
    return x, key


def test_keys_as_carries() -> None:
    x, key = walk(KEY, 30)
    found, state = wend.function(walk)(KEY, 30)
    assert found == x
    assert np.array_equal(state, key)


def test_keys_in_scan_and_cond() -> None:
    def steps(key: Any) -> Any:
        def step(x: Any, i: Any) -> Any:
            mine = random.fold_in(key, i)
            here = random.bernoulli(mine)
            x = wend.cond(here, lambda x: x + random.normal(mine), lambda x: -x, x)
            return x, x

        return wend.scan(step, 0.0, np.arange(10))[1]

    x, expected = np.float64(0), []
    for i in range(10):
        mine = random.fold_in(KEY, i)
        x = x + random.normal(mine) if random.bernoulli(mine) else -x
        expected.append(x)
    assert np.array_equal(wend.function(steps)(KEY), expected)


# Derivatives
def test_the_gradient_of_an_expectation() -> None:
    """E (m + s z)² is m² + s²."""

    @wend.function
    def mean_square(m: Any, s: Any) -> Any:
        return wnp.mean((m + s * random.normal(KEY, 200_000)) ** 2)

    by_m, by_s = wend.grad(mean_square, argnums=(0, 1))(1.5, 2.0)
    assert abs(by_m - 3.0) < 0.05
    assert abs(by_s - 4.0) < 0.05
    check_grads(mean_square, (1.5, 2.0))


def test_gradients_of_bounds_and_of_what_is_chosen() -> None:
    unit = random.uniform(KEY, 5)
    total = lambda low, high: wnp.sum(random.uniform(KEY, 5, minval=low, maxval=high))  # noqa: E731
    by_low, by_high = wend.grad(total, argnums=(0, 1))(0.0, 1.0)
    np.testing.assert_allclose([by_low, by_high], [5 - unit.sum(), unit.sum()])
    order = random.permutation(KEY, 4)
    weights = np.arange(4.0)
    found = wend.grad(lambda x: wnp.sum(weights * random.permutation(KEY, x)))(np.ones(4))
    assert np.array_equal(found[order], weights)


def test_no_gradient_goes_through_choices() -> None:
    events = wend.grad(lambda p: wnp.sum(random.bernoulli(KEY, p, (9,)) * 1.0))
    assert events(0.3) == 0.0
    places = wend.grad(lambda x: wnp.sum(random.categorical(KEY, x, shape=(9,)) * 1.0))
    assert np.array_equal(places(np.ones(3)), np.zeros(3))


def test_a_gradient_through_a_loop_that_draws() -> None:
    @wend.function
    def end(scale: Any, key: Any) -> Any:
        x = 1.0
        while x < 20.0:
            key, mine = random.split(key)
            x = x + scale * random.exponential(mine)
        return x

    slope = wend.grad(end)(1.0, KEY)
    np.testing.assert_allclose(slope, end(1.0, KEY) - 1.0)


def test_a_tape_follows_what_is_drawn() -> None:
    v = wend.Variable(2.0)
    with wend.GradientTape() as tape:
        y = v * random.normal(KEY) + random.randint(KEY, (), 0, 5)
    assert tape.gradient(y, v) == random.normal(KEY)
