"""Lanes: a loop that each element leaves at another trip, as one loop on vectors of elements.

A lane computes one element at a time. A lane whose element is done waits, unchanged, until a
quarter of the lanes wait, or all do; then their results are stored, and they take the next
elements. So the cost is the sum of the trips, not the longest run times the number of elements.
Nothing in such a loop can fail, so lanes that wait may compute along; what they compute is not
taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.ir.builder import new_symbol
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import inline
from wend.ir.types import Dim, TensorType, Type
from wend.ops import elementwise, reducing
from wend.ops.batching import BatchBuild
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.shapes import size_of

# So many lanes fit the first cache, and repay what a trip costs besides its arithmetic
LANES = 256
# So many elements at least repay lanes: those that wait at the end must be few among all
MIN_IN_LANES = 4 * LANES
# Fewer elements run one after the other
MIN_ELEMENTS = 32
# Larger values are vectors by themselves
MAX_VALUE_ELEMENTS = 4
_WAITING_SHARE = 4  # one in so many lanes may wait


@dataclass(frozen=True, slots=True)
class LaneTarget:
    """Which loops have lanes, and how many.

    Attributes:
        in_registers: whether the backend has lanes in registers, for loops of numbers.
        count: how many there are at most, where the program says.
    """

    in_registers: bool = False
    count: int | None = None

    def suits(self, w: WhileParts, size: Dim) -> bool:
        """Return whether a loop for so many elements has lanes that are arrays."""
        is_few = isinstance(size, int) and size < MIN_ELEMENTS
        return not (is_few and self.count is None) and may_have_lanes(w)


def may_have_lanes(w: WhileParts) -> bool:
    """Return whether a loop is made of small numbers, and nothing in it can fail."""
    values = [*w.before_carry, *w.forwarded]
    nodes = [*w.before.walk(), *w.after.walk()]
    return all(map(is_small, values)) and all(map(is_harmless, nodes))


def is_small(value: Value) -> bool:
    """Return whether a value has so few numbers that lanes repay."""
    if not isinstance(value.type, TensorType) or value.type.shape is None:
        return False
    size = size_of(value.type.shape)
    return size is not None and size <= MAX_VALUE_ELEMENTS


def is_harmless(node: Node) -> bool:
    """Return whether lanes that wait may compute a node: their counters are past the last trip."""
    if node.attrs.get("in_bounds"):
        return False
    return node.op.effect is Effect.NONE and not node.op.may_fail(node) and node.op is not while_


@dataclass(slots=True)
class Lanes:
    """The lanes of a loop under construction.

    Attributes:
        c: the builder for all elements.
        size: the number of lanes as a dimension.
        count: that number.
        most: how many there are for many elements.
    """

    c: BatchBuild
    size: Dim
    count: Value
    most: int

    @staticmethod
    def of(c: BatchBuild, most: int) -> Lanes:
        """Return so many lanes as there are elements, or the most."""
        if isinstance(c.size, int):
            size = min(most, c.size)
            return Lanes(c, size, c.b.integer(size), most)
        count = c.b.emit(elementwise.minimum, c.count, c.b.integer(most))
        return Lanes(c, new_symbol(), count, most)

    def append(
        self,
        before: Graph,
        after: Graph,
        starts: Sequence[Value],
        invariants: Sequence[Value],
        flags: Sequence[bool],
    ) -> list[Value]:
        """Append the loop, and return what each element forwards at its last test.

        Args:
            before: (carry…, invariants…, count) → (test, forwarded…), for all lanes.
            after: (forwarded…, invariants…, count) → next carry.
            starts: the carry on entry, of all elements.
            invariants: the invariants; those flagged of all elements.
            flags: which of the invariants differ from element to element.
        """
        c = self.c
        own = [x for x, flag in zip(invariants, flags, strict=True) if flag]
        shared = [x for x, flag in zip(invariants, flags, strict=True) if not flag]
        columns = [*starts, *own]
        index = c.b.refine(c.b.iota(self.count), self._vector())
        outs = [self._room(x.tensor) for x in before.results[1:]]
        entry = [index, self.count, *(c.b.gather(x, index) for x in columns), *outs]
        outer = [c.count, self.count, *columns, *shared]
        layout = _LaneRegions(self, before, after, len(starts), flags, len(outs))
        regions = [layout.before(entry, outer), layout.after(entry, outer)]
        loop = c.b.while_(entry, outer, *regions)
        loop.remark = Remark(lanes=self.most)
        results = loop.results
        first = 1 + len(entry) - len(outs) - 1
        return [self._filled(x) for x in results[first : first + len(outs)]]

    def _vector(self) -> TensorType:
        return TensorType(INT64, (self.size,))

    def _room(self, type: TensorType) -> Value:
        """Return room for a result of each element, and of lanes that have none."""
        b, inner = self.c.b, type.dims[1:]
        rows = b.add(self.c.count, b.integer(1))
        sizes = b.concat(b.insert_axes(rows, axes=(0,)), b.constant(inner, np.int64), axis=0)
        size: Dim = self.c.size + 1 if isinstance(self.c.size, int) else new_symbol()
        return b.spread(b.constant(0, type.dtype), sizes, (size, *inner))

    def _filled(self, x: Value) -> Value:
        b = self.c.b
        return b.narrow(x, b.integer(0), self.c.count, axis=0, size=self.c.size)


@dataclass(slots=True)
class _LaneRegions:
    """The regions of the loop, over (index, next element, carry…, own…, results…; the rest)."""

    lanes: Lanes
    first: Graph
    second: Graph
    carry: int
    flags: Sequence[bool]
    outs: int

    def before(self, entry: Sequence[Value], outer: Sequence[Value]) -> Graph:
        b = Build("before")
        state, fixed = _params(b, entry, outer)
        index, values = state[0], state[2 : 2 + self.carry]
        test, *forwarded = inline(self.first, [*values, *self._invariants(state, fixed)], b.nodes)
        is_active = b.lt(index, b.broadcast_like(fixed[0], index))
        any_active = b.emit(reducing.reduce_any, is_active, axes=(0,), keepdims=False)
        return b.finish([any_active, *state, test, *forwarded])

    def after(self, entry: Sequence[Value], outer: Sequence[Value]) -> Graph:
        b = Build("after")
        types = [TensorType(np.dtype(bool), (self.lanes.size,)), *self._forwarded_types()]
        state, fixed = _params(b, entry, [*(Value(type) for type in types), *outer])
        (test, *forwarded), fixed = fixed[: len(types)], fixed[len(types) :]
        index, values = state[0], state[2 : 2 + self.carry]
        is_active = b.lt(index, b.broadcast_like(fixed[0], index))
        goes_on = _and(b, is_active, test)
        is_done = _and(b, is_active, b.emit(elementwise.bit_not, test))
        following = inline(self.second, [*forwarded, *self._invariants(state, fixed)], b.nodes)
        values = [
            _choose(b, goes_on, b.refine(new, old.type), old)
            for new, old in zip(following, values, strict=True)
        ]
        done, active = _total(b, is_done), _total(b, is_active)
        enough = b.emit(elementwise.ge, b.mul(done, b.integer(_WAITING_SHARE)), fixed[1])
        is_time = b.emit(elementwise.bit_or, enough, b.eq(done, active))
        operands = [index, state[1], *values, *state[2 + self.carry :]]
        operands += [is_done, done, *forwarded, *fixed]
        branches = [self._wait(operands), self._refill(operands, len(forwarded))]
        return b.finish(b.if_(is_time, operands, branches).results)

    def _forwarded_types(self) -> list[Type]:
        return [x.type for x in self.first.results[1:]]

    def _invariants(self, state: Sequence[Value], fixed: Sequence[Value]) -> list[Value]:
        """Return the invariants of the lanes, and their number."""
        own_count = sum(self.flags)
        own = iter(state[2 + self.carry : 2 + self.carry + own_count])
        shared = iter(fixed[2 + self.carry + own_count :])
        return [*(next(own) if flag else next(shared) for flag in self.flags), fixed[1]]

    def _wait(self, operands: Sequence[Value]) -> Graph:
        b = Build("branch")
        params = [b.param(x.type) for x in operands]
        return b.finish(params[: self._state_count])

    @property
    def _state_count(self) -> int:
        return 2 + self.carry + sum(self.flags) + self.outs

    def _refill(self, operands: Sequence[Value], forwarded_count: int) -> Graph:
        """Store the results of the lanes that are done, and let them take the next elements."""
        b = Build("branch")
        params = [b.param(x.type) for x in operands]
        state, (is_done, done, *others) = (
            params[: self._state_count],
            params[self._state_count :],
        )
        forwarded, (total, _, *columns) = others[:forwarded_count], others[forwarded_count:]
        index, following = state[:2]
        limit = b.broadcast_like(total, index)
        place = b.select(is_done, index, limit)
        outs = [
            b.scatter_set(out, x, place)
            for out, x in zip(state[self._state_count - self.outs :], forwarded, strict=True)
        ]
        rank = b.cumsum(b.cast(is_done, INT64), axis=0, reverse=False)
        taken = b.add(b.broadcast_like(b.sub(following, b.integer(1)), index), rank)
        index = b.select(is_done, b.emit(elementwise.minimum, taken, limit), index)
        last = b.sub(limit, b.broadcast_like(b.integer(1), limit))
        row = b.emit(elementwise.minimum, index, last)
        values = [
            _choose(b, is_done, b.refine(b.gather(column, row), old.type), old)
            for column, old in zip(columns, state[2 : self._state_count - self.outs], strict=False)
        ]
        following = b.emit(elementwise.minimum, b.add(following, done), total)
        return b.finish([index, following, *values, *outs])


def _params(
    b: Build, entry: Sequence[Value], outer: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    return [b.param(x.type) for x in entry], [b.param(x.type) for x in outer]


def _and(b: Build, x: Value, y: Value) -> Value:
    return b.emit(elementwise.bit_and, x, y)


def _total(b: Build, flags: Value) -> Value:
    return b.reduce_sum(b.cast(flags, INT64), axes=(0,), keepdims=False)


def _choose(b: Build, flags: Value, yes: Value, no: Value) -> Value:
    """Choose for each lane, for all numbers of its value."""
    test: Any = b.insert_axes(flags, axes=tuple(range(1, len(yes.tensor.dims))))
    return b.select(b.broadcast_like(test, yes), yes, no)
