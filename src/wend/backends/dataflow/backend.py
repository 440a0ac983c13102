"""The dataflow backend: graphs lowered to dataflow, whose loops may run several trips at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.backends.dataflow.executor import MIN_TASK, Executor, Take
from wend.backends.dataflow.lower import lower
from wend.backends.dataflow.plan import Plan
from wend.backends.protocol import Executable
from wend.ir.graph import Graph
from wend.runtime.array_boundary import HOST, ArrayBoundary


class DataflowExecutable:
    """A dataflow graph that runs node by node."""

    def __init__(self, plan: Plan, take: Take | None, min_task: float) -> None:
        self._plan, self._take, self._min_task = plan, take, min_task

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        return Executor(self._plan, self._take, self._min_task).run(arguments)


class DataflowBackend:
    """Runs graphs as dataflow.

    Args:
        parallel_iterations: how many trips of a loop may be in flight at once; None: what the loop
            says.
        take: how the next node is taken off the queue; None: in order.
        min_task: seconds of estimated work from which on another thread does it.
    """

    name = "dataflow"
    boundary: ArrayBoundary = HOST

    def __init__(
        self,
        parallel_iterations: int | None = None,
        *,
        take: Take | None = None,
        min_task: float = MIN_TASK,
    ) -> None:
        self._parallel_iterations = parallel_iterations
        self._take, self._min_task = take, min_task

    def compile(self, graph: Graph) -> Executable:
        plan = Plan(lower(graph), self._parallel_iterations)
        return DataflowExecutable(plan, self._take, self._min_task)


BACKEND = DataflowBackend()
