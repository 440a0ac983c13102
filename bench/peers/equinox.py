"""Equinox's while loops, which have reverse mode: bounded, or with checkpoints."""

from __future__ import annotations

from typing import Any

from bench.peers.jax import Jax
from bench.workload import Program


class Equinox(Jax):
    """`equinox.internal.while_loop` of a kind."""

    refusal = ""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def load(self) -> str:
        super().load()
        import equinox

        return str(equinox.__version__)

    def loop(self) -> Program:
        import equinox.internal as eqxi

        def while_loop(cond: Any, body: Any, carry: Any, limit: int) -> Any:
            return eqxi.while_loop(
                lambda c: cond(*c), lambda c: body(*c), carry, max_steps=limit, kind=self.kind
            )

        return while_loop
