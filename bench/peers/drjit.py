"""Dr.Jit: a lane of its LLVM backend. It needs the system's LLVM library."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench.peer import Peer
from bench.workload import VALUE, Program, Workload


class DrJit(Peer):
    """Symbolic loops, with a bound on their trips so that they can be differentiated."""

    def load(self) -> str:
        # Kernels are kept there from run to run, but a first call is one that has to compile.
        self.home = tempfile.TemporaryDirectory()
        os.environ["HOME"] = self.home.name

        import drjit as dr
        from drjit.llvm.ad import Float64

        dr.set_thread_count(1)
        self.dr, self.number = dr, Float64

        def while_loop(cond: Any, body: Any, carry: Any, limit: int) -> Any:
            return dr.while_loop(tuple(carry), cond, body, max_iterations=limit)

        self.library = SimpleNamespace(
            sin=dr.sin,
            exp=dr.exp,
            sqrt=dr.sqrt,
            tanh=dr.tanh,
            sum=dr.sum,
            where=dr.select,
            maximum=dr.maximum,
            minimum=dr.minimum,
            stop_gradient=dr.detach,
            while_loop=while_loop,
        )
        return str(dr.__version__)

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        arrays = tuple(self.number(value) for value in values)
        self.dr.make_opaque(arrays)  # or numbers would be constants of the program
        return arrays

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        if workload.functional is None:
            return None
        program, dr = workload.functional(self.library), self.dr

        def value(*given: Any) -> Any:
            result = program(*given)
            dr.eval(result)
            dr.sync_thread()
            return result

        def gradient(*given: Any) -> Any:
            given = tuple(self.number(x) for x in given)  # whose gradients start from zero
            leaves = [given[index] for index in workload.differentiable]
            dr.enable_grad(leaves)
            result = program(*given)
            dr.backward(result)
            results = [result, *(dr.grad(leaf) for leaf in leaves)]
            dr.eval(results)
            dr.sync_thread()
            return results

        return value if measure == VALUE else gradient

    def numbers(self, result: Any) -> list[float]:
        if isinstance(result, self.number):
            return super().numbers(self.dr.detach(result).numpy())
        return super().numbers(result)
