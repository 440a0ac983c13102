"""The base of executables that act before or after another one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from wend.backends.fastcall import CallSignature, FastCall
from wend.backends.protocol import Executable, Explains, FastCallable, FusedLoop, HoldsMemory
from wend.ir.graph import Node


class ExecutableWrapper(Explains, HoldsMemory):
    """An executable that forwards the explanations of another one.

    It is not fast-callable: its work is done in Python.
    """

    def __init__(self, execute: Executable) -> None:
        self._execute = execute

    @property
    def host_nodes(self) -> Sequence[Node]:
        return self._execute.host_nodes if isinstance(self._execute, Explains) else ()

    @property
    def fused_loops(self) -> Sequence[FusedLoop]:
        return self._execute.fused_loops if isinstance(self._execute, Explains) else ()

    @property
    def remarks(self) -> Sequence[str]:
        return self._execute.remarks if isinstance(self._execute, Explains) else ()

    def held_memory(self) -> Mapping[str, int]:
        return self._execute.held_memory() if isinstance(self._execute, HoldsMemory) else {}

    def peak_memory(self) -> int:
        return self._execute.peak_memory() if isinstance(self._execute, HoldsMemory) else 0


class FastExecutableWrapper(ExecutableWrapper, FastCallable):
    """An executable that acts around the fast calls of another one, too."""

    def repays_fast_calls(self, calls: int) -> bool:
        """Return whether a fast call of what it wraps is worth its setup."""
        return isinstance(self._execute, FastCallable) and self._execute.repays_fast_calls(calls)

    def fast_call(self, signature: CallSignature) -> FastCall | None:
        """Return a fast call around that of what it wraps, if there is one."""
        if not isinstance(self._execute, FastCallable):
            return None
        fast = self._execute.fast_call(signature)
        return None if fast is None else self._around(fast, signature)

    @abstractmethod
    def _around(self, fast_call: FastCall, signature: CallSignature) -> FastCall:
        """Return a fast call around another one."""
