"""Sequences: values that a counted loop computes from counters, invariants and rows alone."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import field

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node
from wend.ir.types import TensorType
from wend.ops import elementwise, indexing, lists
from wend.ops.batching import BatchBuild
from wend.ops.build import Build
from wend.ops.control import WhileParts, if_, while_
from wend.ops.loop_counters import as_integer, known_values
from wend.ops.shapes import WHOLE
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
        shared: the params of `after` that are the same in each trip.
        rows: the values that are rows of arrays.
        numbers: the counters, and these plus a constant, with their values.
        nodes: the other nodes that give such values.
        fails: whether a trip may end with an error or has an effect, once it is known.
    """

    w: WhileParts
    counter: Value
    trips: range
    shared: Set[Value]
    rows: dict[Value, Row] = field(default_factory=dict)
    numbers: dict[Value, range] = field(default_factory=dict)
    nodes: dict[Value, Node] = field(default_factory=dict)
    fails: bool | None = None

    @staticmethod
    def of(w: WhileParts) -> Sequences | None:
        """Return the sequences of a counted loop that makes two trips or more."""
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
        if tested not in w.forwarded or len(known[tested]) < 2:
            return None
        counter = w.after_forwarded[w.forwarded.index(tested)]
        shared = frozenset(w.after_invariants)
        sequences = Sequences(w, counter, params[counter], shared, numbers=params)
        for node in w.after.nodes:
            sequences._visit(node)
        return sequences

    def __contains__(self, value: Value) -> bool:
        return value in self.nodes or value in self.rows or value in self.numbers

    @property
    def ascending(self) -> range:
        """The values of the counter from the least to the greatest, the order of the rows."""
        return self.trips if self.trips.step > 0 else self.trips[::-1]

    def _visit(self, node: Node) -> None:
        if node.regions:
            if self._is_pure(node) and self._are_known(node.operands):
                self.nodes.update(dict.fromkeys(node.results, node))
            return
        if node.op.effect is not Effect.NONE or len(node.results) != 1:
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
        if node.operands and self._are_known(node.operands):
            self.nodes[result] = node

    def _are_known(self, values: Sequence[Value]) -> bool:
        """Return whether values are sequences, or the same in each trip."""
        return all(x in self or x in self.shared or self._is_shared(x) for x in values)

    def _is_pure(self, node: Node) -> bool:
        """Return whether a loop or branch has arrays of known sizes, and can do nothing but end.

        Where a trip may fail, later trips must not run before it if they may not end.
        """
        inner = [node, *(x for region in node.regions for x in region.walk())]
        if node.op not in (while_, if_) or not all(map(_is_harmless, inner)):
            return False
        is_counted = all(x.op is not while_ or known_values(WhileParts.of(x)) for x in inner)
        return is_counted or not self._may_fail()

    def _may_fail(self) -> bool:
        """Return whether a trip may end with an error, or has an effect; computed once."""
        if self.fails is None:
            nodes = [*self.w.before.walk(), *self.w.after.walk()]
            self.fails = any(x.op.effect is not Effect.NONE or x.op.may_fail(x) for x in nodes)
        return self.fails

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
        row = self._numbered_row(node)
        if row is None or not row.array.tensor.is_static:
            return None
        size, ends = row.array.tensor.dims[0], (row.numbers[0], row.numbers[-1])
        is_within = isinstance(size, int) and min(ends) >= 0 and max(ends) < size
        return row if is_within else None

    def _numbered_row(self, node: Node) -> Row | None:
        """Return the row that a node reads, if its number follows the counter by ones."""
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
        if not isinstance(array.type, TensorType) or not array.type.shape:
            return None
        return Row(array, numbers) if numbers.step == self.trips.step else None

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

    def numbers_in_order(self, b: Build, numbers: range) -> Value:
        """Append the values of a counter, or of what follows one, in the order of the rows."""
        ascending = numbers if self.trips.step > 0 else numbers[::-1]
        values = b.iota(len(ascending))
        if ascending.step != 1:
            values = b.mul(values, b.broadcast_like(b.integer(ascending.step), values))
        if ascending.start:
            values = b.add(values, b.broadcast_like(b.integer(ascending.start), values))
        return values

    def for_all_trips(self, b: Build, values: Sequence[Value]) -> Mapping[Value, Value] | None:
        """Append the computation of values for all trips, and return these.

        None where one is no sequence, or an operation has no rule.

        Row r of what is returned is the value of the trip with the r-th least counter.
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
                batcher.states[x] = rows_of(b, row), True
        for x, numbers in self.numbers.items():
            if x in needed:
                batcher.states[x] = self.numbers_in_order(b, numbers), True
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


def _is_harmless(node: Node) -> bool:
    """Return whether a node has no effect, cannot fail, and gives arrays of known sizes."""
    types = [value.type for value in (*node.operands, *node.results)]
    is_static = all(isinstance(type, TensorType) and type.is_static for type in types)
    return is_static and node.op.effect is Effect.NONE and not node.op.may_fail(node)


def rows_of(b: Build, row: Row) -> Value:
    """Return the rows of all trips, the least row first."""
    first, last = sorted((row.numbers[0], row.numbers[-1]))
    if (first, last + 1) == (0, row.array.tensor.dims[0]) and abs(row.numbers.step) == 1:
        return row.array
    whole = (WHOLE,) * (len(row.array.tensor.dims) - 1)
    step = abs(row.numbers.step)
    return b.slice(row.array, slices=((first, last + 1, None if step == 1 else step), *whole))


def live_outs(sequences: Sequences) -> list[Value]:
    """Return the sequence values that others read, which are no sequences."""
    w = sequences.w
    read = dict.fromkeys(w.next_carry)
    for node in w.after.nodes:
        if not any(result in sequences for result in node.results):
            read.update(dict.fromkeys(node.operands))
    return [x for x in read if x in sequences.nodes and x.tensor.is_static]


def reading_rows(loop: Node, sequences: Sequences, stacks: Mapping[Value, Value]) -> Node:
    """Return the loop with rows of new invariants in place of the values that they hold.

    Row r holds the value of the trip with the r-th least counter.
    """
    w = sequences.w
    arrays = list(stacks.values())
    before_params = [Value(array.type) for array in arrays]
    after_params = {value: Value(array.type) for value, array in stacks.items()}
    b = Build("")
    b.source = loop.source
    row: Value = sequences.counter
    ascending = sequences.ascending
    if ascending[0]:
        row = b.sub(row, b.integer(ascending[0]))
    if ascending.step > 1:
        row = b.emit(elementwise.floor_divide, row, b.integer(ascending.step))
    mapping: dict[Value, Value] = {}
    for value, param in after_params.items():
        mapping[value] = b.emit(indexing.gather, param, row, in_bounds=True)
        mapping[value].name = value.name
    for node in read_besides(w.after, stacks):
        copy = copy_node(node, [mapping.get(x, x) for x in node.operands])
        pairs = zip(node.results, copy.results, strict=True)
        mapping.update((old, new) for old, new in pairs if old not in stacks)
        b.nodes.append(copy)
    after = Graph(
        w.after.name,
        (*w.after.params, *after_params.values()),
        tuple(b.nodes),
        tuple(mapping.get(x, x) for x in w.after.results),
    )
    before = Graph(
        w.before.name, (*w.before.params, *before_params), w.before.nodes, w.before.results
    )
    return copy_node(loop, (*loop.operands, *arrays), (before, after))


def read_besides(graph: Graph, known: Container[Value]) -> list[Node]:
    """Return the nodes of a graph without those that only give known values."""
    read = {*graph.results}
    remaining: list[Node] = []
    for node in reversed(graph.nodes):
        others = [x for x in node.results if x not in known]
        if len(others) == len(node.results) or not read.isdisjoint(others):
            remaining.append(node)
            read.update(node.operands)
    return remaining[::-1]
