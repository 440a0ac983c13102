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
    usual, quick = backend.engine, quick_engine()
    # Made here: `cache` calls the function once for each of the threads that meet in it, and code
    # would call functions of an engine that is gone.
    backend.engine = lambda: quick
    try:
        yield
    finally:
        backend.engine = usual
