"""Minima and maxima of integers compare last what depends on the trip before.

In `here = min(up + 1, here + 1, corner)` each trip waits for the one before: with `here + 1`
compared last, for one comparison instead of two. Operands are ordered by rank, as in LLVM's
reassociation of sums (Briggs and Cooper, 1994). Integers alone: NaN and −0.0 are neither.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import copy_nodes, rebuild_graph, rewrite_nodes, with_operands
from wend.ir.traverse import users_of
from wend.ir.types import TensorType
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_

_EXTREMA = elementwise.minimum, elementwise.maximum, elementwise.select
_LESS = elementwise.lt, elementwise.le
_MORE = elementwise.gt, elementwise.ge


def reassociate_minima(graph: Graph) -> Graph:
    """Order the operands of minima and maxima in the loops of a graph, inner loops first."""
    if while_ not in graph.ops or graph.ops.isdisjoint(_EXTREMA):
        return graph

    def reassociate(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [reassociate_minima(region) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if copy.op is while_:
            w = WhileParts.of(copy)
            copy = with_operands(copy, operands, [w.before, _ordered(w)])
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, reassociate)


@dataclass(frozen=True, slots=True)
class _Extremum:
    """A minimum or a maximum of scalars.

    Attributes:
        op: `minimum` or `maximum`.
        node: the node that gives it, a `select` where Python's `min` was called.
        operands: what it compares.
    """

    op: Op
    node: Node
    operands: tuple[Value, Value]

    @property
    def nodes(self) -> set[Node]:
        """The node and the comparison that it selects by."""
        of_selector = self.node.operands[0].node if self.node.op is elementwise.select else None
        return {self.node} if of_selector is None else {self.node, of_selector}


def _extremum(node: Node) -> _Extremum | None:
    """Return the minimum or maximum of integers that a node gives, if it gives one."""
    type = node.results[0].type if node.results else None
    if not isinstance(type, TensorType) or type.shape != () or type.dtype.kind not in "iu":
        return None
    if node.op in _EXTREMA[:2]:
        x, y = node.operands
        return _Extremum(node.op, node, (x, y))
    test = node.operands[0].node if node.op is elementwise.select else None
    if test is None or test.op not in (*_LESS, *_MORE):
        return None
    x, y = node.operands[1:]
    is_in_order = test.operands == (x, y)
    if x.type != type or y.type != type or not (is_in_order or test.operands == (y, x)):
        return None
    is_minimum = (test.op in _LESS) == is_in_order
    return _Extremum(elementwise.minimum if is_minimum else elementwise.maximum, node, (x, y))


def _ordered(w: WhileParts) -> Graph:
    """Return the body of a loop in which minima and maxima compare last what comes last."""
    extrema = {x.node.results[0]: x for node in w.after.nodes if (x := _extremum(node))}
    inner = _inner(w.after, extrema)
    if not inner:
        return w.after
    recurrences, replaced = _Recurrences(w), {}
    for result in extrema.keys() - inner:
        extremum = extrema[result]
        leaves = _leaves(extremum, extrema, inner)
        late = recurrences.late(result, leaves)
        if 0 < len(late) < len(leaves) > 2:
            early = [x for x in leaves if x not in late]
            replaced[extremum.node] = _chain(extremum, [*early, *late])
    if not replaced:
        return w.after
    mapping: dict[Value, Value] = {}
    nodes = copy_nodes(w.after.nodes, mapping, replaced)
    results = [mapping.get(x, x) for x in w.after.results]
    return rebuild_graph(w.after, w.after.params, nodes, results)


def _inner(region: Graph, extrema: Mapping[Value, _Extremum]) -> set[Value]:
    """Return the minima that only one other minimum reads, and maxima likewise."""
    users = users_of(region.nodes)
    inner = {
        x
        for extremum in extrema.values()
        for x in extremum.operands
        if x in extrema and extrema[x].op is extremum.op and extremum.nodes.issuperset(users[x])
    }
    return inner - {*region.results}


def _leaves(
    root: _Extremum, extrema: Mapping[Value, _Extremum], inner: Container[Value]
) -> list[Value]:
    """Return what a tree of minima compares, in order and each once."""
    leaves: dict[Value, None] = {}
    waiting = [*reversed(root.operands)]
    while waiting:
        x = waiting.pop()
        if x in inner:
            waiting += reversed(extrema[x].operands)
        else:
            leaves[x] = None
    return [*leaves]


def _chain(root: _Extremum, leaves: Sequence[Value]) -> list[Node]:
    """Return nodes that compare two values, and what they give with each of the others."""
    b = Build("")
    b.source = root.node.source
    first, *others = leaves
    for x in others:
        first = b.emit(root.op, first, x)
    return b.nodes


class _Recurrences:
    """Which scalars of a loop's body depend on which of the trip before, by way of scalars.

    A set of carries is an integer with a bit for each of them.
    """

    def __init__(self, w: WhileParts) -> None:
        tested = _sources(w.before, {x: 1 << k for k, x in enumerate(w.before_carry)})
        carries = zip(w.after_forwarded, w.forwarded, strict=True)
        self.sources = _sources(w.after, {x: tested.get(y, 0) for x, y in carries})
        self.depths = _depths(w.after)
        self.targets = {x: 1 << k for k, x in enumerate(w.next_carry)}
        for node in reversed(w.after.nodes):
            reached = reduce(or_, (self.targets.get(x, 0) for x in node.results), 0)
            for x in node.operands if reached else ():
                if _is_scalar(x):
                    self.targets[x] = self.targets.get(x, 0) | reached
        self.reached = _closure([self.sources.get(x, 0) for x in w.next_carry])

    def late(self, result: Value, leaves: Iterable[Value]) -> list[Value]:
        """Return the leaves that depend on the result of the trip before, the deepest last."""
        targets = self.targets.get(result, 0)
        reached = reduce(or_, (x for k, x in enumerate(self.reached) if targets >> k & 1), 0)
        late = [x for x in leaves if self.sources.get(x, 0) & reached]
        return sorted(late, key=lambda x: self.depths.get(x, 0))


def _closure(sources: Sequence[int]) -> Sequence[int]:
    """Return the carries that depend on each carry after some trips, or none (Warshall, 1962).

    `sources` are those that each depends on after one trip.
    """
    numbers = range(len(sources))
    reached = [sum(1 << i for i in numbers if i == k or sources[i] >> k & 1) for k in numbers]
    for k in numbers:
        for i in numbers:
            if reached[i] >> k & 1:
                reached[i] |= reached[k]
    return reached


def _is_scalar(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.shape == ()


def _sources(region: Graph, sources: dict[Value, int]) -> dict[Value, int]:
    """Return the carries that each scalar of a region depends on, given those of its params."""
    sources = {x: carries for x, carries in sources.items() if _is_scalar(x)}
    for node in region.nodes:
        carries = reduce(or_, (sources.get(x, 0) for x in node.operands), 0)
        if carries:
            sources.update((x, carries) for x in node.results if _is_scalar(x))
    return sources


def _depths(region: Graph) -> dict[Value, int]:
    """Return how many nodes, one after another, compute each scalar of a region."""
    depths: dict[Value, int] = {}
    for node in region.nodes:
        depth = 1 + max((depths.get(x, 0) for x in node.operands), default=0)
        depths.update((x, depth) for x in node.results if _is_scalar(x))
    return depths
