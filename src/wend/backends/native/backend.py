"""The native backend: compiles graphs of scalars, with loops and branches, by LLVM."""

from __future__ import annotations

from wend.backends.native import threads
from wend.backends.native.checked import Checked
from wend.backends.native.executable import NativeExecutable
from wend.backends.native.llvm import engine
from wend.backends.native.measured import Measured
from wend.backends.native.program import ENTRY, prepared, write
from wend.backends.protocol import Backend, Executable
from wend.base.config import settings
from wend.base.dump import dump_of
from wend.base.log import step
from wend.ir.graph import Graph
from wend.ir.printer import to_text


class NativeBackend:
    """Runs a graph as machine code."""

    name = "native"

    def compile(self, graph: Graph) -> Executable:
        with step("native", graph.name) as tell:
            program = write(graph, is_measured=settings().profile, threads=threads.wanted())
            checked = settings().verify_memory
            constants = program.constants
            library = engine().compile(program.text, [ENTRY], constants, checked=checked)
            if program.is_split:
                threads.start(threads.wanted())
            tell(lambda: f"{program.text.count(chr(10))} lines of LLVM")
        self._dump(graph, program.text)
        execute: Executable = NativeExecutable(graph.name, program, library)
        if checked:
            execute = Checked(graph.name, execute)
        if program.measures is not None:
            execute = Measured(graph.name, execute, program.measures, program.slow_nodes)
        return execute

    def _dump(self, graph: Graph, text: str) -> None:
        dump = dump_of(graph, graph.name)
        if dump is not None:
            dump.write("nests", "wir", to_text(prepared(graph), sources=True))
            dump.write("module", "ll", text)
            dump.write("optimized", "ll", str(engine().optimized(text)))
            dump.write("assembly", "s", engine().assembly(text))

    def text(self, graph: Graph) -> str:
        """The graph as LLVM IR, before LLVM's passes."""
        return write(graph, threads=threads.wanted()).text

    def assembly(self, graph: Graph) -> str:
        """The graph as this machine's assembly."""
        return engine().assembly(write(graph, threads=threads.wanted()).text)


BACKEND: Backend = NativeBackend()
