"""One call: two arrays of four numbers in, one out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.workload import VALUE, Library, Program, Workload
from bench.workloads import warp_kernels

SIZE = 4


def plain(lib: Library) -> Program:
    def program(x: Any, y: Any) -> Any:
        return x * y + 1.0

    return program


def in_casadi(peer: Peer, measure: str, size: int) -> Program:
    ca = peer.library
    x, y = ca.MX.sym("x", size), ca.MX.sym("y", size)
    function: Program = ca.Function("call", [x, y], [x * y + 1.0])
    return function


WORKLOADS = [
    Workload(
        name="call",
        title="a call of x y + 1: two arrays of 4 numbers in, one out",
        arguments=(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.25, -1.0, 2.0])),
        small=(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.25, -1.0, 2.0])),
        measures=(VALUE,),
        size=SIZE,
        plain=plain,
        functional=plain,
        own={
            "casadi": partial(in_casadi, size=SIZE),
            "warp": partial(warp_kernels.product, size=SIZE),
        },
    )
]
