"""Chunks of the elements of a vmap: the same bits on any number of threads, errors and signals."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend
import wend.numpy as wnp
from wend.backends.build import passes_of
from wend.ops.chunked_map import chunked_map
from wend.passes import chunk_maps
from wend.passes.pipeline import run_passes

SIZES = [0, 1, 7, 8, 9, 1000]
THREADS = [1, 2, 5]


@pytest.fixture(autouse=True)
def native() -> Any:
    with wend.config(backend="native"):
        yield


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of few elements, also where they run in lanes."""
    monkeypatch.setattr(chunk_maps, "MIN_IN_LANES", 4)
    monkeypatch.setattr(chunk_maps, "_MIN_IN_LOOPS", 4)


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def grow(limit: Any) -> Any:
    x = 0.1 + 0.0 * limit
    while x < limit:
        x = 1.001 * x + 1e-3 / x
    return x


def nested(a: Any) -> Any:
    total, n = 0.0 * a, 0
    while n < 3:
        x = a + n
        while x > 1.0:
            x = 0.7 * x
        total, n = total + np.sin(x), n + 1
    return total


def of_vectors(v: Any, w: Any) -> Any:
    x = v
    while wnp.sum(x * x) > 1.0:
        x = 0.5 * (x * w)
    return x


def numbers(count: int) -> np.ndarray:
    return np.exp(np.random.default_rng(7).standard_normal(count)) + 0.01


def on_threads(fun: Callable[..., Any], *args: Any) -> list[Any]:
    """Return the results on each number of threads, of functions that are compiled anew."""
    results = []
    for threads in THREADS:
        with wend.config(threads=threads):
            results.append(fun(*args))
    return results


def check_bits(results: list[Any]) -> None:
    first, *others = [np.asarray(x).tobytes() for x in results]
    assert all(other == first for other in others)


@pytest.mark.sampled
@pytest.mark.parametrize("program", [root, grow, nested])
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.usefixtures("small_chunks")
def test_sizes(program: Any, count: int) -> None:
    xs = numbers(count)
    mapped = wend.vmap(program)
    total = wend.grad(lambda xs: wnp.sum(wend.vmap(program)(xs)))
    values, slopes = on_threads(mapped, xs), on_threads(total, xs)
    check_bits(values)
    check_bits(slopes)
    with wend.config(strict=True):
        np.testing.assert_allclose(values[0], wend.vmap(program)(xs), rtol=1e-14)
        np.testing.assert_allclose(slopes[0], wend.vmap(wend.grad(program))(xs), rtol=1e-12)


def test_many_elements() -> None:
    xs = 20 * numbers(20_000)
    values = on_threads(wend.vmap(grow), xs)
    check_bits(values)
    np.testing.assert_allclose(values[0][:50], [grow(x) for x in xs[:50]])


def test_sum_over_the_elements_for_what_they_share() -> None:
    """The gradient of what all elements share adds up in chunks, whatever runs them."""
    xs = 5 * numbers(5_000)

    def total(scale: Any, xs: Any) -> Any:
        return wnp.sum(wend.vmap(lambda a: root(scale * a) ** 3)(xs))

    slopes = on_threads(wend.grad(total), 1.5, xs)
    check_bits(slopes)
    expected = (total(1.5 + 1e-6, xs) - total(1.5 - 1e-6, xs)) / 2e-6
    assert abs(slopes[0] / expected - 1) < 1e-6


@pytest.mark.usefixtures("small_chunks")
def test_vectors_and_what_all_share() -> None:
    rng = np.random.default_rng(3)
    rows, w = rng.uniform(-9, 9, (50, 3)), np.array([0.9, 1.1, -1.3])
    both = wend.vmap(of_vectors, in_axes=(0, None))
    found = on_threads(both, rows, w)
    check_bits(found)
    np.testing.assert_allclose(found[0], [of_vectors(v, w) for v in rows])
    slopes = on_threads(wend.grad(lambda v, w: wnp.sum(both(v, w)), argnums=1), rows, w)
    check_bits(slopes)
    singles = [wend.grad(lambda v, w: wnp.sum(of_vectors(v, w)), argnums=1)(v, w) for v in rows]
    np.testing.assert_allclose(slopes[0], np.sum(singles, axis=0))


@pytest.mark.usefixtures("small_chunks")
def test_sizes_known_at_run_time() -> None:
    mapped = wend.function(wend.vmap(grow), reduce_retracing=True)
    for count in [40, 33, 4, 3, 1, 0, 129]:
        xs = numbers(count)
        np.testing.assert_allclose(mapped(xs), [grow(x) for x in xs])


def test_maps_that_get_chunks() -> None:
    """Loops that each element leaves by itself get them; array operations are split otherwise."""
    xs = numbers(10_000)

    def has_chunks(fun: Any) -> bool:
        nodes = run_passes(traced(fun, xs), passes_of("native")).walk()
        return any(node.op is chunked_map for node in nodes)

    assert has_chunks(wend.vmap(root))
    assert has_chunks(wend.vmap(wend.grad(root)))
    assert not has_chunks(wend.vmap(lambda x: np.sin(x) * x))
    with wend.config(strict=True):
        assert not has_chunks(wend.vmap(root))


def test_error_of_the_first_element_that_fails() -> None:
    """A position out of range, in two elements of different chunks."""
    table = np.arange(10.0)

    def walk(a: Any, k: Any) -> Any:
        x = a
        while x < 5.0:
            x = 1.001 * x
        return x + table[k]

    positions = np.zeros(2000, int)
    positions[[400, 1700]] = 40, 70
    for threads in THREADS:
        with wend.config(threads=threads), pytest.raises(IndexError, match="index 40 "):
            wend.vmap(walk)(numbers(2000), positions)
    positions[400] = positions[1700] = 9
    for threads in THREADS:  # and what has failed does not stay
        with wend.config(threads=threads):
            wend.vmap(walk)(numbers(2000), positions)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("endless", [0, 1500])
def test_signals_end_an_endless_element(threads: int, endless: int) -> None:
    """Whichever thread computes it; later calls work, and no thread is busy with it."""

    def until(limit: Any) -> Any:
        x = 0.5 + 0.0 * limit
        while x < limit:
            x = 0.5 * x + 0.5
        return x

    limits = np.full(2000, 0.75)
    with wend.config(threads=threads):
        mapped = wend.vmap(until)
        expected = mapped(limits)
        stuck = limits.copy()
        stuck[endless] = 2.0
        timer = threading.Timer(0.2, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            mapped(stuck)
        timer.join()
        begin = time.process_time()
        time.sleep(0.1)
        assert time.process_time() - begin < 0.09
        np.testing.assert_array_equal(mapped(limits), expected)
