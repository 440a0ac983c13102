"""Numba: plain Python compiled, without derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.workload import GRADIENT, Program, Refuses, Workload


class Numba(Peer):
    """`numba.njit`."""

    def load(self) -> str:
        import math

        import numba
        import numpy as np

        self.njit = numba.njit
        self.library = SimpleNamespace(
            sin=math.sin,
            exp=math.exp,
            sqrt=math.sqrt,
            tanh=np.tanh,
            sum=np.sum,
            maximum=max,
            minimum=min,
            stop_gradient=numba.njit(lambda x: x),
            helper=numba.njit,
        )
        return str(numba.__version__)

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        if measure == GRADIENT:
            return Refuses("has no derivatives")
        if workload.plain is None:
            return None
        program: Program = self.njit(workload.plain(self.library))
        return program
