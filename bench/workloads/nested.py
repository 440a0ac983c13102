"""A loop in a loop with a branch in it; both run until something happens."""

from __future__ import annotations

import math
from typing import Any

from bench.workload import GRADIENT, VALUE, Library, Program, Workload
from bench.workloads import warp_kernels


def plain(lib: Library) -> Program:
    sin = lib.sin

    def program(x: Any, a: Any, bound: Any) -> Any:
        total = 0.0 * x
        while total < bound:
            y = x + total
            while y > 0.5:
                if y > 2.0:
                    y = y * a
                else:
                    y = y - 0.1 * sin(y)
            total = total + 0.1 * y
        return total

    return program


def functional(lib: Library) -> Program:
    def program(x: Any, a: Any, bound: Any) -> Any:
        def inner(y: Any) -> tuple[Any]:
            return (lib.where(y > 2.0, y * a, y - 0.1 * lib.sin(y)),)

        def outer(total: Any) -> tuple[Any]:
            (y,) = lib.while_loop(lambda y: y > 0.5, inner, (x + total,), 1 << 7)
            return (total + 0.1 * y,)

        (end,) = lib.while_loop(lambda total: total < bound, outer, (0.0 * x,), 1 << 7)
        return end

    return program


def trips(x: float, a: float, bound: float) -> int:
    total, count = 0.0, 0
    while total < bound:
        y = x + total
        while y > 0.5:
            y = y * a if y > 2.0 else y - 0.1 * math.sin(y)
            count += 1
        total += 0.1 * y
    return count


WORKLOADS = [
    Workload(
        name="nested",
        title="a loop in a loop with a branch, both until something happens",
        arguments=(8.0, 0.9, 5.0),
        small=(8.0, 0.9, 0.2),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0, 1),
        own={"warp": warp_kernels.nested},
        refuses={"casadi": "a loop whose trips depend on data"},
        trips=trips,
    )
]
