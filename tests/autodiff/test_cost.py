"""What a gradient costs grows with the trips, not faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.ir.builder import Builder


@pytest.mark.slow  # seconds, which a busy machine changes
def test_a_gradient_with_two_records_a_trip_is_linear_in_the_trips() -> None:
    def fun(x: float, n: int) -> float:
        def step(i: int, c: tuple[float, float]) -> tuple[float, float]:
            return c[0] * c[1] * 0.5 + wnp.sin(c[0]), c[1] * 0.999

        return wend.fori_loop(0, n, step, (x, x))[0]

    gradient = wend.grad(fun)

    def seconds_a_trip(trips: int) -> float:
        gradient(1.1, trips)
        runs = []
        for _ in range(3):
            start = time.process_time()
            gradient(1.1, trips)
            runs.append(time.process_time() - start)
        return min(runs) / trips

    assert seconds_a_trip(8000) < 4 * seconds_a_trip(500)


def nodes_emitted(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> int:
    """How many nodes are made while something runs, in graphs that passes drop, too."""
    count, emit = 0, Builder.emit_node

    def counted(self: Builder, *args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return emit(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Builder, "emit_node", counted)
        run()
    return count


def joined(parts):
    return np.sum(np.concatenate([part * part for part in parts]) ** 2)


def test_a_gradient_of_many_parts_has_nodes_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    def emitted(n: int) -> int:
        gradient, parts = wend.grad(joined), [np.full(2, 0.5 + k) for k in range(n)]
        return nodes_emitted(monkeypatch, lambda: gradient(parts))

    assert emitted(80) < 2.2 * emitted(40)


def test_parts_of_sizes_known_at_run_time() -> None:
    def program(x, y, z):
        return np.sum(np.concatenate([x, y, z, x]) * np.arange(11.0))

    gradient = wend.grad(program, argnums=(0, 1, 2))
    for sizes in ((3, 4, 1), (2, 3, 4), (1, 5, 4)):
        arrays = [np.linspace(0.0, 1.0, n) for n in sizes]
        x, y, z = gradient(*arrays)
        n, m = sizes[0], sizes[0] + sizes[1]
        places = np.arange(11.0)
        np.testing.assert_allclose(x, places[:n] + places[-n:])
        np.testing.assert_allclose(y, places[n:m])
        np.testing.assert_allclose(z, places[m : m + sizes[2]])
