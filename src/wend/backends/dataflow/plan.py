"""The plan of a dataflow graph: for each node what it does, and where what it gives goes."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wend.backends.dataflow.graph import DataflowGraph
from wend.backends.dataflow.node import DataflowNode, Output, Primitive
from wend.backends.dataflow.stages import Cluster
from wend.base.errors import GraphError
from wend.base.source import at
from wend.ir.op import Op
from wend.ir.types import TensorType
from wend.ops.control import DEFAULT_PARALLEL_ITERATIONS
from wend.ops.frame_states import frame_state
from wend.passes.estimate_work import seconds


class Action(enum.IntEnum):
    """An action of the executor on a node whose inputs have arrived."""

    RUN = 0
    STATE = 1
    PASS = 2
    SWITCH = 3
    JOIN = 4
    HEAD = 5
    ENTER = 6
    NEXT = 7
    EXIT = 8


_KINDS = {
    Primitive.ENTER: Action.ENTER,
    Primitive.EXIT: Action.EXIT,
    Primitive.SWITCH: Action.SWITCH,
    Primitive.NEXT_ITERATION: Action.NEXT,
    Primitive.LOOP_COND: Action.PASS,
    Primitive.IDENTITY: Action.PASS,
}


class FramePlan:
    """A loop.

    Attributes:
        name: the name of the frame.
        entries: the number of its `Enter` nodes.
        limit: how many of its iterations may be in flight at once.
    """

    __slots__ = ("entries", "limit", "name")

    def __init__(self, name: str, limit: int) -> None:
        self.name, self.limit = name, limit
        self.entries = 0


class NodePlan:
    """A node, as the executor sees it.

    Attributes:
        node: the node.
        position: its position among the nodes, in program order.
        kind: what is done with it.
        kernel: what computes its outputs, if it is an operation.
        work: estimates the seconds that takes, from its inputs; None: hardly any, or it has to run
            on the thread of the call.
        frame: the loop that it enters.
        is_constant: whether it enters all iterations of that.
        consumers: for each output the nodes that take it and the position of the input, which is
            −1 where they only wait for it.
        results: for each output which results of the graph it is.
        awaited: the number of inputs and controls.
        runs_at_once: whether it runs as soon as one value arrives.
    """

    __slots__ = (
        *("awaited", "consumers", "frame", "is_constant", "kernel", "kind", "node"),
        *("position", "results", "runs_at_once", "work"),
    )

    def __init__(self, node: DataflowNode, position: int) -> None:
        self.node, self.position = node, position
        self.awaited = len(node.inputs) + len(node.controls)
        self.consumers: list[list[tuple[NodePlan, int]]] = [[] for _ in node.outputs]
        self.results: list[list[int]] = [[] for _ in node.outputs]
        self.frame: FramePlan | None = None
        self.is_constant = bool(node.attrs.get("is_constant"))
        self.kernel: Callable[..., Any] | None = None
        self.work: Callable[[Sequence[Any]], float] | None = None
        if isinstance(node.op, Primitive):
            join = Action.HEAD if node.is_loop_head else Action.JOIN
            self.kind = join if node.op is Primitive.MERGE else _KINDS[node.op]
            if self.kind in (Action.JOIN, Action.HEAD) and node.controls:
                raise GraphError(f"Merge{at(node.source)} waits for more than its inputs")
        else:
            self.kind = Action.STATE if node.op is frame_state else Action.RUN
            assert node.op.kernel is not None, f"{node.op.name} has no kernel"
            self.kernel = partial(node.op.kernel, **node.attrs) if node.attrs else node.op.kernel
            self.work = _work_of(node, node.op)
        one_input = self.awaited == 1 and self.kind is not Action.JOIN
        self.runs_at_once = one_input or self.kind is Action.HEAD


class Plan:
    """The plans of all nodes of a graph.

    Args:
        graph: the graph.
        parallel_iterations: how many iterations of each loop may be in flight at once; None: what
            the loop says.
    """

    def __init__(self, graph: DataflowGraph, parallel_iterations: int | None = None) -> None:
        self.graph = graph
        self.nodes = [NodePlan(node, k) for k, node in enumerate(graph.nodes)]
        self.by_node = {plan.node: plan for plan in self.nodes}
        self.params: list[list[tuple[NodePlan, int]]] = [[] for _ in graph.params]
        self.param_results: list[list[int]] = [[] for _ in graph.params]
        params = {param: k for k, param in enumerate(graph.params)}
        for k, result in enumerate(graph.results):
            if result.node is None:
                self.param_results[params[result]].append(k)
            else:
                self.by_node[result.node].results[result.index].append(k)
        for plan in self.nodes:
            pairs = [*zip(plan.node.inputs, range(plan.awaited), strict=False)]
            for x, slot in (*pairs, *((x, -1) for x in plan.node.controls)):
                takers = self.params[params[x]] if x.node is None else self._takers(x, x.node)
                takers.append((plan, slot))
        self.starting = [plan for plan in self.nodes if not plan.awaited]
        self._frames(parallel_iterations)

    def _takers(self, output: Output, node: DataflowNode) -> list[tuple[NodePlan, int]]:
        return self.by_node[node].consumers[output.index]

    def _frames(self, parallel_iterations: int | None) -> None:
        frames: dict[str, FramePlan] = {}
        for plan in self.nodes:
            attrs = plan.node.attrs
            if plan.kind is Action.ENTER:
                limit = parallel_iterations or attrs.get("parallel_iterations")
                limit = 1 if attrs.get("in_order") else limit or DEFAULT_PARALLEL_ITERATIONS
                plan.frame = frames.setdefault(attrs["frame"], FramePlan(attrs["frame"], limit))
                plan.frame.entries += 1


def _work_of(node: DataflowNode, op: Op) -> Callable[[Sequence[Any]], float] | None:
    """Return an estimate of the time of an operation on arrays, which holds no lock meanwhile."""
    if isinstance(op.kernel, Cluster):
        return (lambda xs: math.inf) if op.kernel.is_task else None
    types = [x.type for x in (*node.inputs, *node.outputs)]
    is_numeric = all(isinstance(type, TensorType) and type.dtype.kind in "fc" for type in types)
    if not node.inputs or not is_numeric or not op.is_portable:  # Python runs on the own thread
        return None
    if all(isinstance(type, TensorType) and type.shape == () for type in types):
        return None
    return lambda xs: seconds(op, node.attrs, [np.shape(x) for x in xs])
