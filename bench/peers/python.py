"""Plain Python, with NumPy for arrays."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.peers.arrays import like_numpy
from bench.workload import GRADIENT, Program, Refuses, Workload

LIBRARY = SimpleNamespace(
    sin=math.sin,
    exp=math.exp,
    sqrt=math.sqrt,
    tanh=np.tanh,
    sum=np.sum,
    maximum=max,
    minimum=min,
    stop_gradient=lambda x: x,
    **like_numpy(np),
)


class ValuesOnly(Peer):
    """Runs plain programs, and has no derivatives."""

    def compiled(self, program: Program) -> Program:
        """What runs a program."""
        return program

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        if measure == GRADIENT:
            return Refuses("has no derivatives")
        if workload.plain is None:
            return None
        return self.compiled(workload.plain(self.library))


class Python(ValuesOnly):
    """The program as it stands."""

    def load(self) -> str:
        self.library = LIBRARY
        return platform.python_version()
