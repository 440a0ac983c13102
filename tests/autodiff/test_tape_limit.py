"""`config(tape_limit=…)`: a loop stops before its records take more, and says what helps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend

BACKENDS = ["numpy", "native"]


def sines(x: Any, trips: Any) -> Any:
    for _ in range(trips):
        x = np.sin(x)
    return np.sum(x)


def triangle(x: Any, trips: Any) -> Any:
    for k in range(trips):
        for _ in range(k):
            x = np.sin(x)
    return np.sum(x)


def mixed(x: Any, trips: Any) -> Any:
    while True:
        y = np.sin(x)
        trips = trips - 1
        if trips < 0:
            break
        x = y * np.cos(y)
    return np.sum(x * y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [sines, triangle, mixed])
@pytest.mark.parametrize("x", [0.5, np.linspace(0.1, 1.0, 100)], ids=["scalar", "vector"])
def test_a_tape_within_the_limit_changes_nothing(program: Any, x: Any, backend: str) -> None:
    expected = wend.grad(program)(x, 9)
    with wend.config(tape_limit="1MB", backend=backend):
        np.testing.assert_allclose(wend.grad(program)(x, 9), expected, rtol=1e-13)
        second = wend.grad(lambda x, n: np.sum(wend.grad(program)(x, n)))
        assert np.all(np.isfinite(second(x, 9)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [sines, triangle, mixed])
def test_a_larger_one_is_an_error_with_the_line_and_the_cure(program: Any, backend: str) -> None:
    with wend.config(tape_limit=10_000, backend=backend):
        slope = wend.grad(program)
        assert np.isfinite(slope(0.5, 20))
        with pytest.raises(MemoryError) as caught:
            slope(0.5, 3000)
        assert np.isfinite(slope(0.5, 20))
    assert isinstance(caught.value, wend.TapeLimitError)
    line = program.__code__.co_firstlineno + 1
    text = str(caught.value)
    assert f"the tape of the loop at test_tape_limit.py:{line} would take more than" in text
    assert "tape_limit=9.766 KiB after" in text
    assert 'give the loop memory="thin" or wend.Checkpoints(slots), or raise the limit' in text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("memory", ["thin", wend.Checkpoints(5), wend.Every(60)], ids=str)
def test_the_cure_works(memory: Any, backend: str) -> None:
    expected = wend.grad(sines)(0.5, 3000)
    with wend.config(tape_limit=10_000, memory=memory, backend=backend):
        np.testing.assert_allclose(wend.grad(sines)(0.5, 3000), expected, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_that_only_the_run_knows(backend: str) -> None:
    slope = wend.function(wend.grad(sines), reduce_retracing=True)
    with wend.config(tape_limit=100_000, backend=backend):
        assert slope(np.ones(30), 100).shape == (30,)
        assert slope(np.ones(40), 100).shape == (40,)
        with pytest.raises(MemoryError, match="after 32 trips"):
            slope(np.ones(400), 100)


def test_the_limit_counts_trips_exactly() -> None:
    with wend.config(tape_limit=800):
        slope = wend.grad(sines)
        assert np.isfinite(slope(0.5, 100))
        with pytest.raises(MemoryError, match="after 101 trips"):
            slope(0.5, 101)


def test_it_is_part_of_the_key_of_a_trace() -> None:
    slope = wend.grad(sines)
    for limit in (None, 800, None, "800B"):
        with wend.config(tape_limit=limit):
            for _ in range(3):
                slope(0.5, 50)
    explanation = str(slope.explain())
    assert explanation.startswith("grad_sines: 2 traces")
    assert "unlike trace 1: tape_limit is 800 bytes, not none" in explanation


def vectors(trips: int, *, prints: bool = False) -> Any:
    def fun(x: Any) -> Any:
        for k in range(trips):
            x = np.sin(x)
            if prints and k < 0:
                print(x)
        return np.sum(x)

    return fun


@pytest.mark.parametrize("backend", BACKENDS)
def test_thin_is_chosen_where_the_tape_is_known_to_be_too_large(backend: str) -> None:
    x = np.linspace(0.1, 1.0, 50)
    expected = [wend.grad(vectors(trips))(x) for trips in (20, 400)]
    with wend.config(tape_limit=10_000, backend=backend):
        slopes = [wend.grad(vectors(trips)) for trips in (20, 400)]
        actual = [slope(x) for slope in slopes]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    small, large = (str(slope.explain()) for slope in slopes)
    assert 'memory="thin"' not in small
    assert '(memory="thin": runs each trip once more)' in large


def ring(trips: int) -> Any:
    """An array of 300 numbers, of which each trip changes one."""

    def fun(x: Any) -> Any:
        y = np.zeros(300) + x
        for k in range(trips):
            y[(k + 1) % 300] = np.sin(y[k % 300])
        return np.sum(y)

    return fun


@pytest.mark.parametrize("trips", [2999, 1300])
def test_thin_is_chosen_for_changes_in_place_where_it_keeps_less(trips: int) -> None:
    expected = wend.grad(ring(trips))(0.3)
    with wend.config(tape_limit=10_000):
        slope = wend.grad(ring(trips))
        if trips == 1300:
            with pytest.raises(wend.TapeLimitError):
                slope(0.3)
        else:
            assert slope(0.3) == expected
            assert '(memory="thin": runs each trip once more)' in str(slope.explain())


def test_thin_is_not_chosen_for_loops_that_it_refuses() -> None:
    x = np.linspace(0.1, 1.0, 50)
    with wend.config(tape_limit=10_000), pytest.raises(wend.TapeLimitError):
        wend.grad(vectors(400, prints=True))(x)


def test_explain_tells_what_a_call_has_needed() -> None:
    x = np.linspace(0.1, 1.0, 1000)
    needed = {}
    for tape_keep in (0, 1 << 30):
        with wend.config(backend="native", tape_keep=tape_keep):
            slope = wend.grad(vectors(300))
            slope(x)
            text = str(slope.get_concrete_function(x).explain())
        (line,) = [line for line in text.splitlines() if "needed up to" in line]
        needed[tape_keep] = int(line.split()[3].replace(",", ""))
    assert needed[0] == needed[1 << 30]
    assert 300 * 8000 <= needed[0] <= 1.4 * 300 * 8000
