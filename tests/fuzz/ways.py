"""The ways in which wend runs a program. What is traced and compiled serves all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wend
from tests.fuzz.outcome import outcome
from tests.fuzz.program import Program

WAYS: dict[str, dict[str, Any]] = {
    "eager": {"eager": True},
    "interpreter": {"backend": "numpy", "strict": True},
    "strict": {"backend": "native", "strict": True, "verify_memory": True},
    "native": {"backend": "native"},
}


class Ways:
    """A program that is run in several ways; each has the variables to itself.

    Attributes:
        fun: the program's function, as Python.
        function: the same as a `wend.function`.
    """

    def __init__(self, program: Program) -> None:
        self.fun, self._variables = program.staged()
        self.function = wend.function(self.fun)
        self._start = [np.array(v.value) for v in self._variables]
        self._held = dict.fromkeys(WAYS, self._start)

    def restart(self) -> None:
        """Let variables be what they were at first."""
        self._held = dict.fromkeys(WAYS, self._start)

    def run(self, way: str, fun: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The outcome of a call in one of the ways."""
        for variable, value in zip(self._variables, self._held[way], strict=True):
            variable.assign(value)
        with wend.config(**WAYS[way]):
            found = outcome(fun, self._variables, args)
        self._held[way] = [np.array(v.value) for v in self._variables]
        return found
