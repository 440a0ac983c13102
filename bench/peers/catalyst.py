"""PennyLane Catalyst: plain Python, captured by AutoGraph, differentiated by Enzyme."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.workload import VALUE, Program, Workload


class Catalyst(Peer):
    """`catalyst.qjit(autograph=True)`, for programs without a quantum device."""

    def load(self) -> str:
        import catalyst
        import jax.numpy as jnp

        self.catalyst = catalyst
        self.library = SimpleNamespace(
            sin=jnp.sin,
            exp=jnp.exp,
            sqrt=jnp.sqrt,
            tanh=jnp.tanh,
            sum=jnp.sum,
            maximum=jnp.maximum,
            minimum=jnp.minimum,
            stop_gradient=lambda x: x,  # it has none inside a loop
            helper=lambda function: function,
        )
        return str(catalyst.__version__)

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        if workload.plain is None:
            return None
        program = workload.plain(self.library)
        if measure != VALUE:
            value, transform = program, self.catalyst.value_and_grad

            def program(*given: Any) -> Any:
                return transform(value, argnums=workload.differentiable)(*given)

        compiled: Program = self.catalyst.qjit(program, autograph=True)
        return compiled
