"""Guards of loops: one test before a loop that its positions in arrays are in range in all trips.

Where it holds, a copy of the loop without range checks runs (LLVM: loop predication). Numbers are
literals or registers, and what is known at compile time leaves no instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from wend.backends.native.analysis.affine_positions import (
    Access,
    Affine,
    Combination,
    CountedAccesses,
    Number,
    RemainderRange,
    Size,
    TripTest,
    fold,
    wrap,
)
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.value_layout import Registers
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ir.types import ListType

# With slopes of at most this size, and so many trips, no position overflows 64 bits: the products
# stay below 2**62, and an array has fewer elements than that.
_MAX_SLOPE = MAX_TRIPS = 1 << 31
_MAX_INT64 = 2**63 - 1
_COMPARISONS = {"slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__}

Known: TypeAlias = int | str  # a literal, or a register


@dataclass(frozen=True, slots=True)
class RangeGuard:
    """A test before a loop.

    Attributes:
        holds: whether all positions are in range, an i1.
        trips: the greatest number of trips, an i64, valid where the guard holds.
        offsets: what is added to a position, by its node and operand, to count it from the front.
    """

    holds: str
    trips: str
    offsets: Mapping[tuple[Node, int], str]


def emit_range_guard(
    low: Lowering,
    counted: CountedAccesses,
    params: Mapping[Value, Registers],
    max_trips: int = MAX_TRIPS,
) -> RangeGuard:
    """Emit the guard of a loop.

    Args:
        low: the lowering of the function.
        counted: the accesses of the loop.
        params: the registers of the params of `before` as the loop begins.
        max_trips: for how many trips the guard may hold.
    """
    emitter = _GuardEmitter(low, params)
    last_trip = emitter.test(counted.test, min(max_trips, MAX_TRIPS))
    offsets = {
        (access.node, access.operand): str(emitter.access(access, last_trip))
        for access in counted.accesses
        if (access.node, access.operand) not in low.offsets
    }
    trips = emitter.binary("add", last_trip, 1)
    return RangeGuard(emitter.holds, str(trips), {**low.offsets, **offsets})


def range_guard_of_tapes(
    low: Lowering, counted: CountedAccesses, params: Mapping[Value, Registers]
) -> RangeGuard:
    """Return the guard of a loop that only reads tapes backwards (`tape_reads`): it holds."""
    trips = _GuardEmitter(low, params).number(counted.test.value.first)
    return RangeGuard("true", str(trips), low.offsets)


@dataclass(eq=False, slots=True)
class _GuardEmitter:
    """Emits numbers, and the conjunction of conditions on them.

    Attributes:
        low: the lowering of the function.
        params: the registers of the params of `before` as the loop begins.
        holds: the conjunction so far.
    """

    low: Lowering
    params: Mapping[Value, Registers]
    holds: str = "true"
    _numbers: dict[Number, Known] = field(default_factory=dict)
    _offsets: dict[tuple[object, ...], Known] = field(default_factory=dict)

    def require(self, flag: str) -> None:
        self.holds = self.low.sizes.logical_and(self.holds, flag)

    def number(self, number: Number) -> Known:
        """Emit a number once."""
        if isinstance(number, int):
            return number
        if number not in self._numbers:
            self._numbers[number] = (
                self.binary(number.op, self.number(number.x), self.number(number.y))
                if isinstance(number, Combination)
                else _known(self.params[number][0])
            )
        return self._numbers[number]

    def binary(self, op: str, x: Known, y: Known) -> Known:
        """Emit a sum, a difference or a product, unless it takes no instruction."""
        result = fold(op, x, y)
        return self.low.w.define(f"{op} i64 {x}, {y}") if result is None else result

    def compare(self, predicate: str, x: Known, y: Known) -> str:
        """Emit a comparison; the predicates that begin with u are unsigned."""
        if isinstance(x, int) and isinstance(y, int):
            if predicate[0] == "u":
                x, y = x % 2**64, y % 2**64
            return "true" if _COMPARISONS["s" + predicate[1:]](x, y) else "false"
        return self.low.w.define(f"icmp {predicate} i64 {x}, {y}")

    def test(self, test: TripTest, max_trips: int) -> Known:
        """Require that there is a trip, and not too many of them; return the number of the last.

        The number of a trip is the trips before it.
        """
        first, bound = self.number(test.value.first), self.number(test.bound)
        is_up, step = test.slope > 0, abs(test.slope)
        self.require(
            self.compare(("sl" if is_up else "sg") + "te"[test.is_inclusive], first, bound)
        )
        if test.is_inclusive or step > 1:
            # What follows the last value must not overflow, for then the loop would go on.
            self.require(
                self.compare("sle", bound, _MAX_INT64 - step)
                if is_up
                else self.compare("sge", bound, step - _MAX_INT64)
            )
        distance = self.binary("sub", *((bound, first) if is_up else (first, bound)))
        if not test.is_inclusive:
            distance = self.binary("sub", distance, 1)
        last_trip: Known
        if isinstance(distance, int):
            last_trip = wrap(distance % 2**64 // step)
        else:
            last_trip = distance
            if step > 1:
                last_trip = self.low.w.define(f"udiv i64 {distance}, {step}")
        self.require(self.compare("ult", last_trip, max_trips))
        return last_trip

    def access(self, access: Access, last_trip: Known) -> Known:
        """Require that a position is in range in all trips; return its offset."""
        size = self._size(access.size)
        if isinstance(access.positions, RemainderRange):
            # It is in range if the bound is between 1 and the size.
            largest = self.binary("sub", self.number(access.positions.bound), 1)
            self.require(self.compare("ult", largest, size))
            return 0
        key = (access.positions, size, access.follows_test)
        if key not in self._offsets:
            last = last_trip if access.follows_test else self.binary("add", last_trip, 1)
            self._offsets[key] = self._affine(access.positions, size, last)
        return self._offsets[key]

    def _affine(self, positions: Affine, size: Known, last_trip: Known) -> Known:
        first, slope = self.number(positions.first), self.number(positions.slope)
        offset = self._offset(first, size)
        first = self.binary("add", first, offset)
        is_ascending = isinstance(slope, int) and slope >= 0
        if not (is_ascending and isinstance(first, int) and first >= 0) or slope == 0:
            self.require(self.compare("ult", first, size))
        if slope == 0:
            return offset
        if isinstance(slope, int):
            self.require("true" if abs(slope) <= _MAX_SLOPE else "false")
        else:
            shifted = self.binary("add", slope, _MAX_SLOPE)
            self.require(self.compare("ule", shifted, 2 * _MAX_SLOPE))
        last = self.binary("add", first, self.binary("mul", slope, last_trip))
        self.require(self.compare("ult", last, size))
        return offset

    def _offset(self, first: Known, size: Known) -> Known:
        """Return the size if the first position is negative, else 0.

        Positions of both signs are then out of range at one end, so the guard fails.
        """
        if isinstance(first, int):
            return size if first < 0 else 0
        is_negative = self.compare("slt", first, 0)
        return self.low.w.define(f"select i1 {is_negative}, i64 {size}, i64 0")

    def _size(self, size: int | Size) -> Known:
        if isinstance(size, int):
            return size
        if isinstance(size.array.type, ListType):
            return _known(self.params[size.array][1])
        array = self.low.arrays.of(size.array.tensor, self.params[size.array])
        return _known(array.dims[size.axis])


def _known(register: str) -> Known:
    """Return a literal as a number."""
    return register if register.startswith("%") else int(register)
