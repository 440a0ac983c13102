"""How the backward loop gets forward values back: from records, invariants, or recomputation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.autodiff.backward import is_shape_read
from wend.autodiff.loop_tape import RecordingLoop, TapePlan, record_type
from wend.autodiff.loop_transpose import Transposed
from wend.autodiff.residuals import rematerialize
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source, at
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import operands_first
from wend.ops.build import Build
from wend.ops.control import WhileParts


@dataclass(frozen=True, slots=True)
class RecordedValues:
    """The recorded values that one region reads.

    Attributes:
        lists: the list of each value that was recorded.
        segments: for each spilled value the list of segments, and its index in each of them.
    """

    lists: Mapping[Value, Value]
    segments: Mapping[Value, tuple[Value, int]]

    @staticmethod
    def of(
        forward: RecordingLoop, records: Sequence[Value], spilled: Sequence[Value]
    ) -> RecordedValues:
        """Return those of some of the values that a loop records and spills."""
        return RecordedValues(
            {value: forward.lists[value] for value in records},
            {value: forward.segments[value] for value in spilled},
        )


class Reader:
    """Reads forward values of one region at one trip, each of them once.

    Args:
        region: the backward region that reads.
        index: the position of the trip's records.
        tape: the recorded values, and where their records are.
        elsewhere: returns a value that another region holds, or None.
    """

    def __init__(
        self,
        region: BackwardRegion,
        index: Value,
        tape: RecordedValues,
        elsewhere: Callable[[Value], Value | None],
    ) -> None:
        self.region, self.index, self.tape, self.elsewhere = region, index, tape, elsewhere
        self.segments: dict[Value, Value] = {}
        self.available: dict[Value, Value] = {}

    def __call__(self, value: Value) -> Value:
        for needed in operands_first([value], self._operands_to_recompute):
            if needed not in self.available:
                self.available[needed] = self._recompute(needed)
        return self.available[value]

    def _operands_to_recompute(self, value: Value) -> Sequence[Value]:
        """Return the operands of a value that is recomputed; none where it can be read."""
        if value not in self.available:
            read = self._read(value)
            if read is not None:
                self.available[value] = read
        if value in self.available:
            return ()
        assert value.node is not None, f"{value!r} was not recorded"
        return value.node.operands

    def _read(self, value: Value) -> Value | None:
        b, region = self.region.b, self.region
        if value in region.invariants:
            return region.outer(region.invariants[value])
        if value.node is not None and is_shape_read(value.node):
            (x,) = value.node.operands
            if x in region.invariants:
                return region.outer(region.outer_shapes.read(value.node, region.invariants[x]))
        if value in self.tape.lists:
            record = b.list_get(region.outer(self.tape.lists[value]), self.index)
            return b.refine(record, value.type)
        if value in self.tape.segments:
            return self._read_segment(value, *self.tape.segments[value])
        return self.elsewhere(value)

    def _read_segment(self, value: Value, handles: Value, index: int) -> Value:
        b = self.region.b
        if handles not in self.segments:
            self.segments[handles] = b.list_get(self.region.outer(handles), self.index)
        loop = at(self.region.source)
        record = b.unspill(self.segments[handles], index, record_type(value), loop=loop)
        return b.refine(record, value.type)

    def _recompute(self, value: Value) -> Value:
        b, node = self.region.b, value.node
        assert node is not None
        b.nodes += rematerialize([node], {v: self.available[v] for v in node.operands})
        return b.nodes[-1].results[value.index]


def before_reader(
    region: BackwardRegion, index: Value, plan: TapePlan, forward: RecordingLoop
) -> Reader:
    """Return the reader of `before` at a trip; counters are computed from the trip number."""

    def read_counter(value: Value) -> Value | None:
        if value not in plan.counters:
            return None
        b, counter = region.b, plan.counters[value]
        steps = b.mul(b.cast(index, counter.step.tensor.dtype), region.step(counter.step))
        start = region.outer(counter.start)
        return b.sub(start, steps) if counter.is_down else b.add(start, steps)

    tape = RecordedValues.of(forward, plan.before_records, plan.before_spilled)
    return Reader(region, index, tape, read_counter)


def after_reader(
    region: BackwardRegion,
    index: Value,
    next_index: Value,
    plan: TapePlan,
    forward: RecordingLoop,
) -> Reader:
    """Return the reader of `after`; `before` holds its params, and later its results."""
    this_before = before_reader(region, index, plan, forward)
    next_before = before_reader(region, next_index, plan, forward)

    def read_from_before(value: Value) -> Value | None:
        if value in plan.forwarded:
            return this_before(plan.forwarded[value])
        return next_before(plan.next_carries[value]) if value in plan.next_carries else None

    tape = RecordedValues.of(forward, plan.after_records, plan.after_spilled)
    return Reader(region, index, tape, read_from_before)


class OuterShapes:
    """Shapes of invariants, which are read outside of the loop: their arrays are not needed then.

    Attributes:
        b: a builder, which holds the nodes that read them.
    """

    def __init__(self, source: Source | None) -> None:
        self.b = Build("")
        self.b.source = source
        self._reads: dict[tuple[Any, ...], Value] = {}

    def read(self, like: Node, x: Value) -> Value:
        """Return what a node would read of the shape of an array."""
        key = (like.op, x, *sorted(like.attrs.items()))
        if key not in self._reads:
            self._reads[key] = self.b.emit(like.op, x, **like.attrs)
        return self._reads[key]


class BackwardRegion:
    """A backward region under construction, with the outer values that it reads.

    Attributes:
        outer_shapes: the shapes of invariants that are read.
        source: the line of the loop.
        invariants: the outer value of each invariant param of the forward regions.
        outer_params: the param for each outer value.
    """

    def __init__(
        self, name: str, transposed: Transposed, w: WhileParts, outer_shapes: OuterShapes
    ) -> None:
        self.outer_shapes = outer_shapes
        self.b = Build(name)
        self.b.source = self.source = w.source
        self.transposed = transposed
        self.mapping = {param: self.b.param(param.type) for param in transposed.params}
        self.invariants = dict(zip(w.before_invariants, w.invariants, strict=True))
        self.invariants.update(zip(w.after_invariants, w.invariants, strict=True))
        self.outer_params: dict[Value, Value] = {}

    def outer(self, value: Value) -> Value:
        """Return the invariant param that holds an outer value."""
        if value not in self.outer_params:
            self.outer_params[value] = Value(value.type)
        return self.outer_params[value]

    def step(self, value: Value) -> Value:
        """Return the step of a counter: a constant or an invariant of `after`."""
        if value in self.invariants:
            return self.outer(self.invariants[value])
        assert value.node is not None
        (copy,) = copy_nodes([value.node], {})
        self.b.nodes.append(copy)
        return copy.results[0]

    def fill(self, reader: Reader) -> None:
        """Read what the transpose needs, then append its nodes."""
        self.mapping.update({value: reader(value) for value in self.transposed.reads()})
        self.b.nodes += copy_nodes(self.transposed.b.nodes, self.mapping)

    def finish(self, predicate: Sequence[Value], outer: Sequence[Value]) -> Graph:
        """Return the region: params, then one for each outer value."""
        params = [*self.b.params, *(self.outer(value) for value in outer)]
        transposed = self.transposed
        results = [*predicate, *(self.mapping[v] for v in (transposed.count, *transposed.results))]
        return Graph(self.b.name, tuple(params), tuple(self.b.nodes), tuple(results))
