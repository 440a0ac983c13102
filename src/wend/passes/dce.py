"""Dead code elimination: what no result depends on goes, in regions too.

Effects are results through their tokens, so plain liveness is right (D16).
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import graph_of, keep_names, on_operands
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


def dce(graph: Graph) -> Graph:
    """Drop nodes, carries, invariants, operands and region results that nothing needs."""
    return _keep(graph, range(len(graph.params)), graph.results, {})


def with_results(graph: Graph, chosen: Sequence[int]) -> tuple[Graph, list[int]]:
    """The graph with some of its results, and with those of its params that they need."""
    known: _Known = {}
    results = [graph.results[i] for i in chosen]
    needed = sorted(_needs(graph, results, known))
    return _keep(graph, needed, results, known), needed


def _keep(graph: Graph, params: Sequence[int], results: Sequence[Value], known: _Known) -> Graph:
    """The graph with only these params and results, and the nodes that those need."""
    liveness = _liveness(graph, results, known)
    mapping: dict[Value, Value] = {}
    used = [node for node in graph.nodes if node in liveness.used_results]
    nodes = [_copy_slim(node, liveness, mapping) for node in used]
    kept = [graph.params[i] for i in params]
    return graph_of(graph, kept, nodes, [mapping.get(value, value) for value in results])


def _copy_slim(node: Node, liveness: _Liveness, mapping: dict[Value, Value]) -> Node:
    if not node.regions:
        copy = on_operands(node, [mapping.get(v, v) for v in node.operands])
        mapping.update(zip(node.results, copy.results, strict=True))
        return copy
    slim = liveness.slims[node]
    is_whole = len(slim.operands) == len(node.operands) and len(slim.results) == len(node.results)
    if is_whole:  # the same, if its operands and regions are
        same = on_operands(node, [mapping.get(v, v) for v in node.operands], slim.regions)
        mapping.update(zip(node.results, same.results, strict=True))
        return same
    copy = Node(
        node.op,
        [mapping.get(node.operands[i], node.operands[i]) for i in slim.operands],
        slim.attrs,
        slim.regions,
        [node.results[i].type for i in slim.results],
        node.source,
    )
    keep_names([node.results[i] for i in slim.results], copy.results)
    for i, result in zip(slim.results, copy.results, strict=True):
        mapping[node.results[i]] = result
    return copy


class _Slim:
    """A node that holds regions, cut down: which operands and results are left."""

    def __init__(
        self,
        operands: Sequence[int],
        results: Sequence[int],
        regions: Sequence[Graph],
        attrs: dict[str, object],
    ) -> None:
        self.operands, self.results, self.regions, self.attrs = operands, results, regions, attrs


class _Liveness:
    """Which nodes of a graph are needed for some results, and what of them."""

    def __init__(self, graph: Graph, results: Sequence[Value], known: _Known) -> None:
        self.needed: set[Value] = set(results)
        self.used_results: dict[Node, list[int]] = {}
        self.slims: dict[Node, _Slim] = {}
        for node in reversed(graph.nodes):
            used = [i for i, result in enumerate(node.results) if result in self.needed]
            if not used:
                continue
            self.used_results[node] = used
            if node.regions:
                self.slims[node] = _SLIMMERS[node.op](node, used, known)
                self.needed.update(node.operands[i] for i in self.slims[node].operands)
            else:
                self.needed.update(node.operands)


# What was found out, by graph and wanted results: asked again at each level of a nest of regions,
# it would take time that doubles with every level.
_Known = dict[tuple[int, frozenset[Value]], _Liveness]


def _liveness(graph: Graph, results: Sequence[Value], known: _Known) -> _Liveness:
    key = id(graph), frozenset(results)
    if key not in known:
        known[key] = _Liveness(graph, results, known)
    return known[key]


def _needs(graph: Graph, results: Sequence[Value], known: _Known) -> set[int]:
    """Which params some results of a graph need."""
    needed = _liveness(graph, results, known).needed
    return {i for i, param in enumerate(graph.params) if param in needed}


def _slim_while(node: Node, used: list[int], known: _Known) -> _Slim:
    """Keep the carries that the used results, the predicate or kept carries need."""
    w = WhileParts.of(node)
    carries, forwards = len(w.carry), len(w.forwarded)
    forwarded, carry = set(used), set[int]()
    while True:
        wanted = [w.predicate, *(w.forwarded[i] for i in sorted(forwarded))]
        before_needs = _needs(w.before, wanted, known)
        now_carry = carry | {i for i in before_needs if i < carries}
        after_needs = _needs(w.after, [w.next_carry[i] for i in sorted(now_carry)], known)
        now_forwarded = forwarded | {i for i in after_needs if i < forwards}
        if now_carry == carry and now_forwarded == forwarded:
            break
        carry, forwarded = now_carry, now_forwarded
    invariants = {i - carries for i in before_needs if i >= carries}
    invariants |= {i - forwards for i in after_needs if i >= forwards}
    kept_carry, kept_forwarded = sorted(carry), sorted(forwarded)
    kept_invariants = sorted(invariants)
    before = _keep(
        w.before,
        [*kept_carry, *(carries + j for j in kept_invariants)],
        [w.predicate, *(w.forwarded[i] for i in kept_forwarded)],
        known,
    )
    after = _keep(
        w.after,
        [*kept_forwarded, *(forwards + j for j in kept_invariants)],
        [w.next_carry[i] for i in kept_carry],
        known,
    )
    operands = [*kept_carry, *(carries + j for j in kept_invariants)]
    return _Slim(operands, kept_forwarded, (before, after), {"carry": len(kept_carry)})


def _slim_branches(
    branches: Sequence[Graph], used: list[int], known: _Known
) -> tuple[list[int], list[Graph]]:
    results = [[branch.results[i] for i in used] for branch in branches]
    pairs = list(zip(branches, results, strict=True))
    params = sorted(set[int]().union(*(_needs(branch, wanted, known) for branch, wanted in pairs)))
    return params, [_keep(branch, params, wanted, known) for branch, wanted in pairs]


def _slim_if(node: Node, used: list[int], known: _Known) -> _Slim:
    params, branches = _slim_branches(IfParts.of(node).branches, used, known)
    return _Slim([0, *(i + 1 for i in params)], used, branches, {})


def _slim_call(node: Node, used: list[int], known: _Known) -> _Slim:
    params, (callee,) = _slim_branches([CallParts.of(node).callee], used, known)
    return _Slim(params, used, [callee], dict(node.attrs))


def _slim_block(node: Node, used: list[int], known: _Known) -> _Slim:
    """Keep all cotangents: whether any arrives decides whether the body runs."""
    block = BlockParts.of(node)
    count, results = len(block.cotangents), [block.body.results[i] for i in used]
    params = sorted({*range(count), *_needs(block.body, results, known)})
    body = _keep(block.body, params, results, known)
    return _Slim(params, used, [body], dict(node.attrs))


def _slim_ruled(node: Node, used: list[int], known: _Known) -> _Slim:
    """All of it: a rule may give an operand that nothing reads a cotangent."""
    regions = [
        _keep(region, range(len(region.params)), region.results, known) for region in node.regions
    ]
    operands, results = range(len(node.operands)), range(len(node.results))
    return _Slim(operands, results, regions, dict(node.attrs))


_SLIMMERS = {
    while_: _slim_while,
    if_: _slim_if,
    call: _slim_call,
    linear_block: _slim_block,
    **dict.fromkeys(RULED, _slim_ruled),
}
