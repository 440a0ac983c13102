"""Stored elements that later trips read are carried, and not read from the array.

In `for k in range(n): y[k + 1] = f(y[k])` each trip reads what the one before has stored. The
stored element becomes a carry, and the read goes (scalar replacement: Callahan, Carr and Kennedy,
1990; LLVM calls it loop load elimination). Where all trips store in one place, as in
`y[i] += a[k] * b[k]`, the store leaves the loop. The adjoint gains more than the loop: that of a
read adds to the cotangent of the array, from which that of the store takes it one trip later.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate

from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, lift, rewrite_nodes, with_operands
from wend.ir.traverse import users_of
from wend.ir.types import Dim, TensorType
from wend.ops import elementwise, indexing, updating
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import as_integer, counters, known_values, outer_value
from wend.passes.hoist import can_test_twice, first_test, guarded, may_end_run
from wend.passes.hoist_reads import hoist_reads, hoistable_reads

_ARITHMETIC = elementwise.add, elementwise.sub, elementwise.mul
_ACCESSES = indexing.gather, updating.scatter_set
# A value for each trip in between is carried.
_MAX_DISTANCE = 3
# Larger rows are copied into the array and kept beside it: that costs more than it saves.
_MAX_ELEMENTS = 16


def forward_stores(graph: Graph) -> Graph:
    """Forward what trips store to the reads of later trips, in inner loops first."""
    if not graph.ops.issuperset((while_, *_ACCESSES)):
        return graph

    def forward(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [forward_stores(r) for r in node.regions])
        copy, stores = _with_stores(copy) if copy.op is while_ else (copy, [])
        if not stores:
            nodes.append(copy)
            return copy.results
        nodes.append(loop := _with_carries(nodes, copy, stores))
        return _stored_at_end(nodes, loop, stores, len(node.results))

    return rewrite_nodes(graph, forward)


def _with_stores(loop: Node) -> tuple[Node, list[_CarriedStore]]:
    """Return a loop, in which branches read nothing that is carried, and its carried stores."""
    w = WhileParts.of(loop)
    if not w.after.ops.issuperset(_ACCESSES):
        return loop, []
    hoistable = hoistable_reads(w.after)
    stores = _carried_stores(w, hoistable)
    reads = {hoistable[x] for store in stores for x in store.reads if x in hoistable}
    if not reads:
        return loop, stores
    loop = with_operands(loop, loop.operands, (w.before, hoist_reads(w.after, reads)))
    return loop, _carried_stores(WhileParts.of(loop))


@dataclass(frozen=True, slots=True)
class _AffineForm:
    """The integer `number + Σ factor · value`, of counters and of values that do not change."""

    number: int
    factors: Mapping[Value, int] = field(default_factory=dict)

    def plus(self, other: _AffineForm, factor: int) -> _AffineForm:
        factors = dict(self.factors)
        for x, by in other.factors.items():
            factors[x] = factors.get(x, 0) + factor * by
        number = self.number + factor * other.number
        return _AffineForm(number, {x: by for x, by in factors.items() if by})


@dataclass(frozen=True, slots=True)
class _CarriedStore:
    """A store and the reads of later trips that find what it has stored.

    Attributes:
        carry: the number of the array in the carry.
        store: the node of `after` that stores.
        reads: nodes of `after`, each with how many trips later it reads.
        is_safe: whether what the first trips read is in range, also where the loop makes no trip.
        is_sunk: whether all trips store in one place and nothing else reads it: the last is enough.
    """

    carry: int
    store: Node
    reads: Mapping[Node, int]
    is_safe: bool
    is_sunk: bool

    @property
    def distance(self) -> int:
        """How many trips later the last read is."""
        return max(self.reads.values())

    @property
    def positions(self) -> tuple[Value, ...]:
        return self.store.operands[2:]

    def first_read(self) -> Value:
        """Return the read of what it stores, of the row where the program reads an element of it.

        It belongs to `after`; at the first trips it is what later ones find stored.
        """
        read = max(self.reads, key=lambda x: self.reads[x])
        operands = read.operands[: len(self.positions) + 1]
        type = self.store.operands[1].type
        return Node(read.op, operands, read.attrs, (), [type], read.source).results[0]


class _Positions:
    """The positions of a loop's trips, as affine functions of its counters.

    Attributes:
        inner: the param of `after` for each carry of `before` that is forwarded.
        steps: what a trip adds to each counter, a param of `after`.
        starts: what each counter is in the first trip, where that is known.
    """

    def __init__(self, w: WhileParts) -> None:
        self.w = w
        self._forms: dict[Value, _AffineForm | None] = {}
        self.trips = len(next(iter(known_values(w).values()), ()))
        self.steps: dict[Value, int] = {}
        self.starts: dict[Value, int] = {}
        self.inner = dict(zip(w.forwarded, w.after_forwarded, strict=True))
        for param, counter in counters(w).items():
            step = counter.known_step(w)
            if step is None or param not in self.inner or param.type != TensorType(INT64, ()):
                continue
            self.steps[self.inner[param]] = step
            if (start := as_integer(counter.start)) is not None:
                self.starts[self.inner[param]] = start

    def of(self, value: Value) -> _AffineForm | None:
        """Return a value of `after` as a function of counters and invariants."""
        if value not in self._forms:
            self._forms[value] = self._form(value)
        return self._forms[value]

    def _form(self, value: Value) -> _AffineForm | None:
        if value.type != TensorType(INT64, ()):
            return None
        if value in self.steps:
            return _AffineForm(0, {value: 1})
        outer = outer_value(self.w, value)
        number = as_integer(outer)
        if number is not None:
            return _AffineForm(number)
        if value in self.w.after_invariants:
            return _AffineForm(0, {outer: 1})
        if value.node is None or value.node.op not in _ARITHMETIC:
            return None
        x, y = map(self.of, value.node.operands)
        if x is None or y is None:
            return None
        if value.node.op is not elementwise.mul:
            return x.plus(y, 1 if value.node.op is elementwise.add else -1)
        if x.factors and y.factors:
            return None
        return _AffineForm(0).plus(x, y.number) if x.factors else _AffineForm(0).plus(y, x.number)

    def apart(self, read: Value, stored: Value, distance: int) -> int | None:
        """Return how far a position is from another one some trips before, if that is fixed."""
        x, y = self.of(read), self.of(stored)
        if x is None or y is None:
            return None
        apart = x.plus(y, -1)
        return None if apart.factors else apart.number + distance * self._slope(y)

    def is_in_range(self, position: Value, trip: int, dim: Dim) -> bool:
        """Return whether a position that is in range in each trip is so before the loop as well."""
        x = self.of(position)
        if self.trips > trip:
            return True
        if x is None:
            return False
        if not any(value in self.steps for value in x.factors):
            return True
        if not all(value in self.starts for value in x.factors) or not isinstance(dim, int):
            return False
        first = sum(factor * self.starts[value] for value, factor in x.factors.items())
        return 0 <= x.number + first + trip * self._slope(x) < dim

    def _slope(self, x: _AffineForm) -> int:
        """Return what a trip adds."""
        return sum(factor * self.steps.get(value, 0) for value, factor in x.factors.items())


def _carried_stores(w: WhileParts, hoistable: Iterable[Node] = ()) -> list[_CarriedStore]:
    """Return the stores of a loop that later trips read, some of them by reads to be hoisted."""
    positions, reads, carried = _Positions(w), _reads_in_order(w), list[_CarriedStore]()
    for read in hoistable:
        reads[read.operands[0]].append(read)
    users = users_of([*w.before.nodes, *w.after.nodes])
    for carry, param in enumerate(w.before_carry):
        array = positions.inner.get(param)
        stores = _stores(w.next_carry[carry], array)
        if array is None or not stores:
            continue
        sources = {x: _source(x, stores, positions) for x in reads[array]}
        for store in stores:
            distances = {x: of[1] for x, of in sources.items() if of and of[0] is store}
            is_safe = all(_is_safe(x, by, positions) for x, by in distances.items())
            if distances and (is_safe or (max(distances.values()) == 1 and can_test_twice(w))):
                others = [*users[array], *users[store.results[0]], *users[param]]
                is_sunk = (
                    is_safe
                    and all(x is store or x in distances for x in others)
                    and _stores_in_one_place(w, carry, store, positions)
                )
                carried.append(_CarriedStore(carry, store, distances, is_safe, is_sunk))
    return carried


def _stores_in_one_place(w: WhileParts, carry: int, store: Node, positions: _Positions) -> bool:
    """Return whether each trip replaces what the one before has stored in an array."""
    return (
        not store.op.may_fail(store)
        and all(positions.apart(x, x, 1) == 0 for x in store.operands[2:])
        and [*w.next_carry].count(store.results[0]) == 1
        and store.operands[0] not in w.next_carry
        and [*w.forwarded].count(w.before_carry[carry]) == 1
    )


def _stores(value: Value, array: Value | None) -> list[Node]:
    """Return the stores by which a trip makes a value of an array, in order."""
    chain: list[Node] = []
    while value.node is not None and value.node.op is updating.scatter_set:
        chain.append(value.node)
        value = value.node.operands[0]
    return chain[::-1] if value is array else []


def _reads_in_order(w: WhileParts) -> dict[Value, list[Node]]:
    """Return the reads of each array that may move before the loop: errors stay in order."""
    is_open = not any(map(may_end_run, w.before.nodes))
    reads: dict[Value, list[Node]] = defaultdict(list)
    for node in w.after.nodes:
        may_fail = may_end_run(node)
        if node.op is indexing.gather and (is_open or not may_fail):
            reads[node.operands[0]].append(node)
        is_open = is_open and not may_fail
    return reads


def _source(read: Node, stores: Sequence[Node], positions: _Positions) -> tuple[Node, int] | None:
    """Return the store that a read finds, and how many trips before it was."""
    dims = read.operands[0].tensor.dims
    for distance in range(1, _MAX_DISTANCE + 1):
        for store in reversed(stores):
            apart = [
                positions.apart(x, y, distance)
                for x, y in zip(read.operands[1:], store.operands[2:], strict=False)
            ]
            if all(x == 0 for x in apart) and len(store.operands) <= len(read.operands) + 1:
                return (store, distance) if _is_small_row(store) else None
            if not any(
                x and isinstance(dim, int) and abs(x) < dim
                for x, dim in zip(apart, dims, strict=False)
            ):
                return None  # it may be what this store has stored
    return None


def _is_small_row(store: Node) -> bool:
    """Return whether what a store stores is an element or a short row, of the array's shape."""
    array, value, *indices = store.operands
    row = array.tensor.dims[len(indices) :]
    sizes = [dim for dim in row if isinstance(dim, int)]
    return value.tensor.dims == row and len(sizes) == len(row) and math.prod(sizes) <= _MAX_ELEMENTS


def _is_safe(read: Node, distance: int, positions: _Positions) -> bool:
    """Return whether a read cannot fail in the first trips, nor before a loop that makes none."""
    array, *indices = read.operands
    return not read.op.may_fail(read) and all(
        positions.is_in_range(x, trip, dim)
        for trip in range(distance)
        for x, dim in zip(indices, array.tensor.dims, strict=False)
    )


def _with_carries(nodes: list[Node], loop: Node, stores: Sequence[_CarriedStore]) -> Node:
    """Return a loop that carries what it stores; append what the first trips read.

    What a store stored one trip ago, and then more, are the last carries, in the order of stores.
    """
    w, starts = WhileParts.of(loop), _starts(nodes, WhileParts.of(loop), stores)
    before_carry, after_carry = ([Value(x.type) for x in starts] for _ in range(2))
    firsts = [0, *accumulate(x.distance for x in stores)]
    carried = {
        read: (after_carry[first + distance - 1], len(x.positions))
        for x, first in zip(stores, firsts, strict=False)
        for read, distance in x.reads.items()
    }
    stored: dict[Node, Value] = {x.store: x.store.operands[1] for x in stores}

    def read(copies: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node in stored:
            stored[node] = operands[1]
        if node not in carried:
            copies.append(with_operands(node, operands))
            return copies[-1].results
        value, count = carried[node]
        if len(operands) - 1 == count:
            return [value]
        types = [x.type for x in node.results]
        element = [value, *operands[1 + count :]]
        copies.append(Node(node.op, element, node.attrs, (), types, node.source))
        return copies[-1].results

    after = rewrite_nodes(w.after, read)
    next_carry = [*after.results]
    for x, first in zip(stores, firsts, strict=False):
        if x.is_sunk:
            next_carry[x.carry] = x.store.operands[0]
        next_carry += [stored[x.store], *after_carry[first : first + x.distance - 1]]
    regions = (
        Graph(
            w.before.name,
            (*w.before_carry, *before_carry, *w.before_invariants),
            w.before.nodes,
            (*w.before.results, *before_carry),
        ),
        Graph(
            w.after.name,
            (*w.after_forwarded, *after_carry, *w.after_invariants),
            after.nodes,
            tuple(next_carry),
        ),
    )
    operands = (*w.carry, *starts, *w.invariants)
    attrs = {**loop.attrs, "carry": len(w.carry) + len(starts)}
    types = [x.type for x in (*loop.results, *starts)]
    copy = Node(loop.op, operands, attrs, regions, types, loop.source)
    copy.remark = loop.remark
    keep_names(loop.results, copy.results[: len(loop.results)])
    return copy


def _stored_at_end(
    nodes: list[Node], loop: Node, stores: Sequence[_CarriedStore], count: int
) -> list[Value]:
    """Append the stores that leave a loop; return its first results, with these arrays."""
    w, results = WhileParts.of(loop), [*loop.results[:count]]
    b = Build("")
    b.nodes = nodes
    last = count
    for x in stores:
        if x.is_sunk:
            b.source = x.store.source
            at = w.forwarded.index(w.before_carry[x.carry])
            outer = lift(x.positions, nodes, _at_trip(b, w, 0))
            operands = (results[at], loop.results[last], *(outer[p] for p in x.positions))
            results[at] = b.emit(x.store.op, *operands, **x.store.attrs)
        last += x.distance
    return results


def _starts(nodes: list[Node], w: WhileParts, stores: Sequence[_CarriedStore]) -> list[Value]:
    """Append what the first trips read, from the arrays as they are before the loop."""
    b = Build("")
    b.nodes, b.source = nodes, w.source
    reads = {x.store: x.first_read() for x in stores}
    starts: dict[Node, list[Value]] = {x.store: [] for x in stores}
    for trip in range(max(x.distance for x in stores)):
        safe = [x.store for x in stores if x.is_safe and trip < x.distance]
        lifted = lift([reads[x] for x in safe], nodes, _at_trip(b, w, trip)) if safe else {}
        for store in safe:
            starts[store].insert(0, lifted[reads[store]])
    guarded_stores = [x.store for x in stores if not x.is_safe]
    if guarded_stores:
        values = [reads[x] for x in guarded_stores]
        node = guarded(b, first_test(b, w), values, _at_trip(b, w, 0))
        starts |= {x: [value] for x, value in zip(guarded_stores, node.results, strict=True)}
    return [value for x in stores for value in starts[x.store]]


def _at_trip(b: Build, w: WhileParts, trip: int) -> dict[Value, Value]:
    """Return what the params of `after` that a position needs are outside, in one of the trips."""
    inner = dict(zip(w.forwarded, w.after_forwarded, strict=True))
    starts = dict(zip(w.before_carry, w.carry, strict=True))
    outer = dict(zip(w.after_invariants, w.invariants, strict=True))
    outer.update((inner[x], start) for x, start in starts.items() if x in inner)
    for param, counter in counters(w).items():
        step = counter.known_step(w)
        if trip and step is not None and param in inner:
            outer[inner[param]] = b.add(counter.start, b.integer(step * trip))
    return outer
