"""The native backend: compiles graphs with LLVM, or loads what an earlier process compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.backends.fastcall import GuardCheck
from wend.backends.native.jit.llvm import Library, digest_of, engine
from wend.backends.native.jit.program_cache import find_program, keep_program, program_key
from wend.backends.native.program import ENTRY, Program
from wend.backends.native.run import threads
from wend.backends.native.run.entry import guard_checker
from wend.backends.native.run.executable import NativeExecutable
from wend.backends.protocol import (
    Backend,
    ChecksGuards,
    ChoosesPasses,
    Executable,
    LazyCompiler,
)
from wend.base.config import settings
from wend.base.reporting.dump import dump_of
from wend.base.reporting.log import step, tell
from wend.ir.graph import Graph
from wend.ir.printer import to_text
from wend.ops.effects import host_action
from wend.ops.parallel_map import parallel_map
from wend.passes.pipeline import LazyOptimized, Transform, optimize_in_chunks
from wend.runtime.array_boundary import HOST, ArrayBoundary


class NativeBackend(LazyCompiler, ChecksGuards, ChoosesPasses):
    """The backend that runs graphs as machine code."""

    name = "native"
    boundary: ArrayBoundary = HOST

    def compile(self, graph: Graph) -> Executable:
        program, library = _compile(graph)
        self._dump(graph, program.text)
        return _make_executable(graph, program, library)

    def compile_lazy(self, pending: LazyOptimized) -> Executable:
        graph = pending.graph
        key = None if settings().profile else program_key(pending, threads.thread_count())
        if key is None:
            return self.compile(pending.optimized)
        cached = find_program(key)
        if cached is not None:
            program, digest = cached
            library = engine().find(digest, [ENTRY], program.constants, checked=_checks_memory())
            if library is not None:
                tell("found", f"machine code of {graph.name}")
                return _make_executable(graph, program, library)
        program, library = _compile(pending.optimized)
        keep_program(key, program, digest_of(program.text))
        return _make_executable(graph, program, library)

    def guard_checker(self, checks: Sequence[GuardCheck]) -> Callable[[], bool]:
        return guard_checker(checks)

    def passes(self) -> Sequence[Transform]:
        return optimize_in_chunks((split_maps,))

    def _dump(self, graph: Graph, text: str) -> None:
        dump = dump_of(graph, graph.name)
        if dump is not None:
            from wend.backends.native.module import prepare_for_emission
            from wend.backends.native.target.chunk_call import detach_maps

            detached = detach_maps(graph)
            parts = [detached.graph, *(p.body for p in detached.maps)]
            texts = [to_text(prepare_for_emission(part), sources=True) for part in parts]
            dump.write("fusion", "wir", "\n".join(texts))
            dump.write("module", "ll", text)
            dump.write("optimized", "ll", str(engine().optimized(text)))
            dump.write("assembly", "s", engine().assembly(text))

    def text(self, graph: Graph) -> str:
        """Return the graph as LLVM IR, before LLVM's passes."""
        return _generate(graph).text

    def assembly(self, graph: Graph) -> str:
        """Return the graph as assembly for this machine."""
        return engine().assembly(_generate(graph).text)


def split_maps(graph: Graph) -> Graph:
    """Split the small arrays of maps that then run in lanes."""
    if parallel_map not in graph.ops:
        return graph
    from wend.backends.native.scalarize import maps  # imported late, as the code generator is

    return maps.split_arrays_of_maps(graph)


def _generate(graph: Graph, *, is_measured: bool = False) -> Program:
    # Importing the code generator takes 15 ms; a process that finds its programs on disk skips it.
    from wend.backends.native.module import write

    return write(graph, is_measured=is_measured, threads=threads.thread_count())


def _compile(graph: Graph) -> tuple[Program, Library]:
    with step("native", graph.name) as tell_size:
        program = _generate(graph, is_measured=settings().profile)
        constants = program.constants
        library = engine().compile(program.text, [ENTRY], constants, checked=_checks_memory())
        tell_size(lambda: f"{program.text.count(chr(10))} lines of LLVM")
    return program, library


def _checks_memory() -> bool:
    return settings().verify_memory


def _make_executable(graph: Graph, program: Program, library: Library) -> Executable:
    """Return the executable of a program, with the wrappers that the settings ask for."""
    if program.is_split:
        threads.start(threads.thread_count())
    name = graph.name
    execute: Executable = NativeExecutable(name, program, library, _locks_of(graph))
    if _checks_memory():
        # Imported late: rarely used, like the one below
        from wend.backends.native.run.memory_checks import MemoryChecked

        execute = MemoryChecked(name, execute)
    if program.measures is not None:
        from wend.backends.native.run.profiled import ProfiledExecutable

        execute = ProfiledExecutable(name, execute, program.measures, program.slow_nodes)
    return execute


def _locks_of(graph: Graph) -> Sequence[Any]:
    """Return the locks of the generators from which native code draws, in one order for all."""
    if host_action not in graph.ops:
        return ()
    draws = (x.attrs["action"].draw for x in graph.walk() if x.op is host_action)
    locks = {id(draw.lock): draw.lock for draw in draws if draw is not None and draw.lock}
    return [locks[key] for key in sorted(locks)]


BACKEND: Backend = NativeBackend()
