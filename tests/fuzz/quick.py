"""Native code that LLVM leaves as we write it: a third of the time, and the same meaning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from wend.backends.native import backend
from wend.backends.native.jit.llvm import Engine


class QuickEngine(Engine):
    """A compiler without optimizations."""

    effort = 0
    level = 0


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
