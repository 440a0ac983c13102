"""Executables that do something before or after another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.fastcall import CallSignature, FastCall
from wend.backends.protocol import Executable, FusedLoop
from wend.ir.graph import Node


class ExecutableWrapper:
    """Says what another executable says of itself, but that Python has to call it."""

    def __init__(self, execute: Executable) -> None:
        self._execute = execute

    @property
    def host_nodes(self) -> Sequence[Node]:
        """Nodes for which compiled code calls Python."""
        return self._execute.host_nodes

    @property
    def fused_loops(self) -> Sequence[FusedLoop]:
        """What compiled code does in one loop over memory each."""
        return self._execute.fused_loops

    def held_memory(self) -> Mapping[str, int]:
        """The bytes that wait for the next call, by what they are for."""
        return self._execute.held_memory()

    def fast_call(self, form: CallSignature) -> FastCall | None:
        """Nothing: Python has something to do in each call."""
        return None
