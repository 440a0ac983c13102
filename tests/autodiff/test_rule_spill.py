"""`memory="spill"`: the derivatives of the loop, with its records in a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from tests.autodiff.test_checkpoints import (
    growing,
    in_place,
    inner,
    power,
    reading_a_list,
    sines,
)
from tests.autodiff.test_strip_mine import POINTS, check_policy
from wend.autodiff import rule_spill
from wend.runtime import spool as spool_module
from wend.runtime.spool import Spool


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(rule_spill, "_SEGMENT_BYTES", 60)
    with wend.config(backend="native"):
        yield


pytestmark = pytest.mark.usefixtures("small_segments")


@pytest.mark.parametrize("program", POINTS)
def test_the_same_derivatives(program: Any) -> None:
    check_policy(program, "spill", "native")


@pytest.mark.sampled
@pytest.mark.parametrize("trips", [0, 1, 13])
def test_an_exit_in_the_middle(trips: int) -> None:
    expected = [wend.grad(power)(0.6, trips), wend.grad(wend.grad(power))(0.6, trips)]
    with wend.config(memory="spill"):
        actual = [wend.grad(power)(0.6, trips), wend.grad(wend.grad(power))(0.6, trips)]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("program", [in_place, growing, reading_a_list, inner])
def test_arrays_in_place_lists_and_loops_in_the_body(program: Any) -> None:
    second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
    expected = [wend.grad(program)(0.7), second(0.7)]
    with wend.config(memory="spill"):
        second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
        actual = [wend.grad(program)(0.7), second(0.7)]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def lstm(W: Any, U: Any, b: Any, xs: Any, memory: Any) -> Any:
    size = U.shape[0]
    h, c = np.zeros((xs.shape[1], size)), np.zeros((xs.shape[1], size))
    loss = 0.0
    for t in wend.loop(range(xs.shape[0]), memory=memory):
        gates = xs[t] @ W + h @ U + b
        i, f, o = (1.0 / (1.0 + np.exp(-gates[:, k * size : (k + 1) * size])) for k in range(3))
        c = f * c + i * np.tanh(gates[:, 3 * size :])
        h = o * np.tanh(c)
        loss = loss + np.sum(h * h)
    return loss


def held(fun: Any, *args: Any) -> int:
    """The bytes that runs have needed at most."""
    executables = fun.get_concrete_function(*args).compiled.executables()
    return sum(sum(run.held_memory().values()) for run in executables)


@pytest.mark.parametrize("are_sizes_known", [True, False])
def test_a_tape_of_eight_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, are_sizes_known: bool
) -> None:
    """What the run and the spool hold, but for the arrays of one trip, stays below the limit."""
    monkeypatch.undo()
    spools: list[Spool] = []

    class KnownSpool(Spool):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            spools.append(self)

    monkeypatch.setattr(spool_module, "Spool", KnownSpool)
    rng = np.random.default_rng(0)
    size, limit = 32, 1 << 21
    W, U = 0.1 * rng.normal(size=(2, size, 4 * size))
    args = W, U, np.zeros(4 * size), rng.normal(size=(800, 16, size))
    slope = wend.grad(partial(lstm, memory="keep"), (0, 1, 2))
    if not are_sizes_known:
        signature = [wend.TensorSpec((None,) * x.ndim) for x in args]
        slope = wend.function(slope, input_signature=signature)
    with wend.config(backend="native", tape_keep=1 << 40, spill_dir=str(tmp_path)):
        expected = slope(*args)
        with wend.config(tape_limit=limit):
            actual = slope(*args)
            total = held(slope, *args)
            slope(*args[:3], args[3][:1])
            working = held(slope, *args[:3], args[3][:1])
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not [*tmp_path.iterdir()]
    assert spools[0].written > 7 * limit
    assert total - working + spools[0].peak <= 1.1 * limit


@pytest.mark.parametrize("folder", ["", "missing"])
def test_a_limit_without_a_folder_stops(tmp_path: Path, folder: str) -> None:
    spill_dir = str(tmp_path / folder) if folder else ""
    with wend.config(tape_limit=1000, spill_dir=spill_dir), pytest.raises(wend.TapeLimitError):
        wend.grad(sines)(0.5, 1000)


def test_a_limit_and_effects_stop(tmp_path: Path) -> None:
    def talking(x: Any, trips: Any) -> Any:
        for _ in range(trips):
            x = np.sin(x)
            print(x)
        return x

    with wend.config(tape_limit=1000, spill_dir=str(tmp_path)):
        slope = wend.grad(talking)
        assert np.isfinite(slope(0.5, 10))
        with pytest.raises(wend.TapeLimitError):
            slope(0.5, 200)


def test_the_folder_is_part_of_the_key_of_a_trace(tmp_path: Path) -> None:
    slope = wend.grad(sines)
    for _ in range(2):
        for folder in ("", str(tmp_path)):
            with wend.config(tape_limit="10kB", spill_dir=folder):
                assert np.isfinite(slope(0.5, 50))
    explanation = str(slope.explain())
    assert explanation.startswith("grad_sines: 2 traces")
    assert "unlike trace 1: tapes spill past the limit" in explanation
    assert "spills the tape of the loop at" in explanation


def test_a_loop_in_a_loop_past_the_limit(tmp_path: Path) -> None:
    expected = wend.grad(inner)(0.7)
    with wend.config(tape_limit=300, spill_dir=str(tmp_path)):
        np.testing.assert_allclose(wend.grad(inner)(0.7), expected, rtol=1e-13)


def test_a_pullback_may_be_called_often_or_never() -> None:
    def wave(x: Any) -> Any:
        for _ in wend.loop(range(50), memory="spill"):
            x = np.sin(x) + 0.1 * x[::-1]
        return x

    x = np.linspace(0.1, 1.0, 4)
    _, pull = wend.vjp(wave, x)
    rows = np.stack([pull(row)[0] for row in np.eye(4)])
    np.testing.assert_allclose(rows, wend.jacrev(wave)(x), rtol=1e-12)
    with wend.config(memory="keep"):
        _, other = wend.vjp(wave, x)
    np.testing.assert_allclose(pull(x)[0], other(x)[0], rtol=1e-13)
    del pull, other


def test_sizes_that_only_the_run_knows(tmp_path: Path) -> None:
    slope = wend.function(wend.grad(sines_of_vectors), reduce_retracing=True)
    expected = wend.grad(sines_of_vectors)
    with wend.config(memory="spill", spill_dir=str(tmp_path)):
        for size in (3, 4, 7):
            x = np.linspace(0.1, 1.0, size)
            actual = slope(x, 20)
            with wend.config(memory="keep"):
                np.testing.assert_array_equal(actual, expected(x, 20))


def sines_of_vectors(x: Any, trips: Any) -> Any:
    for _ in range(trips):
        x = np.sin(x) * x[0]
    return np.sum(x)
