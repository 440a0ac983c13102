"""What stands before the first answer: the import, and the first call of x y + 1."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bench.workload import FIRST_VALUE, IMPORT
from bench.workloads import call, warp_kernels

WORKLOADS = [
    replace(
        call.WORKLOADS[0],
        name="first_call",
        title="the import, and after it the first call of x y + 1, in fresh processes",
        arguments=(2.0, 3.0),
        small=(2.0, 3.0),
        measures=(IMPORT, FIRST_VALUE),
        size=1,
        own={
            "casadi": partial(call.in_casadi, size=1),
            "warp": partial(warp_kernels.product, size=1),
        },
    )
]
