"""The native backend: compiles graphs by LLVM, or finds what an earlier process has compiled."""

from __future__ import annotations

from wend.backends.native.jit.llvm import Library, digest_of, engine
from wend.backends.native.jit.program_cache import find_program, keep_program, program_key
from wend.backends.native.program import ENTRY, Program
from wend.backends.native.run import threads
from wend.backends.native.run.executable import NativeExecutable
from wend.backends.protocol import Backend, Executable
from wend.base.config import settings
from wend.base.dump import dump_of
from wend.base.log import step, tell
from wend.ir.graph import Graph
from wend.ir.printer import to_text
from wend.passes.pipeline import LazyOptimized


class NativeBackend:
    """Runs a graph as machine code."""

    name = "native"

    def compile(self, graph: Graph) -> Executable:
        program, library = _compiled(graph)
        self._dump(graph, program.text)
        return _executable(graph.name, program, library)

    def compile_lazy(self, pending: LazyOptimized) -> Executable:
        given = pending.given
        key = None if settings().profile else program_key(pending, threads.wanted())
        if key is None:
            return self.compile(pending.optimized)
        kept = find_program(key)
        if kept is not None:
            program, digest = kept
            library = engine().find(digest, [ENTRY], program.constants, checked=_is_checked())
            if library is not None:
                tell("found", f"machine code of {given.name}")
                return _executable(given.name, program, library)
        program, library = _compiled(pending.optimized)
        keep_program(key, program, digest_of(program.text))
        return _executable(given.name, program, library)

    def _dump(self, graph: Graph, text: str) -> None:
        dump = dump_of(graph, graph.name)
        if dump is not None:
            from wend.backends.native.module import prepared

            dump.write("fusion", "wir", to_text(prepared(graph), sources=True))
            dump.write("module", "ll", text)
            dump.write("optimized", "ll", str(engine().optimized(text)))
            dump.write("assembly", "s", engine().assembly(text))

    def text(self, graph: Graph) -> str:
        """The graph as LLVM IR, before LLVM's passes."""
        return _written(graph).text

    def assembly(self, graph: Graph) -> str:
        """The graph as this machine's assembly."""
        return engine().assembly(_written(graph).text)


def _written(graph: Graph, *, is_measured: bool = False) -> Program:
    # All that writes code: 15 ms, which a process does not take that finds it on disk.
    from wend.backends.native.module import write

    return write(graph, is_measured=is_measured, threads=threads.wanted())


def _compiled(graph: Graph) -> tuple[Program, Library]:
    with step("native", graph.name) as tell_size:
        program = _written(graph, is_measured=settings().profile)
        constants = program.constants
        library = engine().compile(program.text, [ENTRY], constants, checked=_is_checked())
        tell_size(lambda: f"{program.text.count(chr(10))} lines of LLVM")
    return program, library


def _is_checked() -> bool:
    return settings().verify_memory


def _executable(name: str, program: Program, library: Library) -> Executable:
    """What runs a program, with what settings ask for around it."""
    if program.is_split:
        threads.start(threads.wanted())
    execute: Executable = NativeExecutable(name, program, library)
    if _is_checked():
        from wend.backends.native.run.memory_checks import (
            MemoryChecked,  # rarely wanted, as is the other
        )

        execute = MemoryChecked(name, execute)
    if program.measures is not None:
        from wend.backends.native.run.profiled import ProfiledExecutable

        execute = ProfiledExecutable(name, execute, program.measures, program.slow_nodes)
    return execute


BACKEND: Backend = NativeBackend()
