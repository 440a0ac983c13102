"""Loop versioning: where no check of a loop will fail, a copy of it without checks runs.

A check ends a trip, so LLVM does not vectorize its loop. Where what the checks test depends on no
earlier trip, a loop before it tests them all, and has no effect; it is vectorized as well. If the
loop carries numbers only, that loop computes its results, too. Where a check fails, the loop runs
as it was written, and raises in the right trip (LLVM's LoopVersioning, with an inspector before the
executor as Saltz and Mirchandaney, 1991, have it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.analysis.vectorizable_loops import is_vectorizable
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, copy_nodes, rewrite_nodes, with_operands
from wend.ir.types import Symbol
from wend.ops import effects, elementwise, indexing
from wend.ops.build import Build
from wend.ops.control import PREDICATE, WhileParts, if_, while_
from wend.ops.creating import constant
from wend.ops.loop_counters import LOOP_TESTS, trip_count
from wend.passes.dce import dce

MAX_TRIPS = 1 << 20


def version_loops(graph: Graph, can_widen: Callable[[Node], bool]) -> Graph:
    """Return a graph in which loops that are vectorized without checks have a copy without them.

    Args:
        graph: the graph.
        can_widen: whether an elementwise operation has a form for vectors.
    """
    if effects.checked not in graph.ops or while_ not in graph.ops:
        return graph

    def version(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = node.regions
        if node.op in (while_, if_):
            regions = tuple(version_loops(region, can_widen) for region in regions)
        node = with_operands(node, operands, regions)
        b = Build("")
        b.source = node.source
        chosen = _append_versions(b, node, can_widen) if node.op is while_ else None
        nodes += [node] if chosen is None else b.nodes
        return node.results if chosen is None else chosen.results

    return rewrite_nodes(graph, version)


def _append_versions(b: Build, loop: Node, can_widen: Callable[[Node], bool]) -> Node | None:
    """Append an inspector and return the choice of a version; None where that does not pay."""
    w = WhileParts.of(loop)
    if not any(node.op is effects.checked for node in w.after.nodes) or not _is_counted(w):
        return None
    unchecked = _without_checks(loop)
    if not is_vectorizable(WhileParts.of(unchecked), can_widen):
        return None
    inspector = _inspector_of(loop, b.constant(False))
    keeps_results = all(is_scalar(x.type) for x in w.carry)
    if not keeps_results:  # a store may not happen twice
        params = tuple(dict.fromkeys(inspector.operands))
        (inspector,) = dce(Graph("", params, (inspector,), inspector.results[-1:])).nodes
    inner = WhileParts.of(inspector)
    if not is_vectorizable(inner, can_widen) or not all(map(_cannot_fail, inner.after.nodes)):
        return None
    b.nodes.append(inspector)
    *results, fails = inspector.results
    if not keeps_results:
        return b.if_(fails, loop.operands, [_graph_of(unchecked), _graph_of(loop)])
    passing = Build("")
    known = [passing.param(x.type) for x in (*results, *loop.operands)][: len(results)]
    branches = [passing.finish(known), _graph_of(loop, results)]
    return b.if_(fails, [*results, *loop.operands], branches)


def _is_counted(w: WhileParts) -> bool:
    """Return whether only a counter ends a loop, whose trips are as few as elements of an array.

    The inspector makes all trips. So no trip may decide whether a later one is made, and an error
    of the first trip may not wait for a billion others.
    """
    trips = trip_count(w)
    is_bounded = isinstance(trips, Symbol) or (isinstance(trips, int) and trips <= MAX_TRIPS)
    return is_bounded and all(x.op is constant or x.op in LOOP_TESTS for x in w.before.nodes)


def _cannot_fail(node: Node) -> bool:
    is_read = node.op is indexing.gather and node.attrs.get("in_bounds", False)
    return is_read or not node.op.may_fail(node)


def _without_checks(loop: Node) -> Node:
    before, after = loop.regions
    b = Build(after.name)
    mapping = {x: b.param(x.type, x.name) for x in after.params}
    _append_unchecked(b, after, mapping)
    copy = b.finish([mapping.get(x, x) for x in after.results])
    return copy_node(loop, loop.operands, (before, copy))


def _append_unchecked(b: Build, region: Graph, mapping: dict[Value, Value]) -> list[Value]:
    """Append the nodes of a region but for checks; return what these test."""
    tested = []
    for node in region.nodes:
        if node.op is effects.checked:
            tested += [mapping[x] for x in node.operands[1:]]
            mapping[node.results[0]] = mapping[node.operands[0]]
        else:
            b.nodes += copy_nodes([node], mapping)
    return tested


def _inspector_of(loop: Node, start: Value) -> Node:
    """Return a loop without checks that carries, last, whether one of them would have failed."""
    w = WhileParts.of(loop)
    before, after = Build(w.before.name), Build(w.after.name)
    inner = {x: before.param(x.type, x.name) for x in w.before_carry}
    flag = before.param(PREDICATE)
    inner |= {x: before.param(x.type, x.name) for x in w.before_invariants}
    before.nodes += copy_nodes(w.before.nodes, inner)
    tested = before.finish([*(inner[x] for x in w.before.results), flag])

    inner = {x: after.param(x.type, x.name) for x in w.after_forwarded}
    flag = after.param(PREDICATE)
    inner |= {x: after.param(x.type, x.name) for x in w.after_invariants}
    after.source = loop.source
    fails, *others = _append_unchecked(after, w.after, inner)
    for other in others:
        fails = after.emit(elementwise.bit_or, fails, other)
    results = [*(inner[x] for x in w.next_carry), after.emit(elementwise.bit_or, flag, fails)]
    b = Build("")
    b.source = loop.source
    return b.while_([*w.carry, start], w.invariants, tested, after.finish(results))


def _graph_of(loop: Node, results: Sequence[Value] = ()) -> Graph:
    """Return a graph that runs a loop on its operands; its first params, `results`, are unused."""
    b = Build("")
    for x in results:
        b.param(x.type)
    mapping = {x: b.param(x.type, x.name) for x in loop.operands}
    (copy,) = copy_nodes([loop], mapping)
    b.nodes.append(copy)
    return b.finish(copy.results)
