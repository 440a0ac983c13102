"""Independent trips of a loop run at once: loop distribution.

What a trip computes from its number, rows of arrays and invariants alone, by loops of its own, is
computed for all trips before the loop, by a `parallel_map`; the loop that is left reads the
results. So bisections, fixed points or pixels that a `for` computes one by one become vectors, or
lanes, and threads share them. The bits are those of one trip after the other.

It pays where inner loops work on a few numbers each: larger arrays are vectors by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import copy_nodes, rewrite_nodes, with_operands
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import known_values, trip_count
from wend.ops.parallel_map import STACK, parallel_map
from wend.passes.batch_lanes import MIN_ELEMENTS, MIN_IN_LANES, is_small
from wend.passes.batch_maps import batch_maps, batch_maps_around_lanes
from wend.passes.dce import dce
from wend.passes.hoist import hoist
from wend.passes.lane_maps import is_loop_of_numbers, runs_in_lanes
from wend.passes.loop_sequences import Sequences, live_outs, reading_rows, rows_of

# The fewest trips that repay lanes in registers
MIN_IN_REGISTERS = 64
# What is computed before a loop, and what its inner loops carry, occupies at most so many bytes
MAX_BYTES = 64 << 20


def distribute_loops(graph: Graph) -> Graph:
    """Compute what trips do by loops of their own for all trips at once, inner loops first."""
    return _distributed_loops(graph, in_registers=False)


def distribute_loops_to_lanes(graph: Graph) -> Graph:
    """Distribute loops for a backend that has lanes in registers, which repay fewer trips."""
    return _distributed_loops(graph, in_registers=True)


def _distributed_loops(graph: Graph, *, in_registers: bool) -> Graph:
    if while_ not in graph.ops or not any(map(_may_be_distributed, graph.walk())):
        return graph
    # Reads in inner loops of what only an outer trip decides become rows
    distributed = _distributed_graph(hoist(graph), in_registers)
    return graph if distributed is graph else dce(distributed)


def _distributed_graph(graph: Graph, in_registers: bool) -> Graph:
    def distribute(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [_distributed_graph(region, in_registers) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if _may_be_distributed(copy):
            b = Build("")
            b.nodes, b.source = nodes, copy.source
            copy = _distributed(b, copy, in_registers)
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, distribute)


def _may_be_distributed(node: Node) -> bool:
    """Return whether a node is a loop of enough known trips, with loops in each."""
    if node.op is not while_ or not any(inner.op is while_ for inner in node.regions[1].nodes):
        return False
    trips = trip_count(WhileParts.of(node))
    return isinstance(trips, int) and trips >= MIN_ELEMENTS


def _distributed(b: Build, loop: Node, in_registers: bool) -> Node:
    """Return a loop that reads the results of a map, which is appended."""
    sequences = Sequences.of(WhileParts.of(loop))
    if sequences is None:
        return loop
    chosen = [x for x in live_outs(sequences) if _repays(sequences, x, in_registers)]
    carried = [x for value in chosen for w in _loops_of(sequences, value) for x in w.next_carry]
    size = sum(x.tensor.nbytes or 0 for x in (*chosen, *dict.fromkeys(carried)))
    if not chosen or len(sequences.trips) * size > MAX_BYTES:
        return loop
    trial = Build("")
    trial.source = loop.source
    node = _append_map(trial, sequences, chosen)
    if not _runs_at_once(_closed(trial, node), in_registers):
        return loop  # one trip after the other would read and write lists
    b.nodes += trial.nodes
    reading = reading_rows(loop, sequences, dict(zip(chosen, node.results, strict=True)))
    reading.remark = replace(loop.remark or Remark(), is_distributed=True)
    return reading


def _runs_at_once(graph: Graph, in_registers: bool) -> bool:
    """Return whether no element of a map is computed after the other."""
    batched = batch_maps_around_lanes(graph) if in_registers else batch_maps(graph)
    maps = [node for node in batched.walk() if node.op is parallel_map]
    return all(in_registers and runs_in_lanes(node) for node in maps)


def _repays(sequences: Sequences, value: Value, in_registers: bool) -> bool:
    """Return whether loops of small numbers give a value, and there are enough trips."""
    loops = _loops_of(sequences, value)
    is_counted = all(map(known_values, loops))
    least = MIN_ELEMENTS if is_counted else MIN_IN_LANES
    if in_registers and all(map(is_loop_of_numbers, loops)):
        least = MIN_IN_REGISTERS
    are_small = all(is_small(x) for w in loops for x in w.after_forwarded)
    differs = any(x in sequences.rows or x in sequences.numbers for x in sequences.slice_of(value))
    return bool(loops) and are_small and differs and len(sequences.trips) >= least


def _loops_of(sequences: Sequences, value: Value) -> list[WhileParts]:
    """Return the loops that give a value."""
    nodes = dict.fromkeys(sequences.nodes.get(x) for x in sequences.slice_of(value))
    return [WhileParts.of(node) for node in nodes if node is not None and node.op is while_]


def _append_map(b: Build, sequences: Sequences, values: Sequence[Value]) -> Node:
    """Append the map over the trips that gives values; its rows are in the order of the counter."""
    w = sequences.w
    needed = {x for value in values for x in sequences.slice_of(value)}
    mapped = {x: rows_of(b, row) for x, row in sequences.rows.items() if x in needed}
    for x, numbers in sequences.numbers.items():
        if x in needed:
            mapped[x] = sequences.numbers_in_order(b, numbers)
    nodes = [
        node
        for node in w.after.nodes
        if not needed.isdisjoint(node.results) and mapped.keys().isdisjoint(node.results)
    ]
    read = {x for node in nodes for x in node.operands}
    pairs = zip(w.after_invariants, w.invariants, strict=True)
    shared = {inner: outer for inner, outer in pairs if inner in read}
    body = Build(w.after.name)
    mapping = {x: body.param(x.type, x.name) for x in (*mapped, *shared)}
    body.nodes += copy_nodes(nodes, mapping)
    graph = body.finish([mapping[x] for x in values])
    forms = [STACK] * len(values)
    return b.parallel_map([*mapped.values()], [], [*shared.values()], graph, forms)


def _closed(b: Build, node: Node) -> Graph:
    """Return the graph that has been built, with its operands for params."""
    defined = {x for inner in b.nodes for x in inner.results}
    params = dict.fromkeys(x for inner in b.nodes for x in inner.operands if x not in defined)
    return Graph("map", tuple(params), tuple(b.nodes), node.results)
