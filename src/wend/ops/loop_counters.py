"""Counters of a loop, and the trip counts that follow from them (LLVM: induction variables)."""

from __future__ import annotations

from dataclasses import dataclass

from wend.ir.dtypes import INT64, INTEGERS
from wend.ir.graph import Value
from wend.ir.types import Dim, TensorType
from wend.ops import elementwise, shaping
from wend.ops.control import WhileParts
from wend.ops.creating import is_constant

# The tests that end a counting loop: the sign of the step, and what the bound lacks to be exclusive
_TESTS = {
    elementwise.lt: (1, 0),
    elementwise.le: (1, 1),
    elementwise.gt: (-1, 0),
    elementwise.ge: (-1, -1),
}
_MOST_TRIPS = 1 << 60  # beyond it 64 bits may not hold the values of counters
_SCALAR = TensorType(INT64, ())


@dataclass(frozen=True, slots=True)
class Counter:
    """An integer carry that changes by a fixed step a trip, so its value at trip t follows from t.

    Attributes:
        start: its first value, outside the loop.
        step: a constant or an invariant of `after`.
        is_down: whether the step is subtracted.
    """

    start: Value
    step: Value
    is_down: bool


def counters(w: WhileParts) -> dict[Value, Counter]:
    """Return the carries of `before` that only count."""
    counters = {}
    for start, param, last in zip(w.carry, w.before_carry, w.next_carry, strict=True):
        type, node = param.type, last.node
        if not isinstance(type, TensorType) or type.shape != () or type.dtype not in INTEGERS:
            continue
        if node is None or node.op not in (elementwise.add, elementwise.sub):
            continue
        is_down = node.op is elementwise.sub
        for value, step in (node.operands, node.operands[::-1])[: 1 if is_down else 2]:
            source = value in w.after_forwarded and w.forwarded[w.after_forwarded.index(value)]
            if source is param and (is_constant(step) or step in w.after_invariants):
                counters[param] = Counter(start, step, is_down)
    return counters


def known_values(w: WhileParts) -> dict[Value, range]:
    """Return the values that counters of `before` take at each trip, if the trip count is known.

    It is where a counter that starts at a constant, and goes by a constant, is compared with a
    constant. The ranges are of one length, the number of trips; after the loop each counter has the
    value that would follow.
    """
    test = w.predicate.node
    if test is None or test.op not in _TESTS or test.operands[0] not in w.before_carry:
        return {}
    known = {}
    for param, counter in counters(w).items():
        start, step = as_integer(counter.start), as_integer(counter.step)
        if start is not None and step:
            known[param] = start, -step if counter.is_down else step
    counted, bound = test.operands[0], as_integer(_outer_value(w, test.operands[1]))
    if bound is None or counted not in known:
        return {}
    start, step = known[counted]
    sign, missing = _TESTS[test.op]
    if sign * step < 0 or abs(bound - start) > _MOST_TRIPS:
        return {}
    trips = len(range(start, bound + missing, step))
    if any(abs(first) + abs(by) * trips > _MOST_TRIPS for first, by in known.values()):
        return {}
    return {param: range(first, first + by * trips, by) for param, (first, by) in known.items()}


def trip_count(w: WhileParts) -> Dim | None:
    """Return the trip count of a counted loop: a number, or the size of an array."""
    if known := known_values(w):
        return len(next(iter(known.values())))
    test = w.predicate.node
    if test is None or test.op is not elementwise.lt:
        return None
    counted, bound = test.operands[0], _outer_value(w, test.operands[1]).node
    counter = counters(w).get(counted)
    if counter is None or bound is None or bound.op is not shaping.dim_of:
        return None
    is_by_one = as_integer(counter.start) == 0 and as_integer(counter.step) == 1
    if counter.is_down or not is_by_one:
        return None
    axis: int = bound.attrs["axis"]
    return bound.operands[0].tensor.dims[axis]


def _outer_value(w: WhileParts, value: Value) -> Value:
    """Return the outer value that an invariant of the test stands for."""
    if value in w.before_invariants:
        return w.invariants[w.before_invariants.index(value)]
    return value


def as_integer(value: Value) -> int | None:
    """Return the number that a 64-bit constant is."""
    if value.node is None or not is_constant(value) or value.type != _SCALAR:
        return None
    return int(value.node.attrs["value"])
