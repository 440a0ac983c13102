"""The NumPy backend: the reference semantics of graphs, and the oracle of other backends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from wend.backends.numpy.program import Observer, PythonProgram, write
from wend.backends.numpy.timing import Timed
from wend.backends.protocol import Executable
from wend.base.config import settings
from wend.base.reporting.dump import dump_of
from wend.base.reporting.log import step
from wend.ir.graph import Graph, Node
from wend.ops.effects import error_note
from wend.ops.frame_states import chain_of, contents_of
from wend.runtime.array_boundary import HOST, ArrayBoundary
from wend.runtime.partial_writes import attach_contents

_program_numbers = itertools.count()


class NumpyExecutable:
    """A graph compiled to a Python function."""

    def __init__(self, run: Callable[..., Any], program: PythonProgram, file: str) -> None:
        self._run, self._program, self._file = run, program, file

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            # A compiled function computes inf and NaN without warnings.
            with np.errstate(all="ignore"):
                results: Sequence[Any] = self._run(*arguments)
                return results
        except BaseException as error:
            _add_source_note(error, self._program, self._file)
            _attach_contents(error, self._program, self._file)
            raise


class NumpyBackend:
    """Runs graphs by NumPy kernels."""

    name = "numpy"
    boundary: ArrayBoundary = HOST

    def compile(self, graph: Graph) -> Executable:
        return (
            Timed(graph, self.compile_observed)
            if settings().profile
            else self.compile_observed(graph, None)
        )

    def compile_observed(self, graph: Graph, observer: Observer | None) -> Executable:
        """Compile a graph whose runs are reported to an observer."""
        program, function = write(graph, observer)
        text = "\n".join(program.lines)
        dump = dump_of(graph, graph.name)
        if dump is not None:
            dump.write("program", "py", text)
        file = f"<wend graph {next(_program_numbers)}>"
        scope = dict(program.names)
        with step("numpy", graph.name) as report:
            exec(compile(text, file, "exec"), scope)
            report(lambda: f"{len(program.lines)} lines")
        return NumpyExecutable(scope[function], program, file)


def _add_source_note(error: BaseException, program: PythonProgram, file: str) -> None:
    """Add the user's line to an error raised by a kernel."""
    trace: TracebackType | None = error.__traceback__
    node = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            node = program.nodes.get(trace.tb_lineno, node)
        trace = trace.tb_next
    if node is not None and node.source is not None:
        error.add_note(error_note(node))


def _attach_contents(error: BaseException, program: PythonProgram, file: str) -> None:
    """Attach the contents of changed arguments that the innermost frame state tells."""
    trace: TracebackType | None = error.__traceback__
    contents: Mapping[int, Any] = {}
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename == file:
            scope = {**frame.f_globals, **frame.f_locals}
            for line in range(trace.tb_lineno, frame.f_code.co_firstlineno, -1):
                if line in program.states:
                    with suppress(KeyError):  # interrupted where a name is bound or deleted
                        contents = _contents_of(program, *program.states[line], scope)
                        break
        trace = trace.tb_next
    if contents:
        attach_contents(error, contents)


def _contents_of(
    program: PythonProgram, state: Node, names: Sequence[str], scope: Mapping[str, Any]
) -> Mapping[int, Any]:
    """Return what a frame state, whose contents have these names, and those before it hold."""
    names_of = {**program.contents, state: names}
    return contents_of((x, partial(_variable, scope, names_of[x])) for x in chain_of(state))


def _variable(scope: Mapping[str, Any], names: Sequence[str], position: int) -> Any:
    return scope[names[position]]


BACKEND = NumpyBackend()
