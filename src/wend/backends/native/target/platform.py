"""The platform that code is generated for: this process, or another program on some processor.

In this process code may call Python, NumPy and SciPy by address, and use all instructions of the
processor. Code of an object file calls nothing but the C library, and BLAS where that is allowed.
"""

from __future__ import annotations

import platform as python_platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from wend.backends.native.target import host_cpu
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Platform:
    """The assumptions that generated code may make.

    Attributes:
        triple: LLVM's name of the machine and its system; empty for this machine.
        cpu: LLVM's name of the processor.
        features: the instruction set extensions that it has.
        is_process: whether the code runs in this process.
        has_blas: whether another program has BLAS and LAPACK.
    """

    triple: str
    cpu: str
    features: frozenset[str]
    is_process: bool
    has_blas: bool = True

    def has(self, *features: str) -> bool:
        """Return whether the processor has these extensions."""
        return self.features.issuperset(features)

    @property
    def is_x86(self) -> bool:
        machine = self.triple.partition("-")[0] or python_platform.machine().lower()
        return machine in ("x86_64", "amd64")


@cache
def this_process() -> Platform:
    """Return the platform of code that runs in this process."""
    return Platform("", host_cpu.name(), host_features(), True)


@cache
def host_features() -> frozenset[str]:
    """Return the instruction set extensions of this machine."""
    return frozenset(name for name, is_on in host_cpu.features().items() if is_on)


_other: ContextVar[Platform | None] = ContextVar("platform", default=None)


def platform() -> Platform:
    """Return the platform that code is generated for."""
    return _other.get() or this_process()


@contextmanager
def generating_for(other: Platform) -> Iterator[None]:
    """Generate code for another platform in this block, and in this thread."""
    token = _other.set(other)
    try:
        yield
    finally:
        _other.reset(token)
