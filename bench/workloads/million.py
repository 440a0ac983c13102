"""The loop of `scalar_while` over a million trips: the time and the memory of its gradient."""

from __future__ import annotations

from functools import partial

from bench.workload import GRADIENT, MEMORY, VALUE, Workload
from bench.workloads import scalar_while

WORKLOADS = [
    Workload(
        name="million",
        title="the loop of scalar_while over a million trips",
        arguments=(0.1, 0.3, 954.0),
        small=(0.1, 0.3, 1.0),
        measures=(VALUE, GRADIENT, MEMORY),
        plain=scalar_while.plain,
        functional=partial(scalar_while.functional, limit=1 << 20),
        differentiable=(0, 1),
        own=scalar_while.WORKLOADS[0].own,
        refuses=scalar_while.WORKLOADS[0].refuses,
        trips=scalar_while.trips,
        tolerance=1e-8,
        answer=scalar_while.answer,
    )
]
