"""The tape policy `"keep"`: the forward loop records every trip for the backward loop (D31)."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.activity import RegionActivity
from wend.autodiff.loop_reader import BackwardRegion, OuterShapes, after_reader, before_reader
from wend.autodiff.loop_tape import plan_tape, recording_loop
from wend.autodiff.loop_transpose import LoopCotangentActivity, transpose_after, transpose_before
from wend.autodiff.reassociate import reassociate
from wend.autodiff.transpose import Transposer
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ops.control import WhileParts


@dataclass(frozen=True, slots=True)
class DifferentiatedLoop:
    """A loop to be differentiated.

    Attributes:
        node: the `while` node.
        active_operands: for each operand whether it depends on what is differentiated.
        activity: which of its values depend on what is differentiated.
        nonzero: which of its cotangents may be nonzero.
        changing: the positions of the invariants that a loop around it changes in place.
    """

    node: Node
    active_operands: tuple[bool, ...]
    activity: RegionActivity
    nonzero: LoopCotangentActivity
    changing: frozenset[int] = frozenset()

    @property
    def parts(self) -> WhileParts:
        return WhileParts.of(self.node)


@dataclass(frozen=True, slots=True)
class LoopAdjoint:
    """A backward loop, and the forward loop that keeps what it reads.

    Attributes:
        forward_nodes: the nodes that replace the forward loop. The last one gives its results,
            in order, and then residuals.
        trips: the initial count of the backward loop.
        nonzero: the positions of the cotangents that it carries.
        outer: the forward values that its regions take as invariants.
        before: (count, cotangents…, sums…, outer…) to the predicate and the same.
        after: likewise, without a predicate; it lowers the count.
    """

    forward_nodes: Sequence[Node]
    trips: Value
    nonzero: LoopCotangentActivity
    outer: Sequence[Value]
    before: Graph
    after: Graph


def keep_all(t: Transposer, loop: DifferentiatedLoop) -> LoopAdjoint:
    """Return the backward loop of a loop that has a nonzero cotangent.

    Every trip records the fewest bytes from which the backward loop can be run.
    """
    w = loop.parts
    changing = loop.changing
    transposed_before = transpose_before(t, w, loop.activity, loop.nonzero, changing=changing)
    transposed_after = transpose_after(t, w, loop.activity, loop.nonzero, changing=changing)
    plan = plan_tape(w, transposed_before, transposed_after, t.read_only, changing)
    forward = recording_loop(loop.node, plan, transposed_before, transposed_after)
    shapes = OuterShapes(w.source)
    before = BackwardRegion("before", transposed_before, w, shapes)
    after = BackwardRegion("after", transposed_after, w, shapes)
    count = before.mapping[transposed_before.count]
    before.fill(before_reader(before, count, plan, forward))
    next_trip = after.mapping[transposed_after.params[0]]
    trip = after.b.sub(next_trip, after.b.integer(1))
    after.fill(after_reader(after, trip, next_trip, plan, forward))
    predicate = before.b.gt(count, before.b.integer(0))
    outer = [*dict.fromkeys([*before.outer_params, *after.outer_params])]
    regions = [
        reassociate(region, region.params[1 : len(region.params) - len(outer)])
        for region in (before.finish([predicate], outer), after.finish([], outer))
    ]
    nodes = [*shapes.b.nodes, *forward.nodes]
    return LoopAdjoint(nodes, forward.trips, loop.nonzero, outer, *regions)
