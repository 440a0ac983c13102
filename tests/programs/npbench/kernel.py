"""What a kernel of the suite is: a plain NumPy function, and arguments to try it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import wend


@dataclass(frozen=True)
class Kernel:
    """A kernel of NPBench.

    Attributes:
        fun: as one would write it for NumPy.
        arguments: (random numbers, dtype) → its arguments, small.
        dtypes: what it is tried in.
        decorator: how it is compiled: one decorator.
        remark: what its row of docs/npbench.md says beside the status.
        of: the positions of arguments for which a gradient is checked, and
        scalar: what is differentiated: (*arguments) → a number; the arguments may be changed.
    """

    fun: Callable[..., Any]
    arguments: Callable[[np.random.Generator, Any], Sequence[Any]]
    dtypes: tuple[str, ...] = ("f8",)
    static: tuple[str, ...] = ()
    remark: str = ""
    name: str = field(default="")

    def __str__(self) -> str:
        return self.name or self.fun.__name__

    def fresh(self, dtype: str) -> list[Any]:
        """Arguments of its own, always the same numbers."""
        return list(self.arguments(np.random.default_rng(54), np.dtype(dtype)))

    def compiled(self) -> Callable[..., Any]:
        """The kernel under one decorator."""
        return wend.function(static_argnames=self.static)(self.fun)
