"""CasADi: expression graphs, rootfinders and integrators; no loop whose trips depend on data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.peer import Peer
from bench.workload import Program, Workload


class CasADi(Peer):
    """Runs only what workloads write for it."""

    def load(self) -> str:
        import casadi

        self.library = casadi
        return str(casadi.__version__)

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        return None

    def numbers(self, result: Any) -> list[float]:
        if isinstance(result, self.library.DM):
            result = result.full()
        return super().numbers(result)
