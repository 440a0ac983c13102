"""JAX: its own while_loop, and one with a tape by hand; diffrax, which runs on it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.peers.arrays import below, like_numpy
from bench.workload import GRADIENT, VALUE, Program, Refuses, Workload


def library(while_loop: Program) -> SimpleNamespace:
    """Return JAX's functions, with this loop."""
    import jax
    import jax.numpy as jnp

    def lower(entries: Any, size: int) -> Any:
        rows, columns = below(size)
        return jnp.zeros((entries.shape[0], size, size)).at[:, rows, columns].set(entries)

    return SimpleNamespace(
        sin=jnp.sin,
        exp=jnp.exp,
        sqrt=jnp.sqrt,
        tanh=jnp.tanh,
        sum=jnp.sum,
        where=jnp.where,
        maximum=jnp.maximum,
        minimum=jnp.minimum,
        stop_gradient=jax.lax.stop_gradient,
        scan=jax.lax.scan,
        vmap=jax.vmap,
        **like_numpy(jnp, sigmoid=jax.nn.sigmoid, lower=lower),
        while_loop=while_loop,
    )


class Jax(Peer):
    """`jax.lax.while_loop`, which has no reverse mode."""

    refusal = "reverse mode through while_loop"

    def load(self) -> str:
        import jax

        jax.config.update("jax_cpu_enable_async_dispatch", False)  # one thread
        self.jax = jax
        self.library = library(self.loop())
        return str(jax.__version__)

    def loop(self) -> Program:
        lax = self.jax.lax

        def while_loop(cond: Any, body: Any, carry: Any, limit: int) -> Any:
            return lax.while_loop(lambda c: cond(*c), lambda c: body(*c), carry)

        return while_loop

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        import jax.numpy as jnp

        return tuple(jnp.asarray(value, getattr(value, "dtype", jnp.float64)) for value in values)

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        if workload.functional is None:
            return None
        program = workload.functional(self.library)
        if measure == VALUE:
            value: Program = self.jax.jit(program)
            return value
        gradient = self.jax.jit(self.jax.value_and_grad(program, workload.differentiable))
        return Refuses(self.refusal, gradient) if self.refusal else gradient

    def finish(self, result: Any) -> None:
        self.jax.block_until_ready(result)


class JaxTape(Jax):
    """A loop that records its carries in arrays of a given size, and one that reads them back."""

    refusal = ""

    def loop(self) -> Program:
        from bench.peers.jax_tape import while_loop

        return while_loop

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        if measure != GRADIENT:
            return None
        return super().program(workload, measure, arguments)


class JaxScan(Jax):
    """`jax.lax.scan` over as many trips as are known to be made, where a workload is written so."""

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        return None


class Diffrax(Jax):
    """Solves differential equations, and nothing else."""

    def load(self) -> str:
        super().load()
        import diffrax

        return str(diffrax.__version__)

    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        return None
