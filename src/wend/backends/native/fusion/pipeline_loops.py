"""Software pipelining: the second stage of a loop runs one trip behind the first.

A body splits into two stages where what a trip of the first needs is never computed by the second:
each is a union of strongly connected components of the carry. Of a loop `while p(a): a, x = A(a);
b = B(b, x)` this makes

    if p(a): a, x = A(a); (while p(a): b = B(b, x) | a, x = A(a)); b = B(b, x)

in which A and B of one trip do not need each other, so `concurrent_nodes` runs them at once. What
crosses is carried: a ring of one record. In the order of the program B of a trip stands before A of
the next, so the first trip that fails decides the error; in one trip, nothing of B that may fail
stands before what may fail in A.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.fusion.concurrent_nodes import has_groups, long_tasks
from wend.backends.native.fusion.gemm_accumulate import accumulator_of
from wend.backends.native.fusion.op_classes import reduction_of
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes, keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import contracting
from wend.ops.build import Build
from wend.ops.control import WhileParts, if_, while_
from wend.ops.frame_states import frame_state, may_fail
from wend.passes.estimate_work import total_work


def pipeline_loops(graph: Graph, pipelined: list[Node]) -> Graph:
    """Pipeline the loops that gain from it, inner ones first.

    Args:
        graph: the graph.
        pipelined: the loops that this was done to are appended.
    """
    if while_ not in graph.ops:
        return graph
    return _pipelined(graph, pipelined, frame_state not in graph.ops)


def _pipelined(graph: Graph, pipelined: list[Node], tasks_may_fail: bool) -> Graph:
    def pipeline(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = node.regions
        if node.op in (while_, if_):
            regions = tuple(_pipelined(region, pipelined, tasks_may_fail) for region in regions)
        copy = with_operands(node, operands, regions)
        stages = _stages_of(copy) if node.op is while_ else None
        new = None if stages is None else stages.pipelined(copy, tasks_may_fail)
        if new is None:
            nodes.append(copy)
            return copy.results
        pipelined.append(node)
        nodes += new
        keep_names(node.results, new[-1].results)
        return new[-1].results

    return rewrite_nodes(graph, pipeline)


def pipeline_remarks(loops: Sequence[Node]) -> Iterator[str]:
    """Yield what `explain` says of each loop that is pipelined."""
    for loop in loops:
        yield f"runs the loop{at(loop.source)} in two stages, the second a trip behind the first"


@dataclass(frozen=True, slots=True)
class _Stages:
    """The stages of a loop whose test forwards carries and invariants unchanged.

    Attributes:
        w: the loop.
        first: the nodes of `after` that are the first stage; others are the second.
        carried: the positions of the carries of the first stage.
    """

    w: WhileParts
    first: frozenset[Node]
    carried: frozenset[int]

    def pipelined(self, loop: Node, tasks_may_fail: bool) -> list[Node] | None:
        """Return the nodes that replace the loop.

        None where the stages would not run at once, or BLAS would add other products in place.
        """
        w, count = self.w, len(self.w.carry)
        b = Build("")
        b.source = w.source
        before: dict[Value, Value] = dict(zip(w.before.params, loop.operands, strict=True))
        b.nodes += copy_nodes(w.before.nodes, before)
        body = Build("pipelined")
        body.source = w.source
        params = [body.param(x.type, x.name) for x in loop.operands]
        carry, invariants = params[:count], params[count:]
        crossing = self._crossing()
        if not all(x.tensor.is_static for x in crossing):
            return None
        # The first trip of the first stage
        mapping = self._inside(dict(enumerate(carry)), invariants)
        nexts = self._run(body, self.first, mapping)
        xs = [mapping[x] for x in crossing]
        at_once = sorted(self.carried)
        behind = [k for k in range(count) if k not in self.carried]
        starts = [*(nexts[k] for k in at_once), *xs, *(carry[k] for k in behind)]
        inner = self._loop(crossing, at_once, behind, starts, invariants)
        body.nodes.append(inner)
        # The last trip of the second
        a, x, c = (
            inner.results[: len(at_once)],
            inner.results[len(at_once) : len(at_once) + len(xs)],
            inner.results[len(at_once) + len(xs) :],
        )
        final = dict(zip(at_once, a, strict=True))
        mapping = self._inside(dict(zip(behind, c, strict=True)), invariants)
        mapping.update(zip(crossing, x, strict=True))
        nexts = self._run(body, self._second(), mapping)
        final.update((k, nexts[k]) for k in behind)
        places = dict(
            zip(w.before.params, [*(final[k] for k in range(count)), *invariants], strict=True)
        )
        some = body.finish([places[x] for x in w.forwarded])
        none = Build("no trip")
        params = [none.param(x.type, x.name) for x in loop.operands]
        places = dict(zip(w.before.params, params, strict=True))
        branches = none.finish([places[x] for x in w.forwarded]), some
        count, after = _accumulated(w.after), inner.regions[1]
        if _accumulated(some) != count or _accumulated(after) != count:
            return None
        if not has_groups(after, tasks_may_fail):
            return None
        b.if_(before[w.predicate], [*loop.operands], branches)
        return b.nodes

    def fails_first(self) -> bool:
        """Return whether in a trip nothing of the second stage may fail before the first may."""
        failing = [node in self.first for node in self.w.after.nodes if may_fail(node)]
        return failing == sorted(failing, reverse=True)

    def _second(self) -> frozenset[Node]:
        return frozenset(self.w.after.nodes) - self.first

    def _inside(
        self, carry: Mapping[int, Value], invariants: Sequence[Value]
    ) -> dict[Value, Value]:
        """Return what stands for the params of `after`, given carries by position."""
        w = self.w
        places = dict(zip(w.before_invariants, invariants, strict=True))
        places.update((w.before_carry[k], x) for k, x in carry.items())
        inside = dict(zip(w.after_invariants, invariants, strict=True))
        pairs = zip(w.after_forwarded, w.forwarded, strict=True)
        inside.update((inner, places[x]) for inner, x in pairs if x in places)
        return inside

    def _run(
        self, b: Build, stage: frozenset[Node], mapping: dict[Value, Value]
    ) -> dict[int, Value]:
        """Append a trip of a stage; return its next carries by position."""
        b.nodes += copy_nodes([node for node in self.w.after.nodes if node in stage], mapping)
        nexts = enumerate(self.w.next_carry)
        return {k: mapping[x] for k, x in nexts if x in mapping}

    def _crossing(self) -> list[Value]:
        """Return the values of a trip of the first stage that the second one reads."""
        w = self.w
        own = {x for node in self.first for x in node.results}
        carries = {w.before_carry[k] for k in self.carried}
        own |= {
            inner for inner, x in zip(w.after_forwarded, w.forwarded, strict=True) if x in carries
        }
        second = self._second()
        read = [x for node in w.after.nodes if node in second for x in node.operands]
        read += [x for k, x in enumerate(w.next_carry) if k not in self.carried]
        return [*dict.fromkeys(x for x in read if x in own)]

    def _loop(
        self,
        crossing: Sequence[Value],
        at_once: Sequence[int],
        behind: Sequence[int],
        starts: Sequence[Value],
        invariants: Sequence[Value],
    ) -> Node:
        w = self.w
        before, after = Build(w.before.name), Build(w.after.name)
        params = [before.param(x.type, x.name) for x in starts]
        fixed = [before.param(x.type, x.name) for x in invariants]
        test: dict[Value, Value] = dict(zip(w.before_invariants, fixed, strict=True))
        test.update((w.before_carry[k], params[j]) for j, k in enumerate(at_once))
        before.nodes += copy_nodes(w.before.nodes, test)
        forwarded = [after.param(x.type, x.name) for x in starts]
        fixed = [after.param(x.type, x.name) for x in invariants]
        a = dict(zip(at_once, forwarded, strict=False))
        xs = forwarded[len(at_once) : len(at_once) + len(crossing)]
        c = dict(zip(behind, forwarded[len(at_once) + len(crossing) :], strict=True))
        mapping = self._inside(c, fixed)
        mapping.update(zip(crossing, xs, strict=True))
        second = self._run(after, self._second(), mapping)
        mapping = self._inside(a, fixed)
        first = self._run(after, self.first, mapping)
        results = [
            *(first[k] for k in at_once),
            *(mapping[x] for x in crossing),
            *(second[k] for k in behind),
        ]
        b = Build("")
        b.source = w.source
        return b.while_(
            starts,
            invariants,
            before.finish([test[w.predicate], *params]),
            after.finish(results),
            parallel_iterations=w.parallel_iterations,
        )


def _stages_of(loop: Node) -> _Stages | None:
    """Return the stages of a loop that gains from running them at once."""
    w = WhileParts.of(loop)
    heavy = long_tasks(w.after)
    if len(heavy) < 2 or w.parallel_iterations == 1 or not _may_be_split(w):
        return None
    chosen: _Stages | None = None
    least = sum(map(total_work, heavy))
    for node in heavy:
        first = _needed(w, [*node.operands, *node.results])
        second = [other for other in heavy if other not in first.first]
        follows = any(_depends(w.after, other, first.first & {*heavy}) for other in second)
        longest = max(sum(map(total_work, part)) for part in (second, {*heavy} - {*second}))
        if second and follows and longest < least and first.fails_first():
            if _sums_across(w.after, first.first, {*heavy}):
                continue
            chosen, least = first, longest
    return chosen


def _sums_across(graph: Graph, first: frozenset[Node], heavy: set[Node]) -> bool:
    """Return whether the second stage sums what it makes of elements of the first.

    In one loop with those, it may add them in another order.
    """
    near = {x for node in first for x in node.results if x.tensor.shape != ()}
    for node in graph.nodes:
        if node not in first and node not in heavy and not near.isdisjoint(node.operands):
            if reduction_of(node) is not None:
                return True
            near.update(x for x in node.results if x.tensor.shape != ())
    return False


def _may_be_split(w: WhileParts) -> bool:
    """Return whether no order but that of values is lost where trips overlap."""
    params = {*w.before.params}
    nodes = [*w.before.walk(), *w.after.walk()]
    return (
        all(x in params for x in w.forwarded)
        and all(isinstance(x.type, TensorType) and x.type.is_static for x in w.before_carry)
        and all(isinstance(x.type, TensorType) for node in w.after.nodes for x in node.results)
        and not any(node.op.effect is not Effect.NONE for node in nodes)
        and not any(map(may_fail, w.before.nodes))
    )


def _needed(w: WhileParts, values: Sequence[Value]) -> _Stages:
    """Return the stages of which the first computes some values and the test."""
    forwarded = dict(zip(w.after_forwarded, w.forwarded, strict=True))
    positions = {x: k for k, x in enumerate(w.before_carry)}
    nodes: set[Node] = set()
    carried: set[int] = set()
    pending = [*values]
    tested = {x for node in w.before.nodes for x in node.operands} | {w.predicate}
    pending += [w.next_carry[k] for x, k in positions.items() if x in tested]
    carried |= {k for x, k in positions.items() if x in tested}
    while pending:
        value = pending.pop()
        position = positions.get(forwarded.get(value, value))
        if position is not None and position not in carried:
            carried.add(position)
            pending.append(w.next_carry[position])
        if value.node is not None and value.node not in nodes:
            nodes.add(value.node)
            pending += value.node.operands
    return _Stages(w, frozenset(nodes), frozenset(carried))


def _depends(graph: Graph, node: Node, others: frozenset[Node]) -> bool:
    """Return whether a node needs one of others in its own trip."""
    visited, pending = set[Node](), [node]
    while pending:
        for x in pending.pop().operands:
            if x.node is not None and x.node not in visited:
                visited.add(x.node)
                pending.append(x.node)
    return not visited.isdisjoint(others)


def _accumulated(graph: Graph) -> int:
    """Return how many products of a region BLAS would add in place."""
    uses = LastUses(graph)
    products = (node for node in graph.nodes if node.op is contracting.dot_general)
    return sum(accumulator_of(uses, node) is not None for node in products)
