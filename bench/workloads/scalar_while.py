"""A number that grows until it reaches a bound: how often depends on the data."""

from __future__ import annotations

import math
from typing import Any

from bench.workload import GRADIENT, VALUE, Library, Program, Workload
from bench.workloads import warp_kernels


def plain(lib: Library) -> Program:
    sin = lib.sin

    def program(x: Any, a: Any, bound: Any) -> Any:
        while x < bound:
            x = x + a * sin(x) * 1e-3 + 1e-3
        return x

    return program


def functional(lib: Library, limit: int = 1 << 14) -> Program:
    def program(x: Any, a: Any, bound: Any) -> Any:
        (end,) = lib.while_loop(
            lambda x: x < bound, lambda x: (x + a * lib.sin(x) * 1e-3 + 1e-3,), (x,), limit
        )
        return end

    return program


def trips(x: float, a: float, bound: float) -> int:
    count = 0
    while x < bound:
        x, count = x + a * math.sin(x) * 1e-3 + 1e-3, count + 1
    return count


def answer(x: float, a: float, bound: float) -> list[float]:
    by_x, by_a = 1.0, 0.0
    while x < bound:
        slope = 1.0 + a * math.cos(x) * 1e-3
        by_x, by_a = slope * by_x, slope * by_a + math.sin(x) * 1e-3
        x = x + a * math.sin(x) * 1e-3 + 1e-3
    return [x, by_x, by_a]


WORKLOADS = [
    Workload(
        name="scalar_while",
        title="x += a sin(x) / 1000 + 1 / 1000 while x < bound",
        arguments=(0.1, 0.3, 10.0),
        small=(0.1, 0.3, 0.2),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0, 1),
        own={"warp": warp_kernels.scalar_while},
        refuses={"casadi": "a loop whose trips depend on data"},
        trips=trips,
        answer=answer,
    )
]
