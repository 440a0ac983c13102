"""Puts loops in canonical form: a carry that never changes becomes an invariant."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, on_operands, with_nodes
from wend.ir.traverse import backward_slice
from wend.ops.control import WhileParts, while_


def canonicalize_loops(graph: Graph) -> Graph:
    """Make invariants of unchanged carries, inner loops first."""

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = on_operands(node, operands, [canonicalize_loops(region) for region in node.regions])
        results: tuple[Value, ...] = copy.results
        if node.op is while_:
            copy, results = _without_unchanged(copy)
        nodes.append(copy)
        return results

    return with_nodes(graph, put)


def _is_decided_before(w: WhileParts, unchanged: Collection[int]) -> bool:
    """Whether the loop makes no trip, or has no end, for nothing changes that its test reads.

    If it has no end its results are those of no trip, which nobody may be given.
    """
    behind = backward_slice([w.predicate], w.before.params)
    read = {w.predicate, *(value for node in behind for value in node.operands)}
    changing = {param for i, param in enumerate(w.before_carry) if i not in unchanged}
    return read.isdisjoint(changing)


def _without_unchanged(node: Node) -> tuple[Node, tuple[Value, ...]]:
    """The loop with unchanged carries as invariants, and what stands for its results."""
    w = WhileParts.of(node)
    unchanged = {}  # position of the carry -> position where it is forwarded
    for i, (start, param, last) in enumerate(
        zip(w.carry, w.before_carry, w.next_carry, strict=True)
    ):
        if param in w.forwarded and last in w.after_forwarded and start.type == param.type:
            place = w.after_forwarded.index(last)
            if w.forwarded[place] is param:
                unchanged[i] = place
    if not unchanged or _is_decided_before(w, unchanged):
        return node, node.results
    places = set(unchanged.values())
    carry = [i for i in range(len(w.carry)) if i not in unchanged]
    forwarded = [i for i in range(len(w.forwarded)) if i not in places]
    loose_before = [w.before_carry[i] for i in unchanged]
    loose_after = [w.after_forwarded[place] for place in unchanged.values()]
    before = Graph(
        w.before.name,
        (*(w.before_carry[i] for i in carry), *w.before_invariants, *loose_before),
        w.before.nodes,
        (w.predicate, *(w.forwarded[i] for i in forwarded)),
    )
    after = Graph(
        w.after.name,
        (*(w.after_forwarded[i] for i in forwarded), *w.after_invariants, *loose_after),
        w.after.nodes,
        tuple(w.next_carry[i] for i in carry),
    )
    starts = [w.carry[i] for i in unchanged]
    new = Node(
        node.op,
        [*(w.carry[i] for i in carry), *w.invariants, *starts],
        {"carry": len(carry)},
        (before, after),
        [node.results[i].type for i in forwarded],
        node.source,
    )
    keep_names([node.results[i] for i in forwarded], new.results)
    given = dict(zip(forwarded, new.results, strict=True))
    given.update({place: w.carry[i] for i, place in unchanged.items()})
    return new, tuple(given[i] for i in range(len(node.results)))
