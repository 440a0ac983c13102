"""One call of a function with five numbers of outside, which each call must read again.

The peers that compile freeze what a function reads of outside at the trace, so Python is the only
one here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.workload import VALUE, Library, Program, Workload

SIZE = 4
OFFSET = 0.5
BOUNDS = [2.0, 3.0]


@dataclass
class Gains:
    """Numbers that a user may set between calls."""

    first: float = 1.5
    second: float = 0.25


GAINS = Gains()


def plain(lib: Library) -> Program:
    def program(x: Any, y: Any) -> Any:
        return x * y * GAINS.first + GAINS.second * OFFSET + BOUNDS[0] * BOUNDS[1]

    return program


WORKLOADS = [
    Workload(
        name="call_outside",
        title="a call that reads a global, two attributes and two items",
        arguments=(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.25, -1.0, 2.0])),
        small=(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.25, -1.0, 2.0])),
        measures=(VALUE,),
        size=SIZE,
        plain=plain,
        peers=("wend", "python"),
    )
]
