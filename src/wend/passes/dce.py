"""Dead code elimination, through regions.

Effects are results through their tokens, so plain liveness is correct (D16).
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, rebuild_graph, with_operands
from wend.ir.types import TensorType
from wend.ops.control import (
    BlockParts,
    CallParts,
    IfParts,
    WhileParts,
    call,
    if_,
    linear_block,
    while_,
)
from wend.ops.custom import RULED
from wend.ops.parallel_map import SUM, ParallelMapParts, parallel_map
from wend.ops.schedules import scheduled


def dce(graph: Graph) -> Graph:
    """Drop nodes, carries, invariants, operands and region results that no result depends on."""
    return _restrict(graph, range(len(graph.params)), graph.results, {})


def select_results(graph: Graph, chosen: Sequence[int]) -> tuple[Graph, list[int]]:
    """Return the graph with some of its results, and with only the params those need."""
    known: _LivenessCache = {}
    results = [graph.results[i] for i in chosen]
    needed = sorted(_needs(graph, results, known))
    return _restrict(graph, needed, results, known), needed


def _restrict(
    graph: Graph, params: Sequence[int], results: Sequence[Value], known: _LivenessCache
) -> Graph:
    """Return the graph with only these params and results, and the nodes that those need."""
    liveness = _liveness(graph, results, known)
    mapping: dict[Value, Value] = {}
    used = [node for node in graph.nodes if node in liveness.used_results]
    nodes = [_copy_live(node, liveness, mapping) for node in used]
    live_params = [graph.params[i] for i in params]
    return rebuild_graph(
        graph, live_params, nodes, [mapping.get(value, value) for value in results]
    )


def _copy_live(node: Node, liveness: _Liveness, mapping: dict[Value, Value]) -> Node:
    if not node.regions:
        copy = with_operands(node, [mapping.get(v, v) for v in node.operands])
        mapping.update(zip(node.results, copy.results, strict=True))
        return copy
    live = liveness.live_parts[node]
    is_whole = len(live.operands) == len(node.operands) and len(live.results) == len(node.results)
    if is_whole:  # reused if its operands and regions are unchanged
        same = with_operands(node, [mapping.get(v, v) for v in node.operands], live.regions)
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
                self.live_parts[node] = _LIVE_PART_RULES[node.op](node, used, known)
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


def _needs(graph: Graph, results: Sequence[Value], known: _LivenessCache) -> set[int]:
    """Return the positions of the params that some results of a graph need."""
    needed = _liveness(graph, results, known).needed
    return {i for i, param in enumerate(graph.params) if param in needed}


def _live_while(node: Node, used: list[int], known: _LivenessCache) -> _LiveParts:
    """Keep the carries that the used results, the predicate or a kept carry needs."""
    w = WhileParts.of(node)
    carries, forwards = len(w.carry), len(w.forwarded)
    forwarded, carry = set(used), set[int]()
    while True:
        before_results = [w.predicate, *(w.forwarded[i] for i in sorted(forwarded))]
        before_needs = _needs(w.before, before_results, known)
        grown_carry = carry | {i for i in before_needs if i < carries}
        after_needs = _needs(w.after, [w.next_carry[i] for i in sorted(grown_carry)], known)
        grown_forwarded = forwarded | {i for i in after_needs if i < forwards}
        if grown_carry == carry and grown_forwarded == forwarded:
            break
        carry, forwarded = grown_carry, grown_forwarded
    invariants = {i - carries for i in before_needs if i >= carries}
    invariants |= {i - forwards for i in after_needs if i >= forwards}
    live_carry, live_forwarded = sorted(carry), sorted(forwarded)
    live_invariants = sorted(invariants)
    before = _restrict(
        w.before,
        [*live_carry, *(carries + j for j in live_invariants)],
        [w.predicate, *(w.forwarded[i] for i in live_forwarded)],
        known,
    )
    after = _restrict(
        w.after,
        [*live_forwarded, *(forwards + j for j in live_invariants)],
        [w.next_carry[i] for i in live_carry],
        known,
    )
    operands = [*live_carry, *(carries + j for j in live_invariants)]
    attrs = {**node.attrs, "carry": len(live_carry)}
    return _LiveParts(operands, live_forwarded, (before, after), attrs)


def _live_branches(
    branches: Sequence[Graph], used: list[int], known: _LivenessCache
) -> tuple[list[int], list[Graph]]:
    results = [[branch.results[i] for i in used] for branch in branches]
    pairs = list(zip(branches, results, strict=True))
    params = sorted(
        set[int]().union(*(_needs(branch, live_results, known) for branch, live_results in pairs))
    )
    return params, [
        _restrict(branch, params, live_results, known) for branch, live_results in pairs
    ]


def _live_if(node: Node, used: list[int], known: _LivenessCache) -> _LiveParts:
    params, branches = _live_branches(IfParts.of(node).branches, used, known)
    return _LiveParts([0, *(i + 1 for i in params)], used, branches, {})


def _live_call(node: Node, used: list[int], known: _LivenessCache) -> _LiveParts:
    params, (callee,) = _live_branches([CallParts.of(node).callee], used, known)
    return _LiveParts(params, used, [callee], dict(node.attrs))


def _live_map(node: Node, used: list[int], known: _LivenessCache) -> _LiveParts:
    """Keep the mapped operands that the body reads, or one that counts the elements."""
    p = ParallelMapParts.of(node)
    (params, (body,)), count = _live_branches([p.body], used, known), len(p.mapped)
    if not any(i < count and isinstance(p.mapped[i].type, TensorType) for i in params):
        arrays = [i for i, x in enumerate(p.mapped) if isinstance(x.type, TensorType)]
        params = sorted({*params, *arrays[:1]} if arrays or params else {0})
        body = _restrict(p.body, params, [p.body.results[i] for i in used], known)
    starts = [p.forms[:i].count(SUM) for i in used if p.forms[i] == SUM]
    operands = [
        *(i for i in params if i < count),
        *(count + k for k in starts),
        *(i + len(p.starts) for i in params if i >= count),
    ]
    mapped = sum(i < count for i in params)
    attrs = {"mapped": mapped, "results": tuple(p.forms[i] for i in used)}
    return _LiveParts(operands, used, (body,), attrs)


def _live_block(node: Node, used: list[int], known: _LivenessCache) -> _LiveParts:
    """Keep all cotangents: the body runs if any of them is nonzero."""
    block = BlockParts.of(node)
    count, results = len(block.cotangents), [block.body.results[i] for i in used]
    params = sorted({*range(count), *_needs(block.body, results, known)})
    body = _restrict(block.body, params, results, known)
    return _LiveParts(params, used, [body], dict(node.attrs))


def _live_ruled(node: Node, used: list[int], known: _LivenessCache) -> _LiveParts:
    """Keep everything: a rule may give a cotangent to an operand that nothing reads.

    The two forms of a scheduled call have the same operands and results.
    """
    regions = [
        _restrict(region, range(len(region.params)), region.results, known)
        for region in node.regions
    ]
    operands, results = range(len(node.operands)), range(len(node.results))
    return _LiveParts(operands, results, regions, dict(node.attrs))


_LIVE_PART_RULES = {
    while_: _live_while,
    if_: _live_if,
    call: _live_call,
    linear_block: _live_block,
    parallel_map: _live_map,
    **dict.fromkeys((*RULED, scheduled), _live_ruled),
}
