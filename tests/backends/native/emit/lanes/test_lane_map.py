"""Maps in lanes of registers: each element as by itself, whatever the number of lanes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import wend
from wend.passes import lane_maps

RNG = np.random.default_rng(0)


@pytest.fixture(params=[2, 4, 8, 16])
def lanes(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many lanes, for few elements too."""
    width = request.param
    with mock.patch.multiple(lane_maps, NARROW=width, WIDE=width, MIN_ELEMENTS=0):
        yield width


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def grow(x: Any) -> Any:
    """Some elements make no trip, and some a hundred."""
    n = 0
    while x < 3.0:
        x, n = x * 1.01 + 0.02, n + 1
    return x, n


def nested(a: Any) -> Any:
    s = a
    for k in range(5):
        x = s
        while np.abs(x * x - s) > 1e-9 * s:
            x = 0.5 * (x + s / x)
        s = a + 0.1 * x * k
    return s


def inner_test(a: Any) -> Any:
    """The test of the outer loop runs a loop; lanes that have left keep what it gave."""
    n, t = 0.0, 0.0
    while True:
        t, k = a, 0
        while k < n:
            t, k = t * 0.9 + 0.01, k + 1
        if t < 1.0:
            break
        n = n + 1.0
    return n + t


def branching(a: Any) -> Any:
    n, up = 0, False
    while n < 50 and a > 0.5:
        if a > 1.5:
            a, up = a * 0.75, not up
        else:
            a = a - 0.0625
        n = n + 1
    return a, n, up


def collatz(n: Any) -> Any:
    trips = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        trips = trips + 1
    return trips


def single(a: Any) -> Any:
    x = a
    while x < np.float32(3):
        x = x * np.float32(1.1)
    return x


def functions(a: Any) -> Any:
    s, x = 0.0 * a, a
    while x < 2.0:
        s = s + np.sin(x) * np.exp(-x) + np.log1p(x) ** 1.5 + np.arctan2(x, s) + np.hypot(x, s)
        x = x + 0.3
    return s + np.floor(x)


EXACT = [root, grow, nested, inner_test, branching]
POSITIVE = np.exp(0.7 * RNG.standard_normal(1000))


def loop(fun: Any, xs: Any) -> Any:
    """Return the results of plain calls, stacked."""
    rows = [fun(x) for x in xs]
    if isinstance(rows[0], tuple):
        return tuple(np.array(column) for column in zip(*rows, strict=True))
    return np.array(rows)


def same_bits(found: Any, expected: Any) -> None:
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.asarray(x).dtype == np.asarray(y).dtype


def in_lanes(fun: Any) -> bool:
    return "lanes" in fun.explain()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
@pytest.mark.parametrize("fun", EXACT)
def test_elements_are_as_in_plain_calls(fun: Any, count: int, lanes: int) -> None:
    xs = POSITIVE[:count]
    vmapped = wend.vmap(fun)
    same_bits(vmapped(xs), loop(fun, xs))
    assert in_lanes(vmapped)


def test_no_elements(lanes: int) -> None:
    assert wend.vmap(root)(np.zeros(0)).shape == (0,)
    assert wend.vmap(wend.grad(root))(np.zeros(0)).shape == (0,)


def test_integers_and_single_precision(lanes: int) -> None:
    numbers = np.arange(1, 100)
    same_bits(wend.vmap(collatz)(numbers), loop(collatz, numbers))
    xs = POSITIVE[:50].astype(np.float32)
    same_bits(wend.vmap(single)(xs), loop(single, xs))


def test_functions_are_within_rounding(lanes: int) -> None:
    vmapped = wend.vmap(functions)
    np.testing.assert_allclose(vmapped(POSITIVE), loop(functions, POSITIVE), rtol=1e-13)
    assert in_lanes(vmapped)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
@pytest.mark.parametrize("fun", [root, lambda a: grow(a)[0], lambda a: branching(a)[0]])
def test_gradients_are_those_of_elements(fun: Any, count: int, lanes: int) -> None:
    xs, alone = POSITIVE[:count], wend.grad(wend.function(fun))
    vmapped = wend.vmap(wend.grad(fun))
    same_bits(vmapped(xs), np.array([alone(x) for x in xs]))
    assert in_lanes(vmapped)


@pytest.mark.sampled(2)
def test_second_order(lanes: int) -> None:
    xs, alone = POSITIVE[:20], wend.grad(wend.grad(wend.function(root)))
    found = wend.vmap(wend.grad(wend.grad(root)))(xs)
    np.testing.assert_allclose(found, [alone(x) for x in xs], rtol=1e-9, atol=1e-9)


def test_a_loop_with_records_keeps_what_its_test_computes(lanes: int) -> None:
    """The test runs a loop; the result reads what it gave before a lane ended."""

    def steps(a: Any) -> Any:
        x, t = a, 0.0
        while True:
            t, rest = 0.0, wend.stop_gradient(x)
            while rest < 3.0:
                rest, t = rest * 1.3 + 0.1, t + 1.0
            if t < 3.0:
                break
            x = x * 1.1 + 0.05 * x * x
        return x * x * (t + 1.0)

    def twice(a: Any) -> Any:
        return root(steps(a))

    xs, alone = POSITIVE[:40], wend.grad(wend.function(twice))
    vmapped = wend.vmap(wend.grad(twice))
    same_bits(vmapped(xs), np.array([alone(x) for x in xs]))
    assert in_lanes(vmapped)


def test_what_elements_share(lanes: int) -> None:
    def scaled(scale: Any, a: Any) -> Any:
        return root(scale * a)

    def total(scale: Any, xs: Any) -> Any:
        return np.sum(wend.vmap(scaled, in_axes=(None, 0))(scale, xs))

    xs = POSITIVE[:37]
    found = wend.grad(total, argnums=(0, 1))(2.0, xs)
    np.testing.assert_allclose(found[0], np.sum(np.sqrt(xs / 2) / 2), rtol=1e-9)
    np.testing.assert_allclose(found[1], np.sqrt(2 / xs) / 2, rtol=1e-9)


@pytest.mark.sampled(2)
def test_an_element_with_nan_changes_no_other(lanes: int) -> None:
    xs = POSITIVE[:40].copy()
    expected, slopes = wend.vmap(root)(xs), wend.vmap(wend.grad(root))(xs)
    xs[[3, 4, 39]] = np.nan
    others = np.isfinite(xs)
    same_bits(wend.vmap(root)(xs)[others], expected[others])
    same_bits(wend.vmap(wend.grad(root))(xs)[others], slopes[others])
    assert np.isnan(wend.vmap(root)(xs)[~others]).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", [root, wend.grad(root)])
def test_bits_depend_on_no_thread(fun: Any, lanes: int) -> None:
    xs, found = np.resize(POSITIVE, 5000), []
    for threads in (1, 2, 5):
        with wend.config(threads=threads):
            found.append(wend.vmap(fun)(xs))
    same_bits(found[1], found[0])
    same_bits(found[2], found[0])


def test_long_records(lanes: int) -> None:
    """Records outgrow their memory, in lanes that are long and lanes that are short."""

    def decay(x: Any, n: Any) -> Any:
        while n > 0.0:
            x, n = 0.25 * x * x + 0.3, n - 1.0
        return x

    xs, trips = POSITIVE[:33], np.arange(33.0) ** 2
    vmapped = wend.vmap(wend.grad(decay))
    found = vmapped(xs, trips)
    assert in_lanes(vmapped)
    alone = wend.grad(wend.function(decay))
    same_bits(found, np.array([alone(x, n) for x, n in zip(xs, trips, strict=True)]))


def count_up(x: Any, n: Any) -> Any:
    k = 0
    while k < n:
        x, k = np.sin(x) + 0.5, k + 1
    return x


def count_range(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = np.sin(x) + 0.5
    return x


def count_twice(x: Any, n: Any) -> Any:
    k, trips = 0, 0
    while k < n:
        x, k, trips = np.sin(x) + 0.5 * k, k + 1, trips + 1
    return x * trips


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", [count_up, count_range, count_twice])
def test_counters_of_the_program_may_count_records(fun: Any, tmp_path: Any, lanes: int) -> None:
    """A counter that equals that of the records is merged with it."""
    xs, trips = POSITIVE[:33], np.arange(33) % 7
    alone = wend.grad(wend.function(fun))
    with wend.config(dump=tmp_path):
        found = wend.vmap(wend.grad(fun))(xs, trips)
    expected = [alone(x, n) for x, n in zip(xs, trips, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert any("= lane_map(" in file.read_text() for file in tmp_path.rglob("*fusion*.wir"))


def test_a_list_of_the_program_keeps_its_errors(lanes: int) -> None:
    """Positions that may be out of range are checked, so such loops have no lanes."""

    def pick(a: Any, k: Any) -> Any:
        seen = []
        x = a
        while x > 1.0:
            seen.append(x)
            x = x * 0.5
        return seen[k]

    vmapped = wend.vmap(pick)
    same_bits(vmapped(np.full(20, 9.0), np.zeros(20, int)), np.full(20, 9.0))
    with pytest.raises(IndexError):
        vmapped(np.full(20, 9.0), np.arange(20))


def test_loops_of_small_numbers_stay_in_order(lanes: int) -> None:
    def checked(a: Any) -> Any:
        if a < 0:
            raise ValueError(f"{a} is negative")
        return root(a)

    with pytest.raises(ValueError, match=r"-1\.0 is negative"):
        wend.vmap(checked)(np.array([4.0, 1.0, -1.0, -2.0] * 5))


def of_array(a: Any) -> Any:
    """Its lanes are arrays: as many as there are elements, not 8 or 16."""
    x = np.array([a, 2.0 * a])
    while np.max(x) < 5.0:
        x = x * 1.5 + 0.1
    return np.sum(x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("fun", [*EXACT, functions, of_array])
def test_explain_says_what_is_emitted(fun: Any, order: int, tmp_path: Any) -> None:
    def derived(a: Any) -> Any:
        value = fun(a)
        return value[0] if isinstance(value, tuple) else value

    for _ in range(order):
        derived = wend.grad(derived)
    vmapped = wend.vmap(derived)
    with wend.config(dump=tmp_path, cache_dir=""):
        vmapped(POSITIVE[:40])
    texts = [file.read_text() for file in tmp_path.rglob("*fusion*.wir")]
    said = re.search(r" in (8|16) lanes", vmapped.explain())
    assert any("= lane_map(" in text for text in texts) == (said is not None)


def test_explain_says_which_lanes_are_refilled() -> None:
    in_a_row, one = wend.vmap(lambda a: root(root(a))), wend.vmap(root)
    in_a_row(POSITIVE)
    one(POSITIVE)
    assert "lanes, for one group of elements after the other" in in_a_row.explain()
    assert "lanes, refilled as elements end" in one.explain()


def test_dumps_of_chunks(tmp_path: Any) -> None:
    with wend.config(dump=tmp_path):
        wend.vmap(root)(np.resize(POSITIVE, 5000))
    assert any("= lane_map(" in file.read_text() for file in tmp_path.rglob("*fusion*.wir"))
