"""The base of executables that act before or after another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.protocol import Executable, Explains, FusedLoop, HoldsMemory
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
