"""autograd: NumPy's functions, each recorded as it runs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.peers.arrays import like_numpy, places
from bench.workload import VALUE, Program, Workload


class Autograd(Peer):
    """Python's own control flow over `autograd.numpy`."""

    def load(self) -> str:
        import autograd
        import autograd.numpy as anp
        from autograd.tracer import getval

        def lower(entries: Any, size: int) -> Any:
            before = anp.zeros((entries.shape[0], 1))
            return anp.concatenate([before, entries], axis=1)[:, places(size)]

        self.value_and_grad = autograd.value_and_grad
        self.library = SimpleNamespace(
            sin=anp.sin,
            exp=anp.exp,
            sqrt=anp.sqrt,
            tanh=anp.tanh,
            sum=anp.sum,
            maximum=anp.maximum,
            minimum=anp.minimum,
            stop_gradient=getval,
            **like_numpy(anp, lower=lower),
        )
        return version("autograd")

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        if workload.plain is None:
            return None
        program = workload.plain(self.library)
        if measure == VALUE:
            return program
        gradient = self.value_and_grad(lambda leaves, rest: program(*leaves, *rest))
        count = len(workload.differentiable)
        assert workload.differentiable == tuple(range(count))
        return lambda *given: gradient(given[:count], given[count:])
