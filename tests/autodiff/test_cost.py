"""What a gradient costs grows with the trips, not faster."""

from __future__ import annotations

import time

import wend
import wend.numpy as wnp


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
