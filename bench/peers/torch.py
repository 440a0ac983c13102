"""PyTorch: operation by operation, and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.peers.torch_arrays import functions
from bench.workload import VALUE, Program, Workload


class Torch(Peer):
    """Python's own control flow, with every operation recorded as it runs."""

    def load(self) -> str:
        import torch

        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        self.torch = torch
        self.library = SimpleNamespace(
            sin=torch.sin,
            exp=torch.exp,
            sqrt=torch.sqrt,
            tanh=torch.tanh,
            sum=torch.sum,
            where=torch.where,
            maximum=lambda x, y: torch.clamp(x, min=y),
            minimum=lambda x, y: torch.clamp(x, max=y),
            stop_gradient=lambda x: x.detach(),
            **functions(torch),
        )
        return str(torch.__version__)

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        as_tensor, double = self.torch.as_tensor, self.torch.float64
        return tuple(as_tensor(v, dtype=None if hasattr(v, "dtype") else double) for v in values)

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        if workload.plain is None:
            return None
        program = workload.plain(self.library)
        return program if measure == VALUE else self.gradient(program, workload.differentiable)

    def gradient(self, program: Program, indices: Sequence[int]) -> Program:
        grad = self.torch.autograd.grad

        def value_and_gradient(*arguments: Any) -> Any:
            given = list(arguments)
            leaves = [arguments[index].detach().requires_grad_() for index in indices]
            for index, leaf in zip(indices, leaves, strict=True):
                given[index] = leaf
            value = program(*given)
            return value.detach(), grad(value, leaves)

        return value_and_gradient


class TorchCompiled(Torch):
    """`torch.compile` of a program with torch's while_loop."""

    def load(self) -> str:
        version = super().load()
        from torch._higher_order_ops.while_loop import while_loop

        def loop(cond: Any, body: Any, carry: Any, limit: int) -> Any:
            return while_loop(cond, body, tuple(carry))

        self.library.while_loop = loop
        return version

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        if workload.functional is None:
            return None
        program: Program = self.torch.compile(workload.functional(self.library), fullgraph=True)
        return program if measure == VALUE else self.gradient(program, workload.differentiable)


class TorchNN(Torch):
    """Layers of `torch.nn`, where a workload is one."""

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> None:
        return None
