"""Which parts of a graph gain from running at once: stages of loops, and products side by side.

The stages of a loop are the strongly connected components of its carry: a trip of one does not wait
for the last trip of those that come after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wend.backends.dataflow.ordering import is_barrier
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect, Op, no_gradient
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops.control import WhileParts, while_
from wend.ops.frame_states import may_fail
from wend.passes.estimate_work import work

# Seconds of work below which a task for another thread does not pay
MIN_TASK = 50e-6
# Runs a graph: arguments to results
Compile = Callable[[Graph], Callable[[Sequence[Any]], Sequence[Any]]]


def gains(graph: Graph) -> bool:
    """Return whether some part of a graph gains from running beside another one."""
    if _has_pair(graph.nodes, lambda node: _arguments(node)):
        return True
    return any(
        _has_stages(node) if node.op is while_ else any(map(gains, node.regions))
        for node in graph.nodes
    )


def collapse(graph: Graph, compile: Compile) -> Graph:
    """Return the graph in which every loop that gains nothing is one operation, compiled."""

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is while_ and not _has_stages(node):
            nodes.append(_cluster(node, operands, compile))
        else:
            regions = [collapse(region, compile) for region in node.regions]
            nodes.append(with_operands(node, operands, regions))
        return nodes[-1].results

    return rewrite_nodes(graph, rewrite)


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A compiled loop, as the kernel of an operation.

    Attributes:
        execute: runs it.
        is_task: whether another thread may run it: it has no effects, and takes arrays only.
    """

    execute: Callable[[Sequence[Any]], Sequence[Any]]
    is_task: bool

    def __call__(self, *operands: Any) -> Any:
        results = self.execute(operands)
        return results[0] if len(results) == 1 else tuple(results)


def _cluster(node: Node, operands: Sequence[Value], compile: Compile) -> Node:
    params = [Value(value.type, name=value.name) for value in operands]
    types = [result.type for result in node.results]
    loop = Node(node.op, params, node.attrs, node.regions, types, node.source)
    execute = compile(Graph("loop", tuple(params), (loop,), loop.results))
    is_array = all(isinstance(value.type, TensorType) for value in (*params, *loop.results))
    op = Op(
        "cluster",
        lambda *_: tuple(types),
        Cluster(execute, is_array and not is_barrier(node)),
        no_gradient(),
        effect=Effect.WORLD if is_barrier(node) else Effect.NONE,
        raises=(Exception,) if may_fail(node) else (),
        is_portable=False,
    )
    cluster = Node(op, operands, {}, (), types, node.source)
    keep_names(node.results, cluster.results)
    return cluster


def _has_stages(loop: Node) -> bool:
    """Return whether the trips of a loop can overlap, with enough work in two stages."""
    w = WhileParts.of(loop)
    if any(map(gains, loop.regions)):
        return True
    nodes = [*w.before.nodes, *w.after.nodes]
    passed = dict(zip(w.after_forwarded, w.forwarded, strict=True))
    nexts = dict(zip(w.before_carry, w.next_carry, strict=True))

    def needs(node: Node) -> Iterable[Node]:
        """The nodes that a node needs in its trip and, through the carry, in the one before."""
        for operand in node.operands:
            value = passed.get(operand, operand)
            visited: set[Value] = set()
            while value.node is None and value in nexts and value not in visited:
                visited.add(value)
                value = nexts[value]
                value = passed.get(value, value)
            if value.node is not None:
                yield value.node

    heavy = [node for node in nodes if work(node) >= MIN_TASK]
    reached = {node: _reached(node, needs) for node in heavy}
    return any(
        b not in reached[a] or a not in reached[b] for a in heavy for b in heavy if a is not b
    )


def _has_pair(nodes: Sequence[Node], needs: Callable[[Node], Iterable[Node]]) -> bool:
    """Return whether two nodes with enough work do not need each other."""
    heavy = [node for node in nodes if work(node) >= MIN_TASK]
    reached = {node: _reached(node, needs) for node in heavy}
    return any(
        b not in reached[a] and a not in reached[b] for a in heavy for b in heavy if a is not b
    )


def _arguments(node: Node) -> Iterable[Node]:
    return (operand.node for operand in node.operands if operand.node is not None)


def _reached(node: Node, needs: Callable[[Node], Iterable[Node]]) -> set[Node]:
    reached, stack = set[Node](), [node]
    while stack:
        for other in needs(stack.pop()):
            if other not in reached:
                reached.add(other)
                stack.append(other)
    return reached
