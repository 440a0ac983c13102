"""How a backward loop gets forward values back: from records, invariants, or by running again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.autodiff.loop_tape import TapePlan
from wend.autodiff.loop_transpose import Transposed
from wend.autodiff.residuals import rematerialize
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import operands_first
from wend.ops.build import Build
from wend.ops.control import WhileParts


class Reader:
    """Gets forward values of one region at one trip, each once.

    `elsewhere` says where a value that is not this region's own is to be had, if it is one.
    """

    def __init__(
        self,
        into: BackwardRegion,
        index: Value,
        lists: dict[Value, Value],
        elsewhere: Callable[[Value], Value | None],
    ) -> None:
        self.into, self.index, self.lists, self.elsewhere = into, index, lists, elsewhere
        self.found: dict[Value, Value] = {}

    def __call__(self, value: Value) -> Value:
        for needed in operands_first([value], self._computed_from):
            if needed not in self.found:
                self.found[needed] = self._run_again(needed)
        return self.found[value]

    def _computed_from(self, value: Value) -> Sequence[Value]:
        """What a value must be computed from again; nothing where it is to be had."""
        if value not in self.found:
            there = self._there(value)
            if there is not None:
                self.found[value] = there
        if value in self.found:
            return ()
        assert value.node is not None, f"{value!r} was not kept"
        return value.node.operands

    def _there(self, value: Value) -> Value | None:
        b, into = self.into.b, self.into
        if value in into.invariants:
            return into.outer(into.invariants[value])
        if value in self.lists:
            record = b.list_get(into.outer(self.lists[value]), self.index)
            return b.refine(record, value.type)
        return self.elsewhere(value)

    def _run_again(self, value: Value) -> Value:
        b, node = self.into.b, value.node
        assert node is not None
        b.nodes += rematerialize([node], {v: self.found[v] for v in node.operands})
        return b.nodes[-1].results[value.index]


def before_reader(into: BackwardRegion, index: Value, tape: TapePlan) -> Reader:
    """Reads what `before` knew at a trip; counters follow from the trip."""

    def counted(value: Value) -> Value | None:
        if value not in tape.counters:
            return None
        b, counter = into.b, tape.counters[value]
        moved = b.mul(b.cast(index, counter.step.tensor.dtype), into.step(counter.step))
        start = into.outer(counter.start)
        return b.sub(start, moved) if counter.is_down else b.add(start, moved)

    return Reader(into, index, tape.before_lists, counted)


def after_reader(into: BackwardRegion, bwd: Value, following: Value, tape: TapePlan) -> Reader:
    """Reads what `after` knew; its start and end are what `before` knew, this trip and next."""
    at_start, at_end = before_reader(into, bwd, tape), before_reader(into, following, tape)

    def in_before(value: Value) -> Value | None:
        if value in tape.starts:
            return at_start(tape.starts[value])
        return at_end(tape.aliases[value]) if value in tape.aliases else None

    return Reader(into, bwd, tape.after_lists, in_before)


class BackwardRegion:
    """A backward region under construction, with the outer values it asks for."""

    def __init__(self, name: str, done: Transposed, w: WhileParts) -> None:
        self.b = Build(name)
        self.b.source = w.source
        self.done = done
        self.mapping = {param: self.b.param(param.type) for param in done.params}
        self.invariants = dict(zip(w.before_invariants, w.invariants, strict=True))
        self.invariants.update(zip(w.after_invariants, w.invariants, strict=True))
        self.asked: dict[Value, Value] = {}

    def outer(self, value: Value) -> Value:
        """An outer value, as an invariant of the backward loop."""
        if value not in self.asked:
            self.asked[value] = Value(value.type)
        return self.asked[value]

    def step(self, value: Value) -> Value:
        """What a counter grows by: a constant or an invariant of `after`."""
        if value in self.invariants:
            return self.outer(self.invariants[value])
        assert value.node is not None
        (copy,) = copy_nodes([value.node], {})
        self.b.nodes.append(copy)
        return copy.results[0]

    def fill(self, reader: Reader) -> None:
        """Get what the transpose reads, then its nodes."""
        self.mapping.update({value: reader(value) for value in self.done.reads()})
        self.b.nodes += copy_nodes(self.done.b.nodes, self.mapping)

    def finish(self, predicate: Sequence[Value], outer: Sequence[Value]) -> Graph:
        params = [*self.b.params, *(self.outer(value) for value in outer)]
        done = self.done
        results = [*predicate, *(self.mapping[v] for v in (done.count, *done.results))]
        return Graph(self.b.name, tuple(params), tuple(self.b.nodes), tuple(results))
