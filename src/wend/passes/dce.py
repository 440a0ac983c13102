"""Dead code elimination, through regions.

Effects are results through their tokens, so plain liveness is correct (D16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import or_

from wend.ir.dataflow import flow_backward, region_edges
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, rebuild_graph, with_operands
from wend.ir.types import TensorType
from wend.ops.control import linear_block
from wend.ops.parallel_map import parallel_map


def dce(graph: Graph) -> Graph:
    """Drop nodes, carries, invariants, operands and region results that no result depends on."""
    return _restrict(graph, range(len(graph.params)), graph.results, {})


def select_results(graph: Graph, chosen: Sequence[int]) -> tuple[Graph, list[int]]:
    """Return the graph with some of its results, and with only the params those need."""
    known: _LivenessCache = {}
    results = [graph.results[i] for i in chosen]
    needed = _positions(_needs(graph, results, known))
    return _restrict(graph, needed, results, known), needed


def _restrict(
    graph: Graph, params: Sequence[int], results: Sequence[Value], known: _LivenessCache
) -> Graph:
    """Return the graph with only these params and results, and the nodes that those need."""
    liveness = _liveness(graph, results, known)
    mapping: dict[Value, Value] = {}  # of the values that are replaced
    used = [node for node in graph.nodes if node in liveness.used_results]
    nodes = [
        _copy_live(node, liveness, mapping) if mapping or node.regions else node for node in used
    ]
    live_params = [graph.params[i] for i in params]
    return rebuild_graph(
        graph, live_params, nodes, [mapping.get(value, value) for value in results]
    )


def _copy_live(node: Node, liveness: _Liveness, mapping: dict[Value, Value]) -> Node:
    if not node.regions:
        copy = with_operands(node, [mapping.get(v, v) for v in node.operands])
        if copy is not node:
            mapping.update(zip(node.results, copy.results, strict=True))
        return copy
    live = liveness.live_parts[node]
    is_whole = len(live.operands) == len(node.operands) and len(live.results) == len(node.results)
    if is_whole:  # reused if its operands and regions are unchanged
        same = with_operands(node, [mapping.get(v, v) for v in node.operands], live.regions)
        if same is not node:
            mapping.update(zip(node.results, same.results, strict=True))
        return same
    copy = Node(
        node.op,
        [mapping.get(node.operands[i], node.operands[i]) for i in live.operands],
        live.attrs,
        live.regions,
        [node.results[i].type for i in live.results],
        node.source,
    )
    copy.remark = node.remark
    keep_names([node.results[i] for i in live.results], copy.results)
    for i, result in zip(live.results, copy.results, strict=True):
        mapping[node.results[i]] = result
    return copy


class _LiveParts:
    """The live operands, results and regions of a node with regions."""

    def __init__(
        self,
        operands: Sequence[int],
        results: Sequence[int],
        regions: Sequence[Graph],
        attrs: dict[str, object],
    ) -> None:
        self.operands, self.results, self.regions, self.attrs = operands, results, regions, attrs


class _Liveness:
    """The nodes of a graph that some results need, and which of their results are used."""

    def __init__(self, graph: Graph, results: Sequence[Value], known: _LivenessCache) -> None:
        self.needed: set[Value] = set(results)
        self.used_results: dict[Node, list[int]] = {}
        self.live_parts: dict[Node, _LiveParts] = {}
        for node in reversed(graph.nodes):
            used = [i for i, result in enumerate(node.results) if result in self.needed]
            if not used:
                continue
            self.used_results[node] = used
            if node.regions:
                self.live_parts[node] = _live_parts(node, used, known)
                self.needed.update(node.operands[i] for i in self.live_parts[node].operands)
            else:
                self.needed.update(node.operands)


# Liveness by graph and results. Without the memo, the time would double with each nesting level.
_LivenessCache = dict[tuple[int, frozenset[Value]], _Liveness]


def _liveness(graph: Graph, results: Sequence[Value], known: _LivenessCache) -> _Liveness:
    key = id(graph), frozenset(results)
    if key not in known:
        known[key] = _Liveness(graph, results, known)
    return known[key]


def _needs(graph: Graph, results: Sequence[Value], known: _LivenessCache) -> list[bool]:
    """Return which params of a graph some of its results need."""
    needed = _liveness(graph, results, known).needed
    return [param in needed for param in graph.params]


def _live_parts(node: Node, used: Sequence[int], known: _LivenessCache) -> _LiveParts:
    """Return the live parts of a node: the backward flow of liveness from its used results.

    A node without edges keeps everything: a derivative rule may give a cotangent to an operand that
    nothing reads, and the regions of `scheduled` have results in common.
    """
    if not region_edges(node):
        results, operands = range(len(node.results)), range(len(node.operands))
        regions = [_restrict(r, range(len(r.params)), r.results, known) for r in node.regions]
        return _LiveParts(operands, results, regions, dict(node.attrs))

    def transfer(k: int, live: Sequence[bool]) -> list[bool]:
        region = node.regions[k]
        return _needs(region, tuple(compress(region.results, live)), known)

    flags = [k in used for k in range(len(node.results))]
    flow = flow_backward(node, flags, or_, transfer, unforwarded=True)
    live_operands = {*_positions(flow.node), *_needed_anyway(node, flow.node)}
    uses: dict[int | None, Sequence[int]] = {None: sorted(live_operands)}
    uses.update((k, _positions(live)) for k, live in enumerate(flow.entered))
    return _receive(node, uses, known)


def _needed_anyway(node: Node, live: Sequence[bool]) -> Sequence[int]:
    """Return operands that a node needs even if no region does.

    A block runs if any of its cotangents is nonzero. A map counts the elements of an array.
    """
    if node.op is linear_block:
        return range(node.attrs["cotangents"])
    if node.op is not parallel_map:
        return ()
    mapped = range(node.attrs["mapped"])
    arrays = [k for k in mapped if isinstance(node.operands[k].type, TensorType)]
    return () if any(live[k] for k in arrays or mapped) else (arrays or mapped)[:1]


def _receive(
    node: Node, uses: Mapping[int | None, Sequence[int]], known: _LivenessCache
) -> _LiveParts:
    """Return a node that passes on these operands (None) and results of its regions.

    Whatever receives them takes them all: a region has a param even for what another one needs.
    """
    inputs: dict[int | None, set[int]] = {k: set() for k in uses}
    for edge in region_edges(node):
        live = {*uses[edge.source]}
        inputs[edge.target].update(k for use, k in edge.positions() if use in live)
    regions = [
        _restrict(region, sorted(inputs[k]), [region.results[i] for i in uses[k]], known)
        for k, region in enumerate(node.regions)
    ]
    attrs, counter = dict(node.attrs), node.op.leading_operands
    if counter:
        attrs[counter] = sum(k < attrs[counter] for k in uses[None])
    results = sorted(inputs[None])
    if node.op is parallel_map:
        attrs["results"] = tuple(node.attrs["results"][k] for k in results)
    return _LiveParts(uses[None], results, regions, attrs)


def _positions(flags: Sequence[bool]) -> list[int]:
    return [k for k, flag in enumerate(flags) if flag]
