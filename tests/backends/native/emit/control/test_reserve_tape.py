"""Tapes of loops that count have room for their trips, and for no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.target.value_layout import SLOT_BYTES


def tape_bytes(fun: Any, *args: Any) -> int:
    """How much memory the arenas of a gradient have after one run."""
    gradient = wend.function(wend.grad(fun), backend="native")
    found = gradient(*args)
    np.testing.assert_allclose(found, wend.function(wend.grad(fun), backend="numpy")(*args))
    (space,) = gradient.get_concrete_function(*args).compiled.executable("native")._workspaces.all()
    return space.arena_bytes()


def up_to(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x + 0.1 * wnp.sin(x)
    return x


@pytest.mark.parametrize("n", [100, 1000, 30_000])
def test_a_range(n: int) -> None:
    assert tape_bytes(up_to, 0.3, n) == (n + 1) * SLOT_BYTES


@pytest.mark.parametrize("n", [0, -3, 1])
def test_few_trips(n: int) -> None:
    assert tape_bytes(up_to, 0.3, n) <= 64 * SLOT_BYTES


def test_a_range_of_known_length() -> None:
    fun = lambda x: wend.fori_loop(5, 1005, lambda i, x: x + 0.1 * wnp.sin(x), x)  # noqa: E731
    assert tape_bytes(fun, 0.3) == 1001 * SLOT_BYTES


def test_a_loop_in_a_loop() -> None:
    """Room is doubled where the outer loop comes back, so pushes stay cheap."""

    def fun(x: Any, n: Any) -> Any:
        for i in range(n):
            for _ in range(i):
                x = x + 0.01 * wnp.sin(x)
        return x

    records = 100 * 99 // 2
    assert records * SLOT_BYTES <= tape_bytes(fun, 0.3, 100) <= 3 * records * SLOT_BYTES


def test_loops_that_count_otherwise_grow_by_doubling() -> None:
    def down(x: Any, n: Any) -> Any:
        while n > 0:
            x, n = x + 0.1 * wnp.sin(x), n - 1
        return x

    def until(x: Any, limit: Any) -> Any:
        while x < limit:
            x = x + 0.1 * wnp.sin(x) + 0.01
        return x

    assert tape_bytes(down, 0.3, 1000) == 1024 * SLOT_BYTES
    assert tape_bytes(until, 0.3, 1.5) == 64 * SLOT_BYTES


def test_a_loop_that_is_left_early_asks_for_little() -> None:
    @wend.function(backend="native")
    def fun(x: Any, n: Any) -> Any:
        for _ in range(n):
            wend.assert_(x < 2.0, "too large")
            x = x + 0.1 * wnp.sin(x)
        return x

    with pytest.raises(AssertionError, match="too large"):
        wend.function(wend.grad(fun), backend="native")(0.3, 1 << 60)
