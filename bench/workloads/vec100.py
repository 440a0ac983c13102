"""A vector of 100 numbers that shrinks until its first one is small."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peer import Peer
from bench.workload import GRADIENT, VALUE, Library, Program, Workload
from bench.workloads import warp_kernels

SIZE = 100


def plain(lib: Library) -> Program:
    tanh, total = lib.tanh, lib.sum

    def program(v: Any, b: Any, bound: Any) -> Any:
        while v[0] > bound:
            v = tanh(v * b)
        return total(v)

    return program


def functional(lib: Library) -> Program:
    def program(v: Any, b: Any, bound: Any) -> Any:
        (end,) = lib.while_loop(lambda v: v[0] > bound, lambda v: (lib.tanh(v * b),), (v,), 1 << 10)
        return lib.sum(end)

    return program


def in_scan(peer: Peer, measure: str) -> Program:
    """As many trips as are counted before the first call."""
    jax, lib = peer.jax, peer.library  # type: ignore[attr-defined]
    counted: list[int] = []

    def scanned(v: Any, b: Any) -> Any:
        end, _ = lib.scan(lambda v, _: (lib.tanh(v * b), None), v, None, length=counted[0])
        return lib.sum(end)

    compiled = jax.jit(scanned if measure == VALUE else jax.value_and_grad(scanned, (0, 1)))

    def program(v: Any, b: Any, bound: Any) -> Any:
        if not counted:
            counted.append(trips(np.asarray(v), np.asarray(b), float(bound)))
        return compiled(v, b)

    return program


def trips(v: Any, b: Any, bound: float) -> int:
    count = 0
    while v[0] > bound:
        v, count = np.tanh(v * b), count + 1
    return count


WORKLOADS = [
    Workload(
        name="vec100",
        title="v = tanh(v b) over 100 numbers while v[0] > bound",
        arguments=(np.linspace(0.5, 1.5, SIZE), np.linspace(0.99, 1.0, SIZE), 1e-3),
        small=(np.linspace(0.5, 1.5, SIZE), np.linspace(0.99, 1.0, SIZE), 0.3),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0, 1),
        own={"warp": warp_kernels.vec100, "jax-scan": in_scan},
        refuses={
            "casadi": "a loop whose trips depend on data",
            "drjit": "to read one lane of a vector that a loop changes",
        },
        trips=trips,
    )
]
