"""Loops that multiply by a matrix: wherever it lies, results are the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.backend import NativeBackend
from wend.backends.native.target.numpy_capi import aligned_copy
from wend.passes.pipeline import OPTIMIZE, run_passes

SIZE = 24
RNG = np.random.default_rng(6)
WEIGHTS, START = RNG.normal(size=(SIZE, SIZE)) * 0.2, RNG.normal(size=(1, SIZE))


def placed(array: np.ndarray, offset: int) -> np.ndarray:
    """A copy that starts so many bytes after a multiple of 64."""
    memory = np.empty(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def plain(xp: Any, w: Any, h: Any, n: Any) -> Any:
    for _ in range(n):
        h = xp.tanh(h @ w + 0.1)
    return h


def nested(xp: Any, w: Any, h: Any, n: Any) -> Any:
    for _ in range(n):
        for _ in range(2):
            if h[0, 0] > 0.0:
                h = xp.tanh(h @ w.T)
            else:
                h = xp.tanh(h @ w + 0.2)
    return h + w[0]


def changed(xp: Any, w: Any, h: Any, n: Any) -> Any:
    w = w + 0.0
    for _ in range(n):
        h = xp.tanh(h @ w)
        w[0] = h[0]
    return h @ w


BODIES: list[Callable[..., Any]] = [plain, nested, changed]


@pytest.mark.parametrize("trips", [0, 1, 5])
@pytest.mark.parametrize("body", BODIES)
def test_results_do_not_depend_on_where_arrays_lie(body: Callable[..., Any], trips: int) -> None:
    fun = wend.function(lambda w, h: body(wnp, w, h, trips), backend="native")
    expected = body(np, WEIGHTS, START, trips)
    for offset in (0, 8, 16, 48, 16):
        w = placed(WEIGHTS, offset)
        for _ in range(3):
            np.testing.assert_allclose(fun(w, placed(START, offset)), expected, rtol=1e-12)
        np.testing.assert_array_equal(w, WEIGHTS)


def test_gradients_too() -> None:
    def cost(w: Any, h: Any, n: Any) -> Any:
        return wnp.sum(wend.fori_loop(0, n, lambda i, h: wnp.tanh(h @ w), h))

    with wend.config(backend="numpy"):
        expected = wend.grad(cost)(WEIGHTS, START, 4)
    with wend.config(backend="native"):
        gradient, hessian = wend.grad(cost), wend.hessian(lambda w, h: cost(w, h, 2))
        for offset in (0, 16):
            found = gradient(placed(WEIGHTS, offset), START, 4)
            np.testing.assert_allclose(found, expected, rtol=1e-11)
        small = [WEIGHTS[:3, :3].copy(), START[:, :3].copy()]
        assert hessian(*small).shape == (3, 3, 3, 3)


def copies(fun: Callable[..., Any], *args: Any) -> int:
    graph = run_passes(wend.function(fun).get_concrete_function(*args).graph, OPTIMIZE)
    return len(re.findall(r"^align\d+:", NativeBackend().text(graph), re.MULTILINE))


def test_only_what_gains_is_moved() -> None:
    def loop(w: Any, h: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, h: wnp.tanh(h @ w), h)

    def added(w: Any, h: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, h: h + w[i], h)

    def back_and_forth(w: Any, h: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, h: wnp.tanh(h @ w @ w.T), h)

    assert copies(loop, WEIGHTS, START, 3) == 1
    assert copies(back_and_forth, wend.TensorSpec((SIZE, None), np.float64), START, 3) == 1
    assert copies(loop, WEIGHTS[:2, :2], START[:, :2], 3) == 0
    assert copies(loop, np.zeros((200, 200)), np.zeros((1, 200)), 3) == 0
    assert copies(added, WEIGHTS, START, 3) == 0
    assert copies(lambda w, h: h @ w, WEIGHTS, START) == 0


def test_constants_lie_well() -> None:
    for array in (np.arange(5.0), np.ones((3, 4), np.float32)[:, ::2], np.zeros((0, 3), bool)):
        copy = aligned_copy(array)
        assert copy.ctypes.data % 64 == 0 or not copy.size
        assert copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, array)
