"""Numba: plain Python compiled, without derivatives."""

from __future__ import annotations

from types import SimpleNamespace

from bench.peers.arrays import like_numpy
from bench.peers.python import ValuesOnly
from bench.workload import Program


class Numba(ValuesOnly):
    """`numba.njit`."""

    def load(self) -> str:
        import math

        import numba
        import numpy as np

        self.njit = numba.njit
        common = like_numpy(np)
        names = "sigmoid", "rows", "take", "numbers", "lower"
        self.library = SimpleNamespace(
            sin=math.sin,
            exp=math.exp,
            sqrt=math.sqrt,
            tanh=np.tanh,
            sum=np.sum,
            maximum=max,
            minimum=min,
            stop_gradient=numba.njit(lambda x: x),
            **common | {name: numba.njit(common[name]) for name in names} | {"helper": numba.njit},
        )
        return str(numba.__version__)

    def compiled(self, program: Program) -> Program:
        made: Program = self.njit(program)
        return made
