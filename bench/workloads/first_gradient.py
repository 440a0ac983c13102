"""The first gradient of `scalar_while` in a process: compiled, and found on disk."""

from __future__ import annotations

from bench.workload import FIRST_GRADIENT, LATER_GRADIENT, Workload
from bench.workloads import scalar_while

WORKLOADS = [
    Workload(
        name="first_gradient",
        title="the first gradient of scalar_while in fresh processes",
        arguments=(0.1, 0.3, 10.0),
        small=(0.1, 0.3, 0.2),
        measures=(FIRST_GRADIENT, LATER_GRADIENT),
        plain=scalar_while.plain,
        functional=scalar_while.functional,
        differentiable=(0, 1),
        trips=scalar_while.trips,
        answer=scalar_while.answer,
        peers=("wend", "wend-jax", "jax-tape"),
    )
]
