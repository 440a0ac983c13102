"""The results of a graph that variables hold after a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wend.ir.dataflow import region_flow
from wend.ir.graph import Graph, Node, Value
from wend.ops.state import store
from wend.runtime.storage import Storage


def stored_results(graph: Graph) -> Mapping[int, Storage]:
    """Return the variables that results of a graph are stored in, by the position of the result.

    A store gives the new value of its variable, and the last value of each is a result: the
    results are traced back to a store, through loops and branches.
    """
    flows: dict[Value, list[Value]] = {}
    for node in graph.walk():
        if node.regions:
            for (owner, index), value in region_flow(node):
                source = (owner.operands if isinstance(owner, Node) else owner.results)[index]
                flows.setdefault(value, []).append(source)
    replaced = _reached([x.operands[0] for x in graph.walk() if x.op is store], flows)
    positions: dict[Storage, int] = {}
    for k, result in enumerate(graph.results):
        storage = _stored_in(result, flows)
        if storage is not None and result not in replaced:  # as a residual may be
            positions[storage] = k  # values of users come first, and the last one last
    return {k: storage for storage, k in positions.items()}


def _reached(values: Iterable[Value], flows: Mapping[Value, list[Value]]) -> set[Value]:
    """Return values, and those that flow into them through loops and branches."""
    reached: set[Value] = set()
    pending = [*values]
    while pending:
        value = pending.pop()
        if value not in reached:
            reached.add(value)
            pending += flows.get(value, ())
    return reached


def _stored_in(result: Value, flows: Mapping[Value, list[Value]]) -> Storage | None:
    visited: set[Value] = set()
    pending = [result]
    while pending:
        value = pending.pop()
        if value in visited:
            continue
        visited.add(value)
        if value.node is not None and value.node.op is store:
            storage: Storage = value.node.attrs["variable"]
            return storage
        pending += flows.get(value, ())
    return None
