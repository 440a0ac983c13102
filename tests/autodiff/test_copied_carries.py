"""Loops that change a carry in place: policies copy it for few trips, or are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.autodiff import rule_spill


def recurrence(size: int) -> Any:
    """The remainder hides from the compiler that a trip reads what the last one has stored."""

    def fun(x: Any) -> Any:
        y = np.zeros(size) + x
        for k in range(size - 1):
            y[k + 1] = np.sin(y[k % size]) * 1.1
        return np.sum(y * y)

    return fun


@pytest.mark.parametrize(
    ("policy", "size", "figure"),
    [
        ("recompute", 1000, "keep 8,008 bytes a trip"),
        (wend.Every(10), 1000, "keep 8,008 bytes every 10 trips"),
    ],
    ids=str,
)
def test_copies_are_refused_with_both_figures(policy: Any, size: int, figure: str) -> None:
    with wend.config(memory=policy), pytest.raises(wend.WendError) as caught:
        wend.grad(recurrence(size))(0.7)
    text = str(caught.value)
    assert figure in text
    assert 'with "keep" it is 8 bytes a trip' in text
    assert "changes an array in place at test_copied_carries.py:20, so each" in text
    assert 'use memory="keep", "thin" or wend.Checkpoints(slots)' in text


def sometimes(x: Any) -> Any:
    y = np.zeros(1000) + x
    for k in range(999):
        if y[k] > 0.5:
            y[k + 1] = np.sin(y[k]) * 1.1
        elif y[k] > 0.2:
            y[k + 1] = np.cos(y[k])
    return np.sum(y * y)


def test_copies_of_what_some_branches_change_are_refused() -> None:
    with wend.config(memory=wend.Every(10)), pytest.raises(wend.WendError) as caught:
        wend.grad(sometimes)(0.7)
    assert "it changes an array in place at test_copied_carries.py" in str(caught.value)


@pytest.mark.sampled
@pytest.mark.parametrize("policy", ["thin", wend.Every(1200), *map(wend.Checkpoints, (1, 2, 4))])
@pytest.mark.parametrize("program", [recurrence(300), sometimes], ids=["recurrence", "sometimes"])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_fewer_copies_are_not(program: Any, policy: Any, backend: str) -> None:
    expected = wend.grad(program)(0.7)
    with wend.config(memory=policy, backend=backend):
        np.testing.assert_allclose(wend.grad(program)(0.7), expected, rtol=1e-12)


def test_what_is_replaced_as_a_whole_is_not_a_copy() -> None:
    def fun(x: Any) -> Any:
        y = np.zeros(1000) + x
        for _ in range(9):
            y = np.sin(y) * 1.1
        return np.sum(y * y)

    with wend.config(memory="recompute"):
        assert np.isfinite(wend.grad(fun)(0.7))


def written(x: Any) -> Any:
    """An array that the body does not read: a state of the loop is a number."""
    y = np.zeros(1000) + x
    for k in range(1000):
        x = np.sin(x) * 1.1
        y[k] = x
    return np.sum(y * y)


def test_what_the_body_does_not_read_is_not_copied() -> None:
    expected = wend.grad(written)(0.7)
    for policy in ("recompute", "thin", wend.Every(10), wend.Checkpoints(4)):
        with wend.config(memory=policy):
            slope = wend.grad(written)
            np.testing.assert_allclose(slope(0.7), expected, rtol=1e-12)
        copied = [x for x in str(slope.explain()).splitlines() if " buffer" not in x]
        assert "f64[1000]" not in "\n".join(copied)


def sweeps(x: Any, n: Any, trips: Any) -> Any:
    """An inner loop changes the whole array."""
    y = np.zeros(n) + x * np.linspace(0.5, 1.0, n)
    for _ in range(trips):
        for i in range(1, n):
            y[i] = 0.5 * np.sin(y[i]) + 0.4 * y[i - 1]
    return np.sum(y * y)


def windows(x: Any, n: Any, trips: Any) -> Any:
    """Inner loops of unknown length change a few elements, until one of them is large."""
    y = np.zeros(n) + x * np.linspace(0.5, 1.0, n)
    t = 0
    while t < trips and y[t % n] < 10.0:
        j = 0
        while j < 4 and y[j] > 0.1:
            y[(t + j) % n] = 0.7 * np.sin(y[(t + j) % n]) + 0.6 * y[t % n - 1]
            j += 1
        t += 1 + (j > 2)
    return np.sum(y * y)


def quads(x: Any, n: Any, trips: Any) -> Any:
    """Inner loops of known length change a few elements of many."""
    y = np.zeros(2000) + x
    for t in range(trips):
        for i in range(4):
            y[(t + i) % n] = 0.5 * np.sin(y[(t + i) % n]) + 0.6 * y[t % n - 1]
    return np.sum(y * y)


@pytest.mark.parametrize(
    ("program", "policy"),
    [(sweeps, wend.Checkpoints(1)), (windows, "thin"), (quads, wend.Checkpoints(3))],
)
def test_changes_by_inner_loops(program: Any, policy: Any) -> None:
    def squared(x: Any, n: Any, trips: Any) -> Any:
        return wend.grad(program)(x, n, trips) ** 2

    for n, trips in ((5, 0), (9, 20)):
        expected = [wend.grad(f)(0.8, n, trips) for f in (program, squared)]
        with wend.config(memory=policy, backend="numpy"):
            actual = [wend.grad(f)(0.8, n, trips) for f in (program, squared)]
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_copies_of_what_inner_loops_change() -> None:
    """A trip of `quads` records 48 bytes, a trip of `sweeps` as much as a copy."""
    with wend.config(memory=wend.Every(10)):
        with pytest.raises(wend.WendError, match='every 10 trips; with "keep" it is 48 bytes'):
            wend.grad(quads)(0.8, 9, 20)
        assert np.isfinite(wend.grad(sweeps)(0.8, 9, 20))


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("policy", ["thin", wend.Checkpoints(3)], ids=str)
def test_a_raise_in_the_middle_gives_no_gradient(policy: Any, backend: str) -> None:
    def fun(x: Any, bad: Any) -> Any:
        y = np.zeros(50) + x
        for k in range(200):
            if k == bad:
                raise ValueError("not this trip")
            y[(k + 1) % 50] = np.sin(y[k % 50]) * 1.1
        return np.sum(y)

    slope = wend.grad(fun)
    expected = slope(0.7, 200)
    with wend.config(memory=policy, backend=backend):
        for bad in (0, 77, 199):
            with pytest.raises(ValueError, match="not this trip"):
                slope(0.7, bad)
            np.testing.assert_allclose(slope(0.7, 200), expected, rtol=1e-12)


SIZE = 114_680  # of an array that fills a size class of memory
# Policies, and how many arrays they may hold beside what `"keep"` does. `"spill"` holds what is on
# the way; `"thin"` keeps two states of two segments, and `Every` one, beside the one to run in.
EXTRA_ARRAYS = {
    "spill": 1,
    "thin": 3,
    f"Every({SIZE + 1})": 3,
    **{f"Checkpoints({n})": n for n in (2, 3, 5, 8, 32)},
}


@pytest.fixture(scope="module")
def held_by_keep() -> int:
    return most_bytes("keep")


def most_bytes(policy: str) -> int:
    """The most bytes of lists and arrays in a call with a policy, and of its spool."""
    slope = wend.grad(recurrence(SIZE))
    with wend.config(memory=policy, backend="native", tape_keep=1 << 40):
        assert np.isclose(slope(0.7), 8.268427568295472, rtol=1e-12)
        compiled = slope.get_concrete_function(0.7).compiled
        return sum(run.peak_memory() for run in compiled.executables())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", EXTRA_ARRAYS)
def test_a_long_loop_holds_an_array_for_each_slot(
    policy: str, held_by_keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = 8 * SIZE
    monkeypatch.setattr(rule_spill, "_SEGMENT_BYTES", array // 8)
    assert 2 * array <= held_by_keep <= 2.01 * array  # a tape, and the array or its cotangent
    assert most_bytes(policy) <= held_by_keep + 1.01 * EXTRA_ARRAYS[policy] * array


def test_one_slot_of_a_shorter_loop() -> None:
    """Without a slot for the records of a segment, trips run again one by one: T² / 2 of them."""
    held = {}
    for policy in ("keep", wend.Checkpoints(1)):
        slope = wend.grad(recurrence(4000))
        with wend.config(memory=policy, backend="native", tape_keep=1 << 40):
            assert np.isclose(slope(0.7), 8.268427568295472, rtol=1e-12)
            runs = slope.get_concrete_function(0.7).compiled.executables()
            held[str(policy)] = sum(run.peak_memory() for run in runs)
    assert held["Checkpoints(1)"] <= held["keep"] + 1.3 * 8 * 4000  # in size classes


@pytest.mark.parametrize("policy", ["thin", wend.Checkpoints(3)], ids=str)
def test_segments_of_any_number_of_trips(policy: Any) -> None:
    """A size that only the run knows; more, and fewer, trips than the array has elements."""

    def fun(x: Any, start: Any, trips: Any) -> Any:
        y = start.copy()
        for k in range(trips):
            at = k % y.shape[0]
            x = np.sin(x) + y[at]
            y[at] = y[at - 1] * np.cos(x)
        return np.sum(y * y) + x

    def second(x: Any, y: Any, trips: Any) -> Any:
        return np.sum(wend.grad(fun, 1)(x, y, trips) ** 2)

    for size, trips in ((5, 0), (7, 100), (60, 23)):
        args = 0.3, np.linspace(0.1, 1.0, size), trips
        expected = [*wend.grad(fun, (0, 1))(*args), *wend.grad(second, (0, 1))(*args)]
        with wend.config(memory=policy):
            actual = [*wend.grad(fun, (0, 1))(*args), *wend.grad(second, (0, 1))(*args)]
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
