"""Loops that change a carry in place: copies of it are refused where `"keep"` keeps less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend


def recurrence(size: int) -> Any:
    def fun(x: Any) -> Any:
        y = np.zeros(size) + x
        for k in range(size - 1):
            y[k + 1] = np.sin(y[k]) * 1.1
        return np.sum(y * y)

    return fun


@pytest.mark.parametrize(
    ("policy", "size", "figure"),
    [
        ("recompute", 1000, "keep 8,008 bytes a trip"),
        (wend.Every(10), 1000, "keep 8,008 bytes every 10 trips"),
        ("thin", 1001, "keep 8,016 bytes in each of √(2 T) slots"),
    ],
    ids=str,
)
def test_copies_are_refused_with_both_figures(policy: Any, size: int, figure: str) -> None:
    with wend.config(memory=policy), pytest.raises(wend.WendError) as caught:
        wend.grad(recurrence(size))(0.7)
    text = str(caught.value)
    assert figure in text
    assert 'with "keep" it is 8 bytes a trip' in text
    assert "changes an array in place at test_copied_carries.py:17, so each" in text
    assert 'use memory="keep" or wend.Checkpoints(slots)' in text


@pytest.mark.parametrize("policy", ["thin", wend.Every(400), wend.Checkpoints(4)], ids=str)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_fewer_copies_are_not(policy: Any, backend: str) -> None:
    expected = wend.grad(recurrence(300))(0.7)
    with wend.config(memory=policy, backend=backend):
        np.testing.assert_allclose(wend.grad(recurrence(300))(0.7), expected, rtol=1e-12)


def test_what_is_replaced_as_a_whole_is_not_a_copy() -> None:
    def fun(x: Any) -> Any:
        y = np.zeros(1000) + x
        for _ in range(9):
            y = np.sin(y) * 1.1
        return np.sum(y * y)

    with wend.config(memory="recompute"):
        assert np.isfinite(wend.grad(fun)(0.7))


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 3, 8])
def test_a_long_loop_keeps_an_array_for_each_slot_and_one_to_work_on(slots: int) -> None:
    size = 100_000
    held = {}
    with wend.config(backend="native", tape_keep=1 << 40):
        for policy in ("keep", "spill", wend.Checkpoints(slots)):
            slope = wend.grad(recurrence(size))
            with wend.config(memory=policy):
                assert np.isclose(slope(0.7), 8.268427568295472, rtol=1e-12)
                runs = slope.get_concrete_function(0.7).compiled.executables()
            held[str(policy)] = sum(sum(run.held_memory().values()) for run in runs)
    array = 1.05 * 8 * size  # blocks come in size classes
    assert held["spill"] <= held["keep"] + 3 * array
    assert held[f"Checkpoints({slots})"] <= held["keep"] + (slots + 1) * array
