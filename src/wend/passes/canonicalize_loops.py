"""Loop canonicalization: a carry that never changes becomes an invariant."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.traverse import backward_slice
from wend.ops.control import WhileParts, while_


def canonicalize_loops(graph: Graph) -> Graph:
    """Turn unchanged carries into invariants, inner loops first."""
    if while_ not in graph.ops:
        return graph

    def canonicalize(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(
            node, operands, [canonicalize_loops(region) for region in node.regions]
        )
        results: tuple[Value, ...] = copy.results
        if node.op is while_:
            copy, results = _demote_unchanged_carries(copy)
        nodes.append(copy)
        return results

    return rewrite_nodes(graph, canonicalize)


def _has_constant_predicate(w: WhileParts, unchanged: Collection[int]) -> bool:
    """Return whether the predicate depends on unchanged values alone: no trip, or no end.

    A loop without end would, rewritten, give the results of no trip, which must never be observed.
    """
    slice_ = backward_slice([w.predicate], w.before.params)
    read = {w.predicate, *(value for node in slice_ for value in node.operands)}
    return read.isdisjoint({param for i, param in enumerate(w.before_carry) if i not in unchanged})


def _demote_unchanged_carries(node: Node) -> tuple[Node, tuple[Value, ...]]:
    """Return the loop with unchanged carries as invariants, and what replaces its results."""
    w = WhileParts.of(node)
    unchanged = {}  # position of the carry -> position where it is forwarded
    for i, (start, param, last) in enumerate(
        zip(w.carry, w.before_carry, w.next_carry, strict=True)
    ):
        if param in w.forwarded and last in w.after_forwarded and start.type == param.type:
            position = w.after_forwarded.index(last)
            if w.forwarded[position] is param:
                unchanged[i] = position
    if not unchanged or _has_constant_predicate(w, unchanged):
        return node, node.results
    positions = set(unchanged.values())
    carry = [i for i in range(len(w.carry)) if i not in unchanged]
    forwarded = [i for i in range(len(w.forwarded)) if i not in positions]
    demoted_before = [w.before_carry[i] for i in unchanged]
    demoted_after = [w.after_forwarded[position] for position in unchanged.values()]
    before = Graph(
        w.before.name,
        (*(w.before_carry[i] for i in carry), *w.before_invariants, *demoted_before),
        w.before.nodes,
        (w.predicate, *(w.forwarded[i] for i in forwarded)),
    )
    after = Graph(
        w.after.name,
        (*(w.after_forwarded[i] for i in forwarded), *w.after_invariants, *demoted_after),
        w.after.nodes,
        tuple(w.next_carry[i] for i in carry),
    )
    starts = [w.carry[i] for i in unchanged]
    new = Node(
        node.op,
        [*(w.carry[i] for i in carry), *w.invariants, *starts],
        {**node.attrs, "carry": len(carry)},
        (before, after),
        [node.results[i].type for i in forwarded],
        node.source,
    )
    new.remark = node.remark
    keep_names([node.results[i] for i in forwarded], new.results)
    results = dict(zip(forwarded, new.results, strict=True))
    results.update({position: w.carry[i] for i, position in unchanged.items()})
    return new, tuple(results[i] for i in range(len(node.results)))
