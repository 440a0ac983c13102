"""Scalar expansion: functions of what a counted loop reads are computed for all trips at once.

Before a loop is differentiated, what its trips compute from counters, invariants and rows alone, by
exponentials, logarithms or the like, becomes an array (Allen and Kennedy, 2001, chapter 5). Arrays
are computed in vectors, and so are their derivatives; the loop that is left has no tape of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import WhileParts, if_, while_
from wend.ops.creating import is_constant
from wend.passes.dce import dce
from wend.passes.loop_sequences import Sequences, live_outs, reading_rows

# Fewer trips do not repay the arrays; what these occupy should stay in a cache
MIN_TRIPS, MAX_BYTES = 16, 1 << 22
# A function that takes as many ns an element in vectors takes three times as many for one number
MIN_NANOSECONDS = 0.8


def expand_scalars(graph: Graph) -> Graph:
    """Return a graph whose loops read rows of arrays in place of functions of what they know."""
    return dce(_expanded(graph)) if while_ in graph.ops else graph


def _expanded(graph: Graph) -> Graph:
    def expand(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = node.regions
        if node.op in (while_, if_):
            regions = tuple(map(_expanded, regions))
        node = with_operands(node, operands, regions)
        if node.op is while_:
            node = _expanded_loop(nodes, node)
        nodes.append(node)
        return node.results

    return rewrite_nodes(graph, expand)


def _expanded_loop(nodes: list[Node], loop: Node) -> Node:
    """Return a loop that reads rows of arrays, whose computation is appended to nodes.

    A number that an arm reads stays: where the arm is not taken it has no cotangent, and the rule
    of an array would multiply a zero by a derivative that may be infinite.
    """
    w = WhileParts.of(loop)
    sequences = None if any(node.regions for node in w.after.nodes) else Sequences.of(w)
    if sequences is None or len(sequences.trips) < MIN_TRIPS:
        return loop
    chosen = [x for x in live_outs(sequences) if _repays(sequences, x)]
    size = sum(x.tensor.nbytes or 0 for x in chosen)
    if not chosen or len(sequences.trips) * size > MAX_BYTES:
        return loop
    b = Build("")
    b.source = loop.source
    arrays = sequences.for_all_trips(b, chosen)
    if arrays is None:
        return loop
    nodes += b.nodes
    return reading_rows(loop, sequences, arrays)


def _repays(sequences: Sequences, value: Value) -> bool:
    """Return whether a number differs from trip to trip, and takes a function to compute."""
    if value.tensor.shape != () or value.tensor.dtype.kind != "f":
        return False
    needed = sequences.slice_of(value)
    differs = any(x in sequences.rows or x in sequences.numbers for x in needed)
    cost = sum(_nanoseconds(sequences.nodes[x]) for x in needed if x in sequences.nodes)
    return differs and MIN_NANOSECONDS <= cost < math.inf


def _nanoseconds(node: Node) -> float:
    """Return what an element takes in vectors; it is infinite where a node is not elementwise.

    Powers by a known exponent are products.
    """
    is_product = node.op is elementwise.pow and is_constant(node.operands[1])
    return 0.0 if is_product else node.op.cost
