"""Sequences: values that a counted loop computes from counters, invariants and rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wend.ir.graph import Node, Value
from wend.ir.op import Effect
from wend.ir.types import TensorType
from wend.ops import elementwise, indexing, lists
from wend.ops.batching import BatchBuild
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.ops.loop_counters import as_integer, known_values
from wend.passes.batch_nodes import Batcher


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an array outside the loop, read in each trip.

    Attributes:
        array: the array.
        numbers: the row of each trip.
    """

    array: Value
    numbers: range


@dataclass(slots=True)
class Sequences:
    """The values in `after` that depend on the trip, and on nothing that an earlier trip computed.

    Attributes:
        w: the loop, which makes two trips or more.
        counter: the param of `after` that the test of the loop compares.
        trips: the values of that counter.
        rows: the values that are rows of arrays.
        numbers: the counters, and these plus a constant, with their values.
        nodes: the other nodes that give such values.
    """

    w: WhileParts
    counter: Value
    trips: range
    rows: dict[Value, Row] = field(default_factory=dict)
    numbers: dict[Value, range] = field(default_factory=dict)
    nodes: dict[Value, Node] = field(default_factory=dict)

    @staticmethod
    def of(w: WhileParts) -> Sequences | None:
        """Return the sequences of a loop that is counted by one and makes two trips or more."""
        known = known_values(w)
        test = w.predicate.node
        if not known or test is None:
            return None
        params = {
            w.after_forwarded[k]: known[value]
            for k, value in enumerate(w.forwarded)
            if value in known
        }
        tested = test.operands[0]
        if tested not in w.forwarded or len(known[tested]) < 2 or abs(known[tested].step) != 1:
            return None
        counter = w.after_forwarded[w.forwarded.index(tested)]
        sequences = Sequences(w, counter, params[counter], numbers=params)
        for node in w.after.nodes:
            sequences._visit(node)
        return sequences

    def __contains__(self, value: Value) -> bool:
        return value in self.nodes or value in self.rows or value in self.numbers

    @property
    def first_row(self) -> int:
        """The least value of the counter; what its trip computes is row 0 of all trips."""
        return min(self.trips[0], self.trips[-1])

    def _visit(self, node: Node) -> None:
        if node.regions or node.op.effect is not Effect.NONE or len(node.results) != 1:
            return
        (result,) = node.results
        numbers = self._shifted(node)
        if numbers is not None:
            self.numbers[result] = numbers
            return
        row = self._row(node)
        if row is not None:
            self.rows[result] = row
            return
        if node.op.may_fail(node) or not isinstance(result.type, TensorType):
            return
        shared = {*self.w.after_invariants}
        if node.operands and all(
            x in self or x in shared or self._is_shared(x) for x in node.operands
        ):
            self.nodes[result] = node

    @staticmethod
    def _is_shared(value: Value) -> bool:
        return value.node is not None and not value.node.operands and not value.node.regions

    def _shifted(self, node: Node) -> range | None:
        """Return the values of a counter plus or minus a constant."""
        if node.op not in (elementwise.add, elementwise.sub):
            return None
        x, y = node.operands
        if x not in self.numbers and node.op is elementwise.add:
            x, y = y, x
        by = as_integer(y)
        if x not in self.numbers or by is None:
            return None
        by, old = (by if node.op is elementwise.add else -by), self.numbers[x]
        return range(old.start + by, old.stop + by, old.step)

    def _row(self, node: Node) -> Row | None:
        """Return the row that a node reads, if it is within the array in every trip."""
        if node.op not in (indexing.gather, lists.list_get) or len(node.operands) != 2:
            return None
        source, position = node.operands
        if source not in self.w.after_invariants or position not in self.numbers:
            return None
        array = self.w.invariants[self.w.after_invariants.index(source)]
        if node.op is lists.list_get:
            if array.node is None or array.node.op is not lists.list_unstack:
                return None
            (array,) = array.node.operands
        numbers = self.numbers[position]
        type = array.type
        if not isinstance(type, TensorType) or not type.is_static:
            return None
        size, ends = type.dims[0], (numbers[0], numbers[-1])
        is_within = isinstance(size, int) and min(ends) >= 0 and max(ends) < size
        return Row(array, numbers) if is_within and numbers.step == self.trips.step else None

    def slice_of(self, value: Value) -> list[Value]:
        """Return the values that a value is computed from in a trip, with constants, and itself."""
        visited, waiting = {value: None}, [value]
        while waiting:
            node = self.nodes.get(waiting.pop())
            for x in node.operands if node is not None else ():
                if (x in self or self._is_shared(x)) and x not in visited:
                    visited[x] = None
                    waiting.append(x)
        return list(visited)

    def for_all_trips(self, b: Build, values: Sequence[Value]) -> Mapping[Value, Value] | None:
        """Append the computation of values for all trips, and return these.

        None where one is no sequence, or an operation has no rule.

        Row r of what is returned is the value of the trip in which the counter is `first_row` + r.
        """
        if not all(value in self for value in values):
            return None
        count = len(self.trips)
        batcher = Batcher(BatchBuild(b, b.integer(count), count))
        w = self.w
        for inner, outer in zip(w.after_invariants, w.invariants, strict=True):
            batcher.states[inner] = outer, False
        needed = {x for value in values for x in self.slice_of(value)}
        for x, row in self.rows.items():
            if x in needed:
                batcher.states[x] = _rows(b, row), True
        for x, numbers in self.numbers.items():
            if x in needed:
                batcher.states[x] = b.constant(numbers[:: self.trips.step], "i8"), True
        for node in w.after.nodes:
            is_needed = not needed.isdisjoint(node.results)
            is_known = is_needed and node.results[0] in batcher.states
            if is_needed and not is_known and not batcher.append(node):
                return None
        results = {}
        for value in values:
            outer, is_batched = batcher.states[value]
            if not is_batched or outer.type != value.tensor.with_shape((count, *value.tensor.dims)):
                return None
            results[value] = outer
        return results


def _rows(b: Build, row: Row) -> Value:
    """Return the rows of all trips, the least row first."""
    first, last = sorted((row.numbers[0], row.numbers[-1]))
    if (first, last + 1) == (0, row.array.tensor.dims[0]):
        return row.array
    whole = ((None, None, None),) * (len(row.array.tensor.dims) - 1)
    return b.slice(row.array, slices=((first, last + 1, None), *whole))
