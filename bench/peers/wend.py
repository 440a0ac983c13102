"""wend: the native backend where it can, else the NumPy backend, which is then said."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.peers.arrays import like_numpy
from bench.workload import VALUE, Program, Refuses, Workload

BACKENDS = ("native", "numpy")


class Wend(Peer):
    """Programs with Python's own control flow over NumPy's functions."""

    def load(self) -> str:
        import wend

        self.wend = wend
        wend.config(cache_dir="")  # what was compiled by an earlier process is not found
        return wend.__version__

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses:
        import numpy as np

        from wend.base.errors import UnsupportedError

        self.library = SimpleNamespace(
            sin=np.sin,
            exp=np.exp,
            sqrt=np.sqrt,
            tanh=np.tanh,
            sum=np.sum,
            maximum=np.maximum,
            minimum=np.minimum,
            stop_gradient=self.wend.stop_gradient,
            **like_numpy(np),
        )
        why = ""
        for backend in BACKENDS:
            fun = self._on(backend, workload, measure)
            program: Program = fun
            try:
                # Compiled, not run: the first call is measured.
                fun.get_concrete_function(*arguments).compiled.executable(backend)
            except UnsupportedError as error:
                why = str(error).splitlines()[0]
            else:
                self.note = "" if backend == BACKENDS[0] else f"on the {backend} backend ({why})"
                return program
        return Refuses(why)

    def compiled(self, program: Program) -> Program:
        """What runs a program."""
        made: Program = self.wend.function(program, backend=BACKENDS[0])
        return made

    def _on(self, backend: str, workload: Workload, measure: str) -> Any:
        assert workload.plain is not None
        value = self.wend.function(workload.plain(self.library), backend=backend)
        if measure == VALUE:
            return value
        return self.wend.value_and_grad(value, argnums=workload.differentiable)
