"""The workloads there are, a file each."""

from __future__ import annotations

from importlib import import_module

from bench.workload import Workload

NAMES = (
    "scalar_while",
    "vec100",
    "dopri",
    "nested",
    "newton",
    "call",
    "first_call",
    "million",
    "demo",
)


def load(name: str) -> Workload:
    """Return the workload of this name."""
    workload: Workload = import_module(f"bench.workloads.{name}").WORKLOAD
    return workload
