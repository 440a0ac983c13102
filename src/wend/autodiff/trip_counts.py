"""The trip count of a loop, computed from its bounds: then it need not be recorded."""

from __future__ import annotations

from wend.ir.dtypes import INT64
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.ops.loop_counters import (
    TestedCounter,
    as_integer,
    known_values,
    outer_value,
    tested_counter,
)

_COUNT = TensorType(INT64, ())


def computed_trip_count(b: Build, w: WhileParts) -> Value | None:
    """Append the trip count of a loop that a counter ends, from values outside the loop.

    None: it does not follow from one value and constants.
    """
    if known := known_values(w):
        return b.integer(len(next(iter(known.values()))))
    tested = tested_counter(w)
    if tested is None or tested.start.type != _COUNT or tested.bound.type != _COUNT:
        return None
    bound = outer_value(w, tested.bound)
    start_number, bound_number = as_integer(tested.start), as_integer(bound)
    is_outer = bound is not tested.bound or bound_number is not None
    if not is_outer or (start_number is None and bound_number is None):
        return None
    start = tested.start if start_number is None else b.integer(start_number)
    bound = bound if bound_number is None else b.integer(bound_number)
    return _trips(b, tested, start, bound)


def _trips(b: Build, tested: TestedCounter, start: Value, bound: Value) -> Value:
    first, last = (start, bound) if tested.step > 0 else (bound, start)
    compare = elementwise.le if tested.is_inclusive else elementwise.lt
    distance, step = b.sub(last, first), abs(tested.step)
    if not tested.is_inclusive:
        distance = b.sub(distance, b.integer(1))
    trips = distance if step == 1 else b.floor_divide(distance, b.integer(step))
    # Bounds far apart the other way round would overflow
    return b.select(b.emit(compare, first, last), b.add(trips, b.integer(1)), b.integer(0))
