"""The program that a graph becomes: values go at their last use, kernels tell the user's line."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

import numpy as np
import wend
import wend.numpy as wnp
from wend.autodiff.structured import emit_loop
from wend.backends.protocol import choose
from wend.ir.dtypes import FLOAT64, INT64
from wend.ir.types import TensorType
from wend.ops.build import Build


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
    with pytest.raises(ValueError, match=r"broadcast together with shapes \(2,3\) \(2,2\)"):
        total(np.ones((2, 3)), np.ones((2, 2)))


def test_a_failing_kernel_tells_the_users_line() -> None:
    @wend.function
    def pick(x: np.ndarray, i: int) -> np.ndarray:
        return x[i]

    with pytest.raises(IndexError) as caught:
        pick(np.ones(3), 5)
    assert any("gather at test_program.py" in note for note in caught.value.__notes__)


def test_a_loop_does_not_hold_the_list_that_it_starts_from() -> None:
    """An older version of a list holds every item that newer ones replace."""

    b = Build("replacing")
    x, trips = b.param(TensorType(FLOAT64, (1000,))), b.param(TensorType(INT64, ()))
    start = b.list_push(b.list_new(x.type), x)

    def body(b: Build, carry: Any, invariants: Any) -> Any:
        k, items = carry
        item = b.mul(b.list_get(items, b.integer(0)), invariants[1])
        return [b.add(k, b.integer(1)), b.list_set(items, b.integer(0), item)]

    carry = [b.integer(0), start]
    loop = emit_loop(b, carry, [trips, x], lambda b, c, i: b.lt(c[0], i[0]), body)
    run = choose("numpy").compile(b.finish([b.list_get(loop[1], b.integer(0))]))

    def peak(trips: int) -> int:
        tracemalloc.start()
        try:
            run([np.ones(1000), np.int64(trips)])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(3)
    assert peak(300) < peak(10) + 10 * 8000
