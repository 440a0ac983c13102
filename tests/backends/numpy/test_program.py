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


def test_shapes_that_turn_out_not_to_fit_are_told_as_numpy_does() -> None:
    spec = wend.TensorSpec([None, None])

    @wend.function(input_signature=[spec, spec])
    def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x @ y

    @wend.function(input_signature=[spec, spec])
    def total(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x + y

    wanted = r"shapes \(2, 3\) and \(2, 3\) not aligned: 3 \(dim 1\) != 2 \(dim 0\)"
    with pytest.raises(ValueError, match=wanted) as caught:
        product(np.ones((2, 3)), np.ones((2, 3)))
    assert len(caught.value.__notes__) == 1
    assert "dot_general at test_program.py" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match=r"broadcast together with shapes \(2, 3\) \(2, 2\)"):
        total(np.ones((2, 3)), np.ones((2, 2)))


def test_a_failing_kernel_tells_the_users_line() -> None:
    @wend.function
    def pick(x: np.ndarray, i: int) -> np.ndarray:
        return x[i]

    with pytest.raises(IndexError) as caught:
        pick(np.ones(3), 5)
    assert any("gather at test_program.py" in note for note in caught.value.__notes__)
