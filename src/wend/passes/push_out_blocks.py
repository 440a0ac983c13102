"""Products of rows for blocks of trips, where only the run knows how many trips a loop makes.

A loop whose counter alone decides when it ends carries the products of one block of trips. A trip
that the block does not cover computes the next block, which ends with the loop, with the arrays
that are read, or with the limit of memory, and reads its row. Where a row may be out of range, a
trip without a row in the block computes its product as the program does, and fails as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, keep_names, lift
from wend.ir.types import Symbol, TensorType, symbols
from wend.ops import elementwise, indexing
from wend.ops.batching import BatchBuild
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.ops.loop_counters import (
    TestedCounter,
    as_integer,
    counters,
    tested_counter,
    trip_count,
)
from wend.passes.batch_nodes import Batcher
from wend.passes.loop_sequences import Row, Sequences, live_outs, read_besides

# Larger blocks do not stay in the cache (64 units, 20,000 trips: 265 ns a trip, 445 in one block)
_MAX_TRIPS = 256
# The most bytes that nodes occupy at a time for a block of one trip, whose size has this symbol
PeakBytes = Callable[[Sequence[Node], Sequence[Value], Symbol], int]


class BlockSequences(Sequences):
    """The sequences of a loop that a counter ends, from the present trip on.

    `numbers` are relative to what a counter is in the present trip.

    Attributes:
        tested: the counter, which goes by one a trip.
        counters: for each of `numbers`, that counter.
        positions: for each row, its number.
        within: the rows that constants show to be within their arrays.
    """

    def __init__(self, w: WhileParts, tested: TestedCounter) -> None:
        counter = w.after_forwarded[w.forwarded.index(tested.param)]
        trips = range(0, 2 * tested.step, tested.step)
        super().__init__(w, counter, trips, frozenset(w.after_invariants))
        known = Sequences.of(w)
        self.tested, self.within = tested, frozenset(() if known is None else known.rows)
        self.counters: dict[Value, Value] = {}
        self.positions: dict[Value, Value] = {}
        for param, one in counters(w).items():
            step = one.known_step(w)
            if step and param in w.forwarded:
                value = w.after_forwarded[w.forwarded.index(param)]
                self.numbers[value] = range(0, 2 * step, step)
                self.counters[value] = value
        for node in w.after.nodes:
            self._visit(node)

    @staticmethod
    def of_loop(w: WhileParts) -> BlockSequences | None:
        """Return those of a loop that makes as many trips as a counter and its bound say."""
        tested = tested_counter(w)
        if tested is None or abs(tested.step) != 1 or tested.param not in w.forwarded:
            return None
        is_known = tested.bound in w.before_invariants or as_integer(tested.bound) is not None
        return BlockSequences(w, tested) if is_known else None

    def first_counters(self) -> Sequence[Value]:
        """The counters that the numbers are relative to."""
        return [*dict.fromkeys((self.counter, *self.counters.values()))]

    def _shifted(self, node: Node) -> range | None:
        numbers = super()._shifted(node)
        if numbers is not None:
            operand = next(x for x in node.operands if x in self.numbers)
            self.counters[node.results[0]] = self.counters[operand]
        return numbers

    def _row(self, node: Node) -> Row | None:
        row = self._numbered_row(node)
        if row is None or not node.results[0].tensor.is_static:
            return None
        self.positions[node.results[0]] = node.operands[1]
        return row

    def is_within(self, row: Value) -> bool:
        """Return whether a row is known to be within its array in every trip."""
        if row in self.within:
            return True
        array, numbers = self.rows[row].array, self.numbers[self.positions[row]]
        is_counter = self.counters[self.positions[row]] is self.counter and not numbers.start
        count = trip_count(self.w)
        return is_counter and isinstance(count, Symbol) and count == array.tensor.dims[0]

    def number(self, b: Build, value: Value, params: Mapping[Value, Value]) -> Value:
        """Append what a number is in the present trip."""
        offset, counter = self.numbers[value].start, params[self.counters[value]]
        return b.add(counter, b.integer(offset)) if offset else counter

    def count(
        self, b: Build, rows: Sequence[Value], most: int, params: Mapping[Value, Value]
    ) -> Value:
        """Append the number of trips of the block that begins with the present one."""
        is_up, bound = self.trips.step > 0, self.tested.bound
        number = as_integer(bound)
        if number is None:
            end = params[self.w.after_invariants[self.w.before_invariants.index(bound)]]
        else:
            end = b.integer(number)
        first = params[self.counter]
        count = b.sub(end, first) if is_up else b.sub(first, end)
        if self.tested.is_inclusive:
            count = b.add(count, b.integer(1))
        count = b.emit(elementwise.minimum, count, b.integer(most))
        for row in rows:
            if self.is_within(row):
                continue
            position = self.number(b, self.positions[row], params)
            size, zero = b.size_of(params[self.rows[row].array], 0), b.integer(0)
            if is_up:
                left, is_inside = b.sub(size, position), b.ge(position, zero)
            else:
                left, is_inside = b.add(position, b.integer(1)), b.lt(position, size)
            count = b.emit(elementwise.minimum, count, b.select(is_inside, left, zero))
        return b.emit(elementwise.maximum, count, b.integer(0))

    def for_block(
        self,
        b: Build,
        values: Sequence[Value],
        params: Mapping[Value, Value],
        count: Value,
        size: Symbol,
    ) -> Sequence[Value] | None:
        """Append the computation of values for a block; None where an operation has no rule.

        Row r of what is returned is the value of the trip with the r-th least counter.
        """
        batcher = Batcher(BatchBuild(b, count, size))
        needed = {x for value in values for x in self.slice_of(value)}
        last = b.sub(count, b.integer(1))
        batcher.states.update(
            (x, (params[x], False)) for x in self.w.after_invariants if x in params
        )
        for x in (x for x in self.rows if x in needed):
            low = self.number(b, self.positions[x], params)
            low = low if self.trips.step > 0 else b.sub(low, last)
            array = params[self.rows[x].array]
            rows = b.narrow(array, low, b.add(low, count), axis=0, size=size)
            batcher.states[x] = rows, True
        for x in (x for x in self.numbers if x in needed):
            step = self.numbers[x].step
            trips = b.refine(b.iota(count), TensorType(count.tensor.dtype, (size,)))
            if self.trips.step < 0:
                trips = b.sub(b.broadcast_like(last, trips), trips)
            values_of_trips = b.mul(trips, b.broadcast_like(b.integer(step), trips))
            start = b.broadcast_like(self.number(b, x, params), trips)
            batcher.states[x] = b.add(values_of_trips, start), True
        for node in self.w.after.nodes:
            is_needed = not needed.isdisjoint(node.results)
            is_known = is_needed and node.results[0] in batcher.states
            if is_needed and not is_known and not batcher.append(node):
                return None
        results = []
        for value in values:
            outer, is_batched = batcher.states[value]
            if not is_batched or len(outer.tensor.dims) != 1 + len(value.tensor.dims):
                return None
            results.append(b.refine(outer, value.tensor.with_shape((size, *value.tensor.dims))))
        return results


def push_out_blocks(
    b: Build,
    loop: Node,
    has_product: Callable[[Sequences, Value], bool],
    max_bytes: int,
    peak: PeakBytes,
) -> Node | None:
    """Return the loop with products of rows computed for blocks of trips; None if it has none.

    What it starts from is appended, the loop is not.
    """
    sequences = BlockSequences.of_loop(WhileParts.of(loop))
    if sequences is None or (loop.remark is not None and loop.remark.lanes is not None):
        return None
    chosen = [x for x in live_outs(sequences) if has_product(sequences, x)]
    if not chosen:
        return None
    blocks = _LoopOfBlocks(loop, sequences, chosen)
    if not blocks.rows or not blocks.fail_in_order():
        return None
    size = new_symbol()
    trial = blocks.next_block(1, size)
    if trial is None:
        return None
    most = min(_MAX_TRIPS, max_bytes // max(peak(trial.nodes, trial.results, size), 1))
    block = blocks.next_block(most, size) if most > 1 else None
    return None if block is None else blocks.append_start(b, block)


class _LoopOfBlocks:
    """A loop that carries the products of a block of trips, and the first counter of these."""

    def __init__(self, loop: Node, sequences: BlockSequences, chosen: Sequence[Value]) -> None:
        self.node, self.w, self.sequences, self.chosen = loop, sequences.w, sequences, chosen
        computed = {x for value in chosen for x in sequences.slice_of(value)}
        self.rows = [x for x in sequences.rows if x in computed]
        self.arrays = [*dict.fromkeys(sequences.rows[x].array for x in self.rows)]
        self.computing = {x.node for x in computed if x in sequences.nodes or x in self.rows}
        self.unsure = {x.node for x in self.rows if not sequences.is_within(x)}
        nodes = self.w.after.nodes
        self.start = next(k for k, node in enumerate(nodes) if node in self.computing)
        stacks = [x.tensor.with_shape((new_symbol(), *x.tensor.dims)) for x in chosen]
        self.carry_types = [*stacks, sequences.counter.tensor]
        w = self.w
        self.read = [*sequences.first_counters(), *w.after_invariants]  # by branches
        self.read_types = [x.type for x in (*self.read, *self.arrays)]

    def fail_in_order(self) -> bool:
        """Return whether nothing else ends the run, or has an effect, before the last row."""
        nodes = self.w.after.nodes
        last = max((k for k, node in enumerate(nodes) if node in self.unsure), default=0)
        others = [x for x in nodes[self.start : last] if x not in self.computing]
        inner = [x for node in others for x in (node, *(y for g in node.regions for y in g.walk()))]
        return all(x.op.effect is Effect.NONE and not x.op.may_fail(x) for x in inner)

    def next_block(self, most: int, size: Symbol) -> Graph | None:
        """Return a branch that computes the block of at most so many trips from this one on."""
        b = Build("branch1")
        b.source = self.node.source
        for type in self.carry_types:
            b.param(type)
        values = [b.param(type) for type in self.read_types]
        params = dict(zip((*self.read, *self.arrays), values, strict=True))
        count = self.sequences.count(b, self.rows, most, params)
        stacks = self.sequences.for_block(b, self.chosen, params, count, size)
        if stacks is None:
            return None
        computing = (x for x in b.nodes if x.op.view_of is None)
        for node in (x for x in computing if size in symbols(x.results[0].type)):
            node.remark = Remark(loop=self.node.source, is_for_all_trips=True)
        return b.finish([*stacks, params[self.sequences.counter]])

    def append_start(self, b: Build, block: Graph) -> Node:
        """Return the loop; append the empty block that it starts with."""
        w, node = self.w, self.node
        starts = [b.constant(np.empty((0, *x.tensor.dims), x.tensor.dtype)) for x in self.chosen]
        starts.append(self.sequences.tested.start)
        before_carry, after_carry = ([Value(type) for type in self.carry_types] for _ in range(2))
        before_arrays, after_arrays = ([Value(x.type) for x in self.arrays] for _ in range(2))
        before = Graph(
            w.before.name,
            (*w.before_carry, *before_carry, *w.before_invariants, *before_arrays),
            w.before.nodes,
            (*w.before.results, *before_carry),
        )
        inner = Build("")
        inner.source = node.source
        remaining = {*read_besides(w.after, self.chosen)}
        inner.nodes += [x for x in w.after.nodes[: self.start] if x in remaining]
        following, values = self._append_rows(inner, block, after_carry, after_arrays)
        mapping = dict(zip(self.chosen, values, strict=True))
        known = {*self.chosen}
        for old in (x for x in w.after.nodes[self.start :] if x in remaining):
            copy = copy_node(old, [mapping.get(x, x) for x in old.operands])
            pairs = zip(old.results, copy.results, strict=True)
            mapping.update((x, y) for x, y in pairs if x not in known)
            inner.nodes.append(copy)
        after = Graph(
            w.after.name,
            (*w.after_forwarded, *after_carry, *w.after_invariants, *after_arrays),
            tuple(inner.nodes),
            (*(mapping.get(x, x) for x in w.next_carry), *following),
        )
        carry = (*w.carry, *starts)
        types = [x.type for x in (*node.results, *before_carry)]
        attrs = {**node.attrs, "carry": len(carry)}
        operands = (*carry, *w.invariants, *self.arrays)
        loop = Node(node.op, operands, attrs, (before, after), types, node.source)
        loop.remark = node.remark
        keep_names(node.results, loop.results[: len(node.results)])
        return loop

    def _append_rows(
        self, b: Build, block: Graph, carry: Sequence[Value], arrays: Sequence[Value]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Append the block and the rows of this trip; return what to carry, and the rows."""
        same = Build("branch0")
        for type in (*self.carry_types, *self.read_types):
            same.param(type)
        branches = same.finish(same.params[: len(carry)]), block
        operands = (*carry, *self.read, *arrays)
        following = b.if_(self._is_outside(b, carry), operands, branches).results
        row = self._trips_since(b, following[-1])
        if self.sequences.trips.step < 0:
            row = b.sub(b.sub(b.size_of(following[0], 0), b.integer(1)), row)
        if not self.unsure:
            return following, [self._row_of(b, x, row) for x in following[:-1]]
        own, shared = Build("branch1"), Build("branch0")
        for branch in (own, shared):
            branch.source = b.source
            for x in (*following[:-1], row, *self.read):
                branch.param(x.type)
        count = len(self.chosen)
        rows = [self._row_of(shared, x, shared.params[count]) for x in shared.params[:count]]
        params = dict(zip(self.read, own.params[count + 1 :], strict=True))
        computed = lift(self.chosen, own.nodes, params)
        branches = shared.finish(rows), own.finish([computed[x] for x in self.chosen])
        test = self._is_outside(b, following)
        return following, b.if_(test, [*following[:-1], row, *self.read], branches).results

    def _is_outside(self, b: Build, carry: Sequence[Value]) -> Value:
        """Append whether a block has no row for this trip."""
        return b.ge(self._trips_since(b, carry[-1]), b.size_of(carry[0], 0))

    def _trips_since(self, b: Build, first: Value) -> Value:
        """Append the number of trips since the one that had this counter."""
        counter = self.sequences.counter
        return b.sub(counter, first) if self.sequences.trips.step > 0 else b.sub(first, counter)

    def _row_of(self, b: Build, stack: Value, row: Value) -> Value:
        return b.emit(indexing.gather, stack, row, in_bounds=True)
