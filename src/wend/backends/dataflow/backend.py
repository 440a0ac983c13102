"""The dataflow backend: graphs lowered to dataflow, whose loops may run several trips at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from wend.backends.dataflow.executor import Executor, Take
from wend.backends.dataflow.lower import lower_prepared
from wend.backends.dataflow.normal_form import prepare
from wend.backends.dataflow.plan import Plan
from wend.backends.dataflow.recording import RecordingExecutor
from wend.backends.dataflow.stages import MIN_TASK, collapse, gains
from wend.backends.protocol import CompilesClusters, Executable
from wend.base.config import config, settings
from wend.ir.graph import Graph
from wend.runtime.array_boundary import HOST, ArrayBoundary

Compile: TypeAlias = Callable[[Graph], Executable]


class DataflowExecutable:
    """A dataflow graph that runs node by node."""

    def __init__(self, plan: Plan, take: Take | None, min_task: float) -> None:
        self._plan, self._take, self._min_task = plan, take, min_task
        self._executor = RecordingExecutor if settings().profile else Executor

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        return self._executor(self._plan, self._take, self._min_task).run(arguments)


class DataflowBackend(CompilesClusters):
    """Runs graphs as dataflow.

    Args:
        parallel_iterations: how many trips of a loop may be in flight at once; None: what the loop
            says.
        collapse: whether what gains nothing from running in parts is one task: a loop, or all of a
            graph. The cluster compiler makes it.
        take: how the next node is taken off the queue; None: in order.
        min_task: seconds of estimated work from which on another thread does it.
    """

    name = "dataflow"
    boundary: ArrayBoundary = HOST

    def __init__(
        self,
        parallel_iterations: int | None = None,
        *,
        collapse: bool = True,
        take: Take | None = None,
        min_task: float = MIN_TASK,
    ) -> None:
        self._parallel_iterations, self._collapse = parallel_iterations, collapse
        self._compile_cluster: Compile | None = None
        self._take, self._min_task = take, min_task

    def use_cluster_compiler(self, compile: Compile) -> None:
        self._compile_cluster = compile

    def compile(self, graph: Graph) -> Executable:
        prepared = prepare(graph)
        if self._collapse and self._compile_cluster is not None:
            if not gains(prepared):
                return self._compile_cluster(graph)
            with config(profile=False):  # a cluster is one operation of the profile
                prepared = collapse(prepared, self._compile_cluster)
        plan = Plan(lower_prepared(prepared), self._parallel_iterations)
        return DataflowExecutable(plan, self._take, self._min_task)


BACKEND = DataflowBackend()
