"""Strip mining: a loop becomes a loop over blocks of at most so many of its trips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, copy_nodes, keep_names
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.ops.loop_counters import MAX_TRIPS, as_integer, outer_value, tested_counter

# Appends the loop over the trips of one block, changed or not, and returns its results
AppendBlock: TypeAlias = Callable[[Build, Node], Sequence[Value]]


def can_strip_mine(w: WhileParts) -> bool:
    """Return whether a counter, by one a trip, is all that `before` computes and tests."""
    tested = tested_counter(w)
    if tested is None or abs(tested.step) != 1 or {*w.before_carry} != {*w.forwarded}:
        return False
    # The end of a block is within 64 bits where a trip count can be
    ends = as_integer(tested.start), as_integer(outer_value(w, tested.bound))
    if not any(end is not None and abs(end) <= MAX_TRIPS for end in ends):
        return False
    others = [node for node in w.before.nodes if node is not w.predicate.node]
    return all(not node.operands and node.op.effect is Effect.NONE for node in others)


def strip_mine(loop: Node, trips: int, append_block: AppendBlock) -> Node:
    """Return a loop over blocks of at most `trips` trips; `can_strip_mine` holds for its parts."""
    w = WhileParts.of(loop)
    tested = tested_counter(w)
    assert tested is not None
    params = [Value(x.type) for x in w.after.params]
    keep_names(w.after.params, params)
    forwarded, invariants = params[: len(w.forwarded)], params[len(w.forwarded) :]
    carry = [forwarded[w.forwarded.index(x)] for x in w.before_carry]
    b = Build("")
    b.source = loop.source
    bound = as_integer(tested.bound)
    last = (
        invariants[w.before_invariants.index(tested.bound)] if bound is None else b.integer(bound)
    )
    by = tested.step * (trips - tested.is_inclusive)
    end = b.add(carry[w.before_carry.index(tested.param)], b.integer(by))
    end = b.emit(elementwise.minimum if tested.step > 0 else elementwise.maximum, end, last)
    block = _block(loop, w, tested.bound, [*carry, *invariants, end])
    results = append_block(b, block)
    next_carry = tuple(results[w.forwarded.index(x)] for x in w.before_carry)
    after = Graph(w.after.name, tuple(params), tuple(b.nodes), next_carry)
    return copy_node(loop, loop.operands, (w.before, after))


def _block(loop: Node, w: WhileParts, bound: Value, operands: Sequence[Value]) -> Node:
    """Return the loop that ends at its last operand, and no longer at a bound."""
    params = [Value(x.type) for x in (*w.before.params, w.before_carry[0])]
    params[-1] = Value(bound.type)
    keep_names(w.before.params, params[:-1])
    mapping = dict(zip(w.before.params, params, strict=False))
    mapping[bound] = params[-1]
    others = [node for node in w.before.nodes if bound not in node.results]
    nodes = copy_nodes(others, mapping)
    results = tuple(mapping.get(x, x) for x in w.before.results)
    before = Graph(w.before.name, tuple(params), tuple(nodes), results)
    after_params = (*w.after.params, Value(bound.type))
    after = Graph(w.after.name, after_params, w.after.nodes, w.after.results)
    return copy_node(loop, operands, (before, after))
