"""The NumPy backend: the definition of what a graph means, and the oracle of the other backends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from wend.backends.numpy.program import Observer, Program, write
from wend.backends.numpy.timing import Timed
from wend.backends.protocol import Executable
from wend.base.config import settings
from wend.base.dump import dump_of
from wend.base.log import step
from wend.base.source import at
from wend.ir.graph import Graph
from wend.runtime.array_boundary import HOST, ArrayBoundary

_numbers = itertools.count()


class NumpyExecutable:
    """A graph as a Python function."""

    def __init__(self, run: Callable[..., Any], program: Program, file: str) -> None:
        self._run, self._program, self._file = run, program, file

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            # A compiled function computes inf and NaN without warnings.
            with np.errstate(all="ignore"):
                results: Sequence[Any] = self._run(*arguments)
                return results
        except Exception as error:
            _tell_where(error, self._program, self._file)
            raise


class NumpyBackend:
    """Runs a graph by NumPy kernels."""

    name = "numpy"
    boundary: ArrayBoundary = HOST

    def compile(self, graph: Graph) -> Executable:
        return Timed(graph, self.watched) if settings().profile else self.watched(graph, None)

    def watched(self, graph: Graph, watch: Observer | None) -> Executable:
        """Compile a graph so that a watch is shown all that runs of it."""
        program, function = write(graph, watch)
        text = "\n".join(program.lines)
        dump = dump_of(graph, graph.name)
        if dump is not None:
            dump.write("program", "py", text)
        file = f"<wend graph {next(_numbers)}>"
        scope = dict(program.names)
        with step("numpy", graph.name) as tell:
            exec(compile(text, file, "exec"), scope)
            tell(lambda: f"{len(program.lines)} lines")
        return NumpyExecutable(scope[function], program, file)


def _tell_where(error: Exception, program: Program, file: str) -> None:
    """Add the user's line to an error that a kernel raised."""
    trace: TracebackType | None = error.__traceback__
    node = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            node = program.nodes.get(trace.tb_lineno, node)
        trace = trace.tb_next
    if node is not None and node.source is not None:
        error.add_note(f"in {node.op.name}{at(node.source)}")


BACKEND = NumpyBackend()
