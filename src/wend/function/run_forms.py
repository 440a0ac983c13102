"""Runs the forms of a concrete function: on arrays, or as calls in the recording under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wend.backends.protocol import choose
from wend.base.errors import explain
from wend.function.host.host_function import HostRun
from wend.ir.graph import Graph
from wend.runtime.sequence import Sequence as Sequence_
from wend.tape.recorded_value import RecordedValue
from wend.trace.recording.recording import current

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction

_RECORDS = (Sequence_, HostRun)  # what a run keeps that is no array


def run_forward(
    concrete: ConcreteFunction,
    graph: Graph,
    arrays: Sequence[Any],
    backend: str,
    given: Sequence[Any] = (),
    *,
    keeps: bool = True,
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Run a graph of (what the function takes…, given…): the function's results, and the others.

    What the caller writes into arguments and value does not reach the others, which are what a
    backward form reads if the graph `keeps` that.
    """
    traced, count = concrete.traced, len(concrete.graph.results)
    recording = current()
    if recording is not None:
        node = traced.call_graph(recording, graph, arrays, given, backend)
        own = [recording.wrap(value) for value in node.results]
        return own, own[count:]
    execute = concrete.compiled.executable(backend, graph, shown=count if keeps else None)
    boundary = choose(backend).boundary
    arguments = boundary.copy([*traced.arguments(arrays, boundary), *map(boundary.receive, given)])
    with traced.running(arrays):
        results = execute(arguments)
    return boundary.copy(results[:count]), results[count:]


def run_linear(
    what: str,
    concrete: ConcreteFunction,
    graph: Graph,
    backend: str,
    kept: Sequence[Any],
    given: Sequence[Any],
) -> Sequence[Any]:
    """Run a linear graph on what was kept of a run of the function, and more.

    Args:
        what: what has kept it, for messages.
        concrete: the function.
        graph: what takes (kept…, given…).
        backend: what runs it.
        kept: what a run of a forward graph gave besides the function's results.
        given: cotangents or tangents.
    """
    recording = current()
    if recording is None:
        execute = concrete.compiled.executable(backend, graph)
        boundary = choose(backend).boundary
        arguments = [*kept, *map(boundary.receive, given)]
        return boundary.own(execute(arguments), arguments)
    if not recording.runs_now() and any(isinstance(x, _RECORDS) for x in kept):
        raise NotImplementedError(
            explain(
                f"what {what}, run outside a trace, has kept are the records of a "
                "loop or of a host call, which cannot enter a trace.",
                cure="differentiate inside the traced function.",
            )
        )
    values = [
        RecordedValue(param.type, x, recording) if isinstance(x, _RECORDS) else recording.lift(x)
        for param, x in zip(graph.params, (*kept, *given), strict=True)
    ]
    return [recording.wrap(value) for value in recording.call(graph, values, backend).results]
