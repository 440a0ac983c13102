"""Native code that LLVM leaves as we write it: a third of the time, and the same meaning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import binding

from wend.backends.native import backend
from wend.backends.native.llvm import Engine


class QuickEngine(Engine):
    """A compiler without optimizations."""

    def _machine(self) -> Any:
        return binding.Target.from_default_triple().create_target_machine(
            opt=0,
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            jit=True,
        )

    def optimized(self, text: str, level: int | None = None) -> Any:
        return super().optimized(text, 0)


quick_engine = cache(QuickEngine)


@contextmanager
def quickly() -> Iterator[None]:
    """Native code is made by the quick compiler."""
    usual = backend.engine
    backend.engine = quick_engine
    try:
        yield
    finally:
        backend.engine = usual
