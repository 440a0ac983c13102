"""The native backend: compiles graphs of scalars, with loops and branches, by LLVM."""

from __future__ import annotations

from wend.backends.native.executable import NativeExecutable
from wend.backends.native.llvm import engine
from wend.backends.native.program import ENTRY, write
from wend.backends.protocol import Backend, Executable
from wend.ir.graph import Graph


class NativeBackend:
    """Runs a graph as machine code."""

    name = "native"

    def compile(self, graph: Graph) -> Executable:
        program = write(graph)
        library = engine().compile(program.text, [ENTRY], program.constants)
        return NativeExecutable(graph.name, program, library)

    def text(self, graph: Graph) -> str:
        """The graph as LLVM IR, before LLVM's passes."""
        return write(graph).text

    def assembly(self, graph: Graph) -> str:
        """The graph as this machine's assembly."""
        return engine().assembly(write(graph).text)


BACKEND: Backend = NativeBackend()
