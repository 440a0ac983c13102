"""`lanes=` and `threads=` of vmap: how many there are is as asked, and no result depends on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

RNG = np.random.default_rng(2)
COUNT = 2100
STARTS = RNG.uniform(0.1, 1.0, COUNT)
LENGTHS = RNG.geometric(0.1, COUNT) - 1


def decay(x: Any, n: Any) -> Any:
    while n > 0:
        x, n = 0.25 * x * x + 0.3, n - 1
    return x


def nested(x: Any, n: Any) -> Any:
    s = x
    while n > 0:
        x = s
        while x * x - s > 1e-9 * s:
            x = 0.5 * (x + s / x)
        s, n = 0.9 * x + 0.05, n - 1
    return s


def of_arrays(x: Any, n: Any) -> Any:
    """Its lanes are arrays."""
    pair = np.array([x, 0.5 * x])
    while n > 0:
        pair, n = 0.25 * pair * pair + 0.3, n - 1
    return np.sum(pair)


def all_of(fun: Any, **limits: Any) -> Any:
    """Return what computes values, their gradients, and that of what the elements share."""

    def total(scale: Any, xs: Any, trips: Any) -> Any:
        of_element = wend.vmap(lambda x, n: fun(scale * x, n), **limits)
        return wnp.sum(of_element(xs, trips))

    def compute(xs: Any, trips: Any) -> Any:
        mapped = wend.vmap(wend.value_and_grad(fun), **limits)
        return *mapped(xs, trips), wend.grad(total)(0.9, xs, trips)

    return wend.function(compute)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("fun", "count"), [(decay, 9), (decay, COUNT), (nested, COUNT), (of_arrays, COUNT)]
)
def test_bits_depend_on_no_limit(fun: Any, count: int) -> None:
    limits = [{"lanes": 1}, {"lanes": 4, "threads": 1}, {"lanes": 8, "threads": 2}]
    limits += [{"threads": 5}] if count > 100 else []
    results = [all_of(fun, **x)(STARTS[:count], LENGTHS[:count]) for x in limits]
    for other in results[1:]:
        for x, y in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lanes", [1, 2, 32])
@pytest.mark.parametrize("fun", [decay, wend.grad(decay), nested])
def test_there_are_so_many_lanes(fun: Any, lanes: int, tmp_path: Path) -> None:
    """Few elements, too, run in lanes where they are asked for."""
    mapped = wend.vmap(fun, lanes=lanes)
    with wend.config(dump=tmp_path, cache_dir=""):
        mapped(STARTS[:3], LENGTHS[:3])
    text = "".join(file.read_text() for file in tmp_path.rglob("*.ll"))
    assert (f"<{lanes} x double>" in text) == (lanes > 1)
    numbers = re.findall(r"in (\d+) lanes", mapped.explain())
    assert {*numbers} == ({str(lanes)} if lanes > 1 else set())
    assert ("one by one" in mapped.explain()) == (lanes == 1)


@pytest.mark.parametrize("lanes", [2, 8])
def test_lanes_that_are_arrays(lanes: int) -> None:
    mapped = wend.vmap(of_arrays, lanes=lanes)
    mapped(STARTS[:9], LENGTHS[:9])
    assert f"in {lanes} lanes" in mapped.explain()


def test_backward_loops_and_tangents_have_the_lanes_of_the_program() -> None:
    def total(xs: Any, trips: Any) -> Any:
        return wnp.sum(wend.vmap(decay, lanes=4)(xs, trips))

    slopes = wend.function(lambda xs, n: wend.grad(total)(xs, n))
    tangents = wend.function(lambda xs, n: wend.jvp(lambda x: total(x, n), (xs,), (xs,))[1])
    for derived in (slopes, tangents):
        derived(STARTS[:40], LENGTHS[:40])
        assert {*re.findall(r"in (\d+) lanes", derived.explain())} == {"4"}


@pytest.mark.parametrize(("threads", "says"), [(1, "one thread"), (2, "up to 2 threads")])
def test_there_are_so_many_threads(threads: int, says: str, tmp_path: Path) -> None:
    mapped = wend.vmap(decay, threads=threads)
    with wend.config(dump=tmp_path, cache_dir="", threads=4):
        mapped(STARTS, LENGTHS)
    text = "".join(file.read_text() for file in tmp_path.rglob("*.ll"))
    calls = re.findall(r"call void @wend\.chunks\(.*?, i64 (\d+), ptr %\w+, ptr %python\)", text)
    assert {*calls} == {str(threads)}
    assert f"on {says}" in mapped.explain()


def test_maps_of_different_limits_stay_apart() -> None:
    """A map reads what another has computed; each keeps its lanes."""

    def both(xs: Any, trips: Any) -> Any:
        once = wend.vmap(decay, lanes=2)(xs, trips)
        return wend.vmap(decay, lanes=4)(once, trips)

    run = wend.function(both)
    twice = run(STARTS[:40], LENGTHS[:40])
    expected = [decay(decay(x, n), n) for x, n in zip(STARTS[:40], LENGTHS[:40], strict=True)]
    np.testing.assert_array_equal(twice, expected)
    assert {*re.findall(r"in (\d+) lanes", run.explain())} == {"2", "4"}


def test_a_saved_function_keeps_them(tmp_path: Path) -> None:
    run = wend.function(lambda xs, n: wend.vmap(decay, lanes=4, threads=1)(xs, n))
    expected = run(STARTS[:40], LENGTHS[:40])
    wend.save(tmp_path / "decay.wend", run)
    loaded = wend.load(tmp_path / "decay.wend")
    np.testing.assert_array_equal(loaded(STARTS[:40], LENGTHS[:40]), expected)
    assert "in 4 lanes" in loaded.explain()


@pytest.mark.parametrize("lanes", [0, 3, 128, True, "8", 2.5])
def test_numbers_of_lanes_that_are_none(lanes: Any) -> None:
    with pytest.raises(ValueError, match="lanes is a power of two from 1 to 64"):
        wend.vmap(decay, lanes=lanes)


@pytest.mark.parametrize("threads", [0, -1, True, 1.5])
def test_numbers_of_threads_that_are_none(threads: Any) -> None:
    with pytest.raises(ValueError, match="threads is an int of at least 1"):
        wend.vmap(decay, threads=threads)
