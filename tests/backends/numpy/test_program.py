"""The program that a graph becomes: values go at their last use, kernels tell the user's line."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

import numpy as np
import wend
import wend.numpy as wnp


def test_values_are_dropped_at_their_last_use() -> None:
    def chain(x: np.ndarray) -> np.ndarray:
        for _ in wend.unroll(range(20)):
            x = wnp.sin(x)
        return wnp.sum(x)

    fun = wend.function(chain)
    x = np.ones(200_000)
    fun(x)
    gc.collect()
    tracemalloc.start()
    fun(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * x.nbytes, "twenty steps, of which two are alive at a time"


def test_a_failing_kernel_tells_the_users_line() -> None:
    @wend.function
    def pick(x: np.ndarray, i: int) -> np.ndarray:
        return x[i]

    with pytest.raises(IndexError) as caught:
        pick(np.ones(3), 5)
    assert any("gather at test_program.py" in note for note in caught.value.__notes__)
