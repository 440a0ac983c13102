"""What a kernel of the suite is: a plain NumPy function, and arguments to try it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Kernel:
    """A kernel of NPBench.

    Attributes:
        fun: as one would write it for NumPy.
        arguments: (random numbers, dtype) → its arguments, small.
        dtypes: what it is tried in.
        smooth: whether its results have a derivative to compare with.
    """

    fun: Callable[..., Any]
    arguments: Callable[[np.random.Generator, Any], Sequence[Any]]
    dtypes: tuple[str, ...] = ("f8",)
    smooth: bool = True

    def __str__(self) -> str:
        return self.fun.__name__

    def fresh(self, dtype: str) -> list[Any]:
        """Arguments of its own, always the same numbers."""
        return list(self.arguments(np.random.default_rng(54), np.dtype(dtype)))

    def compiled(self) -> Callable[..., Any]:
        """The kernel under one decorator."""
        import wend  # here, since `bench` runs the kernels where wend is not installed

        return wend.function(self.fun)


def run(fun: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """What a kernel returns, then the arguments as it leaves them: numbers and arrays, flat."""
    found = fun(*args)
    results = found if isinstance(found, tuple) else (found,)
    return [*(x for x in results if x is not None), *args]
