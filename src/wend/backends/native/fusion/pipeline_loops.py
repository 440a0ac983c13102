"""Software pipelining: the second stage of a loop runs one trip behind the first.

Of a loop `while p(a): a, x = A(a); b = B(b, x)`, whose stages `loop_stages` finds, this makes

    if p(a): a, x = A(a); (while p(a): b = B(b, x) | a, x = A(a)); b = B(b, x)

in which A and B of one trip do not need each other, so `concurrent_nodes` runs them at once. What
crosses is carried: a ring of one record. In the order of the program B of a trip stands before A of
the next, so the first trip that fails decides the error; in one trip, nothing of B that may fail
stands before what may fail in A.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.fusion.concurrent_nodes import has_groups
from wend.backends.native.fusion.gemm_accumulate import accumulator_of
from wend.backends.native.fusion.loop_stages import UNKNOWN_SIZES, Stages, stages_of
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes, keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import contracting
from wend.ops.build import Build
from wend.ops.control import WhileParts, if_, while_
from wend.ops.frame_states import frame_state

IN_PLACE = "BLAS adds a product in place"
NOT_AT_ONCE = "its stages may not run at once"


@dataclass(frozen=True, slots=True)
class PipelinedLoop:
    """A loop, and why it is not pipelined; None: it is."""

    loop: Node
    reason: str | None


def pipeline_loops(graph: Graph, loops: list[PipelinedLoop]) -> Graph:
    """Pipeline the loops that gain from it, inner ones first.

    Args:
        graph: the graph.
        loops: the loops that this was done to are appended, and those that asked for it.
    """
    if while_ not in graph.ops:
        return graph
    return _pipelined(graph, loops, frame_state not in graph.ops)


def _pipelined(graph: Graph, loops: list[PipelinedLoop], tasks_may_fail: bool) -> Graph:
    def pipeline(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = node.regions
        if node.op in (while_, if_):
            regions = tuple(_pipelined(region, loops, tasks_may_fail) for region in regions)
        copy = with_operands(node, operands, regions)
        w = WhileParts.of(copy) if node.op is while_ else None
        if w is None or w.parallel_iterations == 1:
            nodes.append(copy)
            return copy.results
        stages = stages_of(w)
        new = stages if isinstance(stages, str) else _Skewed(stages).nodes(copy, tasks_may_fail)
        if isinstance(new, str):
            if w.parallel_iterations:
                loops.append(PipelinedLoop(node, new))
            nodes.append(copy)
            return copy.results
        loops.append(PipelinedLoop(node, None))
        nodes += new
        keep_names(node.results, new[-1].results)
        return new[-1].results

    return rewrite_nodes(graph, pipeline)


def pipeline_remarks(loops: Sequence[PipelinedLoop]) -> Iterator[str]:
    """Yield what `explain` says of each loop that is pipelined, or asked for it."""
    for x in loops:
        where = at(x.loop.source)
        if x.reason is None:
            yield f"runs the loop{where} in two stages, the second a trip behind the first"
        else:
            asked = f"parallel_iterations={x.loop.attrs['parallel_iterations']}"
            yield f"runs the loop{where} a trip at a time, despite {asked}: {x.reason}"


class _Skewed:
    """The nodes that replace a loop of two stages.

    Values are called by their origins: a param of `after` by what `before` forwards to it.

    Args:
        stages: the stages of the loop.
    """

    def __init__(self, stages: Stages) -> None:
        w = self._w = stages.w
        self._origins = dict(zip(w.after_forwarded, w.forwarded, strict=True))
        self._origins.update(zip(w.after_invariants, w.before_invariants, strict=True))
        self._carried = [k for k in range(len(w.carry)) if k in stages.carried]
        self._behind = [k for k in range(len(w.carry)) if k not in stages.carried]
        self._before = _divided(w.before.nodes, stages.first)
        self._after = _divided(w.after.nodes, stages.first)
        at_test = [w.before_carry[k] for k in self._carried]
        at_test += (x for node in self._before[0] for x in node.results)
        own = {*at_test, *(x for node in self._after[0] for x in node.results)}
        read = [x for node in self._before[1] for x in node.operands]
        used = {*w.forwarded, *read}
        # The values of the first stage that are needed after its test, and by the second stage
        self._tested = [x for x in at_test if x in used]
        read += (x for node in self._after[1] for x in node.operands)
        read += (w.next_carry[k] for k in self._behind)
        origins = (self._origins.get(x, x) for x in read)
        self._crossing = [*dict.fromkeys(x for x in origins if x in own)]

    def nodes(self, loop: Node, tasks_may_fail: bool) -> list[Node] | str:
        """Return the nodes that replace the loop, or why nothing does."""
        w = self._w
        if not all(isinstance(x.type, TensorType) and x.type.is_static for x in self._crossing):
            return UNKNOWN_SIZES
        b = Build("")
        b.source = w.source
        values = dict(zip(w.before.params, loop.operands, strict=True))
        b.nodes += copy_nodes(self._before[0], values)
        starts = [*self._tested, *self._carries_behind(), *w.before_invariants]
        operands = [values[x] for x in starts]
        some, after = self._some_trips(starts)
        count = _accumulated(w.after)
        if _accumulated(some) != count or _accumulated(after) != count:
            return IN_PLACE
        if not has_groups(after, tasks_may_fail):
            return NOT_AT_ONCE
        b.if_(values[w.predicate], operands, (self._no_trip(starts), some))
        return b.nodes

    def _carries_behind(self) -> list[Value]:
        return [self._w.before_carry[k] for k in self._behind]

    def _no_trip(self, starts: Sequence[Value]) -> Graph:
        b = Build("no trip")
        values = _params(b, starts)
        self._run(b, self._before[1], values)
        return b.finish([values[x] for x in self._w.forwarded])

    def _some_trips(self, starts: Sequence[Value]) -> tuple[Graph, Graph]:
        """Return the first trip of one stage, the loop, the last trip of the other; the body."""
        w, b = self._w, Build("pipelined")
        b.source = w.source
        values = _params(b, starts)
        invariants = {x: values[x] for x in w.before_invariants}
        self._run(b, self._after[0], values)
        carry = [values[w.next_carry[k]] for k in self._carried]
        carry += (values[x] for x in (*self._crossing, *self._carries_behind()))
        loop = self._loop(b, carry, [*invariants.values()])
        results = loop.results
        count = len(self._tested)
        behind = (*self._crossing, *self._carries_behind())
        values = invariants | dict(zip(behind, results[count:], strict=True))
        nexts = self._second_stage(b, values)
        values = invariants | dict(zip(self._tested, results[:count], strict=True))
        values.update(zip(self._carries_behind(), nexts, strict=True))
        self._run(b, self._before[1], values)
        return b.finish([values[x] for x in w.forwarded]), loop.regions[1]

    def _loop(self, b: Build, carry: Sequence[Value], invariants: Sequence[Value]) -> Node:
        """Append the loop; its results are of the first stage, what crosses, of the second."""
        w = self._w
        before, after = Build(w.before.name), Build(w.after.name)
        behind = (*self._crossing, *self._carries_behind())
        first = [w.before_carry[k] for k in self._carried]
        values = _params(before, first)
        passed = [before.param(x.type, x.name) for x in behind]
        values |= _params(before, w.before_invariants)
        before.nodes += copy_nodes(self._before[0], values)
        test = before.finish([values[w.predicate], *(values[x] for x in self._tested), *passed])
        tested, passed_on = _params(after, self._tested), _params(after, behind)
        fixed = _params(after, w.before_invariants)
        nexts = self._second_stage(after, fixed | passed_on)
        values = fixed | tested
        self._run(after, self._after[0], values)
        following = [values[w.next_carry[k]] for k in self._carried]
        following += (values[x] for x in self._crossing)
        return b.while_(
            carry,
            invariants,
            test,
            after.finish([*following, *nexts]),
            parallel_iterations=w.parallel_iterations,
        )

    def _second_stage(self, b: Build, values: dict[Value, Value]) -> list[Value]:
        """Append a trip of the second stage; return its next carries."""
        self._run(b, self._before[1], values)
        self._run(b, self._after[1], values)
        return [values[self._w.next_carry[k]] for k in self._behind]

    def _run(self, b: Build, nodes: Iterable[Node], values: dict[Value, Value]) -> None:
        """Append copies of nodes; values are those of origins, to which the results are added."""
        values.update((x, values[y]) for x, y in self._origins.items() if y in values)
        b.nodes += copy_nodes(nodes, values)


def _params(b: Build, values: Iterable[Value]) -> dict[Value, Value]:
    """Add params that stand for values."""
    return {x: b.param(x.type, x.name) for x in values}


def _divided(nodes: Sequence[Node], first: frozenset[Node]) -> tuple[list[Node], list[Node]]:
    return [x for x in nodes if x in first], [x for x in nodes if x not in first]


def _accumulated(graph: Graph) -> int:
    """Return how many products of a region BLAS would add in place."""
    uses = LastUses(graph)
    products = (node for node in graph.nodes if node.op is contracting.dot_general)
    return sum(accumulator_of(uses, node) is not None for node in products)
