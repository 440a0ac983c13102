"""wend: the native backend where it can, else the NumPy backend, which is then said; or JAX's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.peers.arrays import like_numpy
from bench.workload import VALUE, Program, Refuses, Workload


class Wend(Peer):
    """Programs with Python's own control flow over NumPy's functions."""

    backends: tuple[str, ...] = ("native", "numpy")

    def load(self) -> str:
        import wend

        self.wend = wend
        # Unless it is asked for, what was compiled by an earlier process is not found
        wend.config(cache_dir=os.environ.get("BENCH_CACHE", ""))
        return wend.__version__

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
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
        for backend in self.backends:
            fun = self._on(backend, workload, measure)
            program: Program = fun
            try:
                # Compiled, not run: the first call is measured.
                fun.get_concrete_function(*arguments).compiled.executable(backend)
            except UnsupportedError as error:
                why = str(error).splitlines()[0]
            else:
                self.note = (
                    "" if backend == self.backends[0] else f"on the {backend} backend ({why})"
                )
                return program
        return Refuses(why)

    def compiled(self, program: Program) -> Program:
        """What runs a program."""
        made: Program = self.wend.function(program, backend=self.backends[0])
        return made

    def _on(self, backend: str, workload: Workload, measure: str) -> Any:
        assert workload.plain is not None
        value = self.wend.function(workload.plain(self.library), backend=backend)
        if measure == VALUE:
            return value
        return self.wend.value_and_grad(value, argnums=workload.differentiable)


class OneLoop(Wend):
    """A `vmap` whose elements are computed one after the other, where a workload is one."""

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        return None


class WendOnJax(Wend):
    """The same programs, compiled by XLA."""

    backends = ("jax",)

    def load(self) -> str:
        import jax

        jax.config.update("jax_cpu_enable_async_dispatch", False)  # one thread
        jax.config.update("jax_enable_x64", True)
        if cache := os.environ.get("BENCH_CACHE"):
            jax.config.update("jax_compilation_cache_dir", cache)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        return f"{super().load()}, JAX {jax.__version__}"

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        import jax.numpy as jnp

        return tuple(jnp.asarray(value, getattr(value, "dtype", jnp.float64)) for value in values)

    def finish(self, result: Any) -> None:
        import jax

        jax.block_until_ready(result)
