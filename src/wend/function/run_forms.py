"""Runs the graphs of a derivative: on arrays, or as calls in the current recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wend.base.errors import NotDifferentiableError, explain
from wend.base.refusals import refusal
from wend.function.host.host_function import HostRun
from wend.ir.graph import Graph
from wend.runtime.sequence import Sequence as Sequence_
from wend.tape.recorded_value import RecordedValue
from wend.trace.recording.recording import current

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction

_RECORD_TYPES = (Sequence_, HostRun)  # residuals that are not arrays


def refuse_written(what: str, concrete: ConcreteFunction) -> None:
    """Refuse a function that changes an argument in place.

    Raises:
        NotDifferentiableError: it does.
    """
    if concrete.traced.changes_containers:
        problem = f"{what}: it changes a list or dict of its arguments in place."
        raise NotDifferentiableError(explain(problem, cure="change a copy of it."))
    if concrete.traced.written:
        problem = f"{what}: it changes an argument in place."
        raise NotDifferentiableError(explain(problem, cure="change a copy of it: x = x.copy()."))


def run_forward(
    concrete: ConcreteFunction,
    graph: Graph,
    arrays: Sequence[Any],
    backend: str,
    tangents: Sequence[Any] = (),
    *,
    keeps_residuals: bool = True,
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Run a graph of the function's arguments and tangents; return its results and the residuals.

    Later writes by the caller to arguments or value do not reach the residuals, which a backward
    graph reads if the graph `keeps_residuals`.
    """
    traced, count = concrete.traced, len(concrete.graph.results)
    recording = current()
    if recording is not None:
        node = traced.call_graph(recording, graph, arrays, tangents, backend)
        wrapped = [recording.wrap(value) for value in node.results]
        return wrapped, wrapped[count:]
    shown = count if keeps_residuals else None
    run, boundary, _ = concrete.compiled.entry(backend, graph, shown=shown)
    arguments = boundary.copy(
        [*traced.arguments(arrays, boundary), *map(boundary.receive, tangents)]
    )
    with traced.run_context(arrays):
        results = run(arguments)
    return boundary.copy(results[:count]), results[count:]


def run_linear(
    what: str,
    concrete: ConcreteFunction,
    graph: Graph,
    backend: str,
    residuals: Sequence[Any],
    inputs: Sequence[Any],
) -> Sequence[Any]:
    """Run a linear graph on the residuals of a run of the function, and cotangents or tangents.

    `what` is the owner of the residuals, for messages.
    """
    recording = current()
    if recording is None:
        run, boundary, _ = concrete.compiled.entry(backend, graph)
        arguments = [*residuals, *map(boundary.receive, inputs)]
        return boundary.unshare(run(arguments), arguments)
    if not recording.runs_now() and any(isinstance(x, _RECORD_TYPES) for x in residuals):
        raise refusal(
            NotImplementedError(
                explain(
                    f"{what}, run outside a trace, has kept records of a loop or of a host call, "
                    "which cannot enter a trace.",
                    cure="differentiate inside the traced function.",
                )
            )
        )
    values = [
        RecordedValue(param.type, x, recording)
        if isinstance(x, _RECORD_TYPES)
        else recording.lift(x)
        for param, x in zip(graph.params, (*residuals, *inputs), strict=True)
    ]
    return [recording.wrap(value) for value in recording.call(graph, values, backend).results]
