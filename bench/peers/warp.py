"""NVIDIA Warp on the processor: kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.workload import Program, Workload


class Warp(Peer):
    """Runs only what workloads write for it."""

    def load(self) -> str:
        import warp as wp

        wp.config.quiet = True
        self.folder = tempfile.TemporaryDirectory()
        wp.config.kernel_cache_dir = self.folder.name  # a first call is one that has to compile
        wp.init()
        self.library = wp
        return str(wp.__version__)

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        wp = self.library
        return tuple(
            wp.array(np.atleast_1d(value), dtype=wp.float64, device="cpu", requires_grad=True)
            for value in values
        )

    def program(self, workload: Workload, measure: str, arguments: Sequence[Any]) -> Program | None:
        return None

    def numbers(self, result: Any) -> list[float]:
        if isinstance(result, self.library.array):
            result = result.numpy()
        return super().numbers(result)
