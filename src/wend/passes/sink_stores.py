"""Assignments to variables, moved from a graph to the end of its run.

Where a run cannot end between the first assignment and its last node, nobody sees when variables
change: the new values are among the results, and the caller stores them. The graph that is left has
no effects, so calls may enter its code without Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wend.ir.dataflow import region_flow
from wend.ir.graph import Graph, Node, Value
from wend.ops.control import while_
from wend.ops.frame_states import may_fail
from wend.ops.state import store
from wend.passes.strip_stores import strip_stores
from wend.runtime.storage import Storage


class SunkStores(NamedTuple):
    """A graph without stores, and what its caller has to store.

    Attributes:
        graph: the graph.
        variables: the variables to assign to, by the position of the result that is the new value.
    """

    graph: Graph
    variables: Mapping[int, Storage]


def sink_stores(graph: Graph) -> SunkStores | None:
    """Return a graph without its stores; None if there are none, or where their order shows."""
    if store not in graph.ops:
        return None
    last_values = _last_values(graph)
    if last_values is None:
        return None
    # The last positions: the value may also be a result of the user's, which comes first.
    positions = {value: k for k, value in enumerate(graph.results)}
    if not all(value in positions for value in last_values.values()):
        return None
    variables = {positions[value]: x for x, value in last_values.items()}
    return SunkStores(strip_stores(graph), variables)


def _last_values(graph: Graph) -> Mapping[Storage, Value] | None:
    """Return the last value of each variable that is assigned; None if runs may end after one."""
    last_values: dict[Storage, Value] = {}
    for node in graph.nodes:
        if last_values and _may_end(node):
            return None
        stored = _stored_by(node)
        if stored is None:
            return None
        last_values.update(stored)
    return last_values


def _may_end(node: Node) -> bool:
    """Return whether a run may end in a node: by an error, or interrupted between two trips."""
    loops = node.op is while_ or any(while_ in region.ops for region in node.regions)
    return loops or may_fail(node)


def _stored_by(node: Node) -> Mapping[Storage, Value] | None:
    """Return the results of a node that are new values of variables; None as above."""
    if node.op is store:
        is_same = node.operands[1].type == node.results[0].type
        return {node.attrs["variable"]: node.results[0]} if is_same else None
    regions = [region for region in node.regions if store in region.ops]
    if not regions:
        return {}
    if node.op is while_:  # which may be interrupted between two trips
        return None
    stored: dict[Storage, Value] = {}
    for region in regions:
        inner = _last_values(region)
        if inner is None:
            return None
        returned = {region.results[use]: x for use, x in _returned(node, region)}
        for variable, value in inner.items():
            result = returned.get(value)
            if result is None or stored.setdefault(variable, result) is not result:
                return None
    return stored


def _returned(node: Node, region: Graph) -> Iterable[tuple[int, Value]]:
    """Return the positions of a region's results that become results of the node, with those."""
    for (owner, use), value in region_flow(node):
        if owner is region and value in node.results:
            yield use, value
