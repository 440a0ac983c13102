"""What holds for a sine of any library inside wend: in recorded loops and under tapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wend
from wend.testing import check_grads

SCALAR = wend.TensorSpec((), np.float64)


def check_in_a_loop(sine: Callable[[Any], Any], backend: str, order: int) -> None:
    """Values for several numbers of trips, and derivatives up to an order."""

    @wend.function(backend=backend)
    def iterate(x: Any, n: Any) -> Any:
        while n > 0:
            x, n = sine(x) + 0.1 * x, n - 1
        return x

    def plain(x: float, n: int) -> float:
        for _ in range(n):
            x = np.sin(x) + 0.1 * x
        return x

    for n in (0, 1, 5):
        assert np.isclose(iterate(0.7, n), plain(0.7, n), rtol=1e-14)
    check_grads(lambda x: iterate(x, 3), (0.7,), order=order)


def check_tapes(sine: Callable[[Any], Any]) -> None:
    with wend.GradientTape() as tape:
        x = tape.watch(0.5)
        y = sine(x) * x
    assert np.isclose(tape.gradient(y, x), np.sin(0.5) + 0.5 * np.cos(0.5))
    assert np.isclose(sine(0.5), np.sin(0.5))
