"""Loop-invariant code motion.

Code moved out of `after` runs even where the loop makes no trip. So operations move by themselves
only if they are cheap and cannot fail. Those that take long or may fail move behind a guard, an
`if` on the first test of the loop, unless it is known to make a trip; where one fails, nothing that
the first trip does before may be seen. Loops are changed in graphs about to run, not in graphs to
be differentiated: a value that no trip used would get a derivative, and 0 · inf is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes, lift, rewrite_nodes, with_operands
from wend.ir.traverse import backward_slice
from wend.ir.types import TensorType
from wend.ops import creating
from wend.ops.build import Build
from wend.ops.control import WhileParts, call, if_, while_
from wend.ops.loop_counters import trip_count
from wend.passes.dce import dce
from wend.passes.fold import fold

_MAX_GUARD_NODES = 30  # of a test that is evaluated once more
_Part: TypeAlias = tuple[Graph, Sequence[Value], Sequence[Value]]


def hoist(graph: Graph) -> Graph:
    """Move loop-invariant nodes out of loops, inner loops first."""
    return _hoist(graph, True)


def hoist_from_all_trips(graph: Graph, is_wanted: Callable[[Node], bool]) -> Graph:
    """Move loop-invariant nodes out of the loops of which some node is wanted, inner loops first.

    What moves runs in the first trip of the loop or not at all, so the graph may be differentiated.
    """
    if while_ not in graph.ops:
        return graph

    def hoist_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [hoist_from_all_trips(region, is_wanted) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if copy.op is while_:
            moved, copy = _hoist_guarded(copy, is_wanted)
            nodes += moved
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, hoist_node)


def _hoist(graph: Graph, has_guards: bool) -> Graph:
    if while_ not in graph.ops:
        return graph

    def hoist_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        is_scalar_code = has_guards and node.op in (while_, if_, call)  # no lanes
        regions = [_hoist(region, is_scalar_code) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if copy.op is while_:
            moved, copy = _hoist_from_loop(copy)
            nodes += moved
            if has_guards and (copy.remark is None or copy.remark.lanes is None):
                moved, copy = _hoist_guarded(copy, _takes_long)
                nodes += moved
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, hoist_node)


def _hoist_from_loop(loop: Node) -> tuple[list[Node], Node]:
    """Return the nodes to put before a loop, and the loop that takes their results.

    Constants are not moved by themselves: machine code materializes them where they are used.
    """
    w = WhileParts.of(loop)
    hoisted: list[Node] = []
    parts = []
    for region, invariants in ((w.before, w.before_invariants), (w.after, w.after_invariants)):
        inner = _hoistable(region, invariants)
        outer = lift(inner, hoisted, dict(zip(invariants, w.invariants, strict=True)))
        parts.append((region, inner, [outer[value] for value in inner]))
    return hoisted, _reading(loop, hoisted, parts)


def _reading(loop: Node, hoisted: Sequence[Node], parts: Sequence[_Part]) -> Node:
    """Return the loop with values of its regions that nodes before it compute.

    `parts` has for each region these values, and what gives them before the loop.
    """
    if not hoisted:
        return loop
    for node in hoisted:
        node.remark = Remark(loop=loop.source)
    values = [value for _, _, outer in parts for value in outer]
    regions, first = [], 0
    for region, inner, outer in parts:
        regions.append(_with_hoisted(region, inner, first, values))
        first += len(outer)
    operands, types = (*loop.operands, *values), [result.type for result in loop.results]
    copy = Node(loop.op, operands, loop.attrs, regions, types, loop.source)
    copy.remark = loop.remark
    return copy


def _hoist_guarded(loop: Node, is_wanted: Callable[[Node], bool]) -> tuple[list[Node], Node]:
    """Hoist what may fail, too, if some of it is wanted: nodes to put before the loop, the loop."""
    w = WhileParts.of(loop)
    in_before, is_open = _first_in(w.before, w.before_invariants, True)
    in_after, _ = _first_in(w.after, w.after_invariants, is_open)
    is_guarded = bool(in_after) and not _makes_a_trip(w)
    if is_guarded and not can_test_twice(w):
        in_after = []
    if not any(map(is_wanted, (*in_before, *in_after))):
        return [], loop
    b = Build("")
    b.source = loop.source
    of_before = dict(zip(w.before_invariants, w.invariants, strict=True))
    before_values = _read_besides(w.before, in_before)
    of_before = lift(before_values, b.nodes, of_before)
    hoisted = [*b.nodes]
    of_after = dict(zip(w.after_invariants, w.invariants, strict=True))
    after_values = _read_besides(w.after, in_after)
    if is_guarded and in_after:
        node = guarded(b, first_test(b, w, of_before), after_values, of_after)
        hoisted += node.regions[1].nodes
        of_after = dict(zip(after_values, node.results, strict=True))
    else:
        first = len(b.nodes)
        of_after = lift(after_values, b.nodes, of_after)
        hoisted += b.nodes[first:]
    parts = [
        (_without(w.before, in_before), before_values, [of_before[x] for x in before_values]),
        (_without(w.after, in_after), after_values, [of_after[x] for x in after_values]),
    ]
    return b.nodes, _reading(loop, hoisted, parts)


def first_test(b: Build, w: WhileParts, computed: Mapping[Value, Value] | None = None) -> Value:
    """Append the test before the first trip; some values of `before` may be computed already."""
    outer = dict(zip(w.before.params, (*w.carry, *w.invariants), strict=True))
    return lift([w.predicate], b.nodes, {**outer, **(computed or {})})[w.predicate]


def guarded(b: Build, test: Value, values: Sequence[Value], outer: Mapping[Value, Value]) -> Node:
    """Append an `if` that computes values of a region where a test holds, and gives zeros else."""
    read = {x for node in backward_slice(values, outer) for x in node.operands}
    read.update(values)
    operands = [x for x in outer if x in read]
    computing, zeros = Build("branch1"), Build("branch0")
    computing.source = zeros.source = b.source
    for x in operands:
        zeros.param(x.type)
    params = {x: computing.param(x.type) for x in operands}
    results = lift(values, computing.nodes, params)
    taken = computing.finish([results[x] for x in values])
    untaken = dce(fold(zeros.finish([zeros.zeros_like(x) for x in values])))
    return b.if_(test, [outer[x] for x in operands], (untaken, taken))


def _first_in(region: Graph, invariants: Sequence[Value], is_open: bool) -> tuple[list[Node], bool]:
    """Return the nodes that may run before the first trip does, and whether others may follow.

    What may fail moves only if nothing before it stays that may fail or has an effect.
    """
    constant = {v for node in region.nodes if node.op is creating.constant for v in node.results}
    invariant = {*invariants, *constant}
    moved = []
    for node in region.nodes:
        may_fail = may_end_run(node)
        is_known = node.op is not creating.constant and invariant.issuperset(node.operands)
        if is_known and _is_pure(node) and (is_open or not may_fail):
            moved.append(node)
            invariant.update(node.results)
        elif may_fail:
            is_open = False
    return moved, is_open


def _read_besides(region: Graph, moved: Sequence[Node]) -> list[Value]:
    """Return the results of nodes that the other nodes of a region, or its results, read."""
    results = {x for node in moved for x in node.results}
    others = set(region.nodes).difference(moved)
    read = [x for node in region.nodes if node in others for x in node.operands]
    return [x for x in dict.fromkeys((*read, *region.results)) if x in results]


def _without(region: Graph, nodes: Sequence[Node]) -> Graph:
    removed = {*nodes}
    remaining = tuple(node for node in region.nodes if node not in removed)
    return Graph(region.name, region.params, remaining, region.results)


def may_end_run(node: Node) -> bool:
    """Return whether a node, or one in its regions, may fail or has an effect."""
    inner = (node, *(x for region in node.regions for x in region.walk()))
    return any(x.op.effect is not Effect.NONE or x.op.may_fail(x) for x in inner)


def _is_pure(node: Node) -> bool:
    """Return whether a node computes arrays of known sizes from arrays, and can do no more."""
    inner = (node, *(x for region in node.regions for x in region.walk()))
    values = (value for x in inner for value in (*x.operands, *x.results))
    return all(
        x.op.effect is Effect.NONE and x.op.is_portable and (x.op is if_ or not x.regions)
        for x in inner
    ) and all(isinstance(x.type, TensorType) and x.type.is_static for x in values)


def _takes_long(node: Node) -> bool:
    """Return whether a node, or one in its regions, is neither cheap nor one of scalars."""
    if node.regions:
        return any(_takes_long(x) for region in node.regions for x in region.nodes)
    is_scalar = all(x.tensor.shape == () for x in (*node.operands, *node.results))
    return not (is_scalar or node.op.is_cheap or node.op.is_speculatable)


def _makes_a_trip(w: WhileParts) -> bool:
    count = trip_count(w)
    return isinstance(count, int) and count > 0


def can_test_twice(w: WhileParts) -> bool:
    """Return whether the first test of a loop may be evaluated once more, before the loop."""
    nodes = backward_slice([w.predicate], w.before.params)
    size = sum(1 + sum(region.count() for region in node.regions) for node in nodes)
    return size <= _MAX_GUARD_NODES and all(
        _is_pure(node) and not may_end_run(node) for node in nodes
    )


def _hoistable(region: Graph, invariants: Sequence[Value]) -> list[Value]:
    """Return the invariant values of a region that its variant nodes or its results read."""
    constant = {v for node in region.nodes if node.op is creating.constant for v in node.results}
    invariant = {*invariants, *constant}
    variant = []
    for node in region.nodes:
        if _is_speculatable(node) and invariant.issuperset(node.operands):
            invariant.update(node.results)
        else:
            variant.append(node)
    read = dict.fromkeys([v for node in variant for v in node.operands])
    read.update(dict.fromkeys(region.results))
    return [v for v in read if v in invariant and v not in constant and v not in invariants]


def _with_hoisted(
    region: Graph, invariant_values: Sequence[Value], first: int, hoisted_values: Sequence[Value]
) -> Graph:
    """Return the region with a param for each hoisted value; its own start at `first`."""
    params = [Value(value.type) for value in hoisted_values]
    mapping = dict(zip(invariant_values, params[first:], strict=False))
    nodes = copy_nodes([n for n in region.nodes if not mapping.keys() >= {*n.results}], mapping)
    results = tuple(mapping.get(v, v) for v in region.results)
    return Graph(region.name, (*region.params, *params), tuple(nodes), results)


def _is_speculatable(node: Node) -> bool:
    """Return whether a node may run where its results may be unused."""
    if node.regions or node.op.effect is not Effect.NONE or node.op.may_fail(node):
        return False
    types = [value.type for value in (*node.operands, *node.results)]
    if not all(isinstance(type, TensorType) and type.is_static for type in types):
        return False  # a shape mismatch is only detected at run time
    return node.op.is_cheap or node.op.is_speculatable
