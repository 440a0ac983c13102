"""Executables that do something before or after another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.fastcall import Direct, Form
from wend.backends.protocol import Executable, Fused
from wend.ir.graph import Node


class Around:
    """Says what another executable says of itself, but that Python has to call it."""

    def __init__(self, execute: Executable) -> None:
        self._execute = execute

    @property
    def host_nodes(self) -> Sequence[Node]:
        """Nodes for which compiled code calls Python."""
        return self._execute.host_nodes

    @property
    def fused(self) -> Sequence[Fused]:
        """What compiled code does in one loop over memory each."""
        return self._execute.fused

    def kept_memory(self) -> Mapping[str, int]:
        """The bytes that wait for the next call, by what they are for."""
        return self._execute.kept_memory()

    def direct(self, form: Form) -> Direct | None:
        """Nothing: Python has something to do in each call."""
        return None
