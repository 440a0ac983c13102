"""Counters of a loop, and the trip counts that follow from them (LLVM: induction variables)."""

from __future__ import annotations

from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import INT64, INTEGERS
from wend.ir.graph import Value
from wend.ir.types import Dim, TensorType
from wend.ops import elementwise, shaping
from wend.ops.control import WhileParts
from wend.ops.creating import is_constant

# The tests that end a counting loop: the sign of the step, and whether the bound is inclusive
LOOP_TESTS = {
    elementwise.lt: (1, False),
    elementwise.le: (1, True),
    elementwise.gt: (-1, False),
    elementwise.ge: (-1, True),
}
MAX_TRIPS = 1 << 60  # beyond it 64 bits may not hold the values of counters
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

    def known_step(self, w: WhileParts) -> int | None:
        """Return what a trip of its loop adds to it, if that is a known number."""
        step = as_integer(outer_value(w, self.step))
        return -step if self.is_down and step is not None else step


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


@dataclass(frozen=True, slots=True)
class TestedCounter:
    """The counter whose comparison with a bound ends a loop.

    Attributes:
        param: the counter, in `before`.
        start: its first value, outside the loop.
        step: what a trip adds to it.
        bound: the value in `before` with which it is compared.
        is_inclusive: whether the counter may take that value in a trip.
    """

    param: Value
    start: Value
    step: int
    bound: Value
    is_inclusive: bool


def tested_counter(w: WhileParts) -> TestedCounter | None:
    """Return the counter that the test of a loop compares, if it goes towards the bound."""
    test = w.predicate.node
    if test is None or test.op not in LOOP_TESTS:
        return None
    param, bound = test.operands
    counter = counters(w).get(param)
    step = None if counter is None else counter.known_step(w)
    if counter is None or step is None:
        return None
    sign, is_inclusive = LOOP_TESTS[test.op]
    if sign * step <= 0:
        return None
    return TestedCounter(param, counter.start, step, bound, is_inclusive)


def known_values(w: WhileParts) -> dict[Value, range]:
    """Return the values that counters of `before` take at each trip, if the trip count is known.

    It is where a counter that starts at a constant, and goes by a constant, is compared with a
    constant. The ranges are of one length, the number of trips; after the loop each counter has the
    value that would follow.
    """
    tested = tested_counter(w)
    if tested is None:
        return {}
    known = {}
    for param, counter in counters(w).items():
        start, step = as_integer(counter.start), counter.known_step(w)
        if start is not None and step:
            known[param] = start, step
    bound = as_integer(outer_value(w, tested.bound))
    if bound is None or tested.param not in known:
        return {}
    start, step = known[tested.param]
    if abs(bound - start) > MAX_TRIPS:
        return {}
    sign = 1 if step > 0 else -1
    trips = len(range(start, bound + sign * tested.is_inclusive, step))
    if any(abs(first) + abs(by) * trips > MAX_TRIPS for first, by in known.values()):
        return {}
    return {param: range(first, first + by * trips, by) for param, (first, by) in known.items()}


def trip_count(w: WhileParts) -> Dim | None:
    """Return the trip count of a counted loop: a number, or the size of an array."""
    if known := known_values(w):
        return len(next(iter(known.values())))
    tested = tested_counter(w)
    if tested is None or tested.step != 1 or tested.is_inclusive or as_integer(tested.start) != 0:
        return None
    size = outer_value(w, tested.bound).node
    if size is None or size.op is not shaping.dim_of:
        return None
    axis: int = size.attrs["axis"]
    return size.operands[0].tensor.dims[axis]


def outer_value(w: WhileParts, value: Value) -> Value:
    """Return the outer value that an invariant of a region stands for."""
    for invariants in (w.before_invariants, w.after_invariants):
        if value in invariants:
            return w.invariants[invariants.index(value)]
    return value


def as_integer(value: Value) -> int | None:
    """Return the number that a 64-bit constant is."""
    if value.node is None or not is_constant(value) or value.type != _SCALAR:
        return None
    return int(value.node.attrs["value"])


def are_equal_integers(x: Value, y: Value) -> bool:
    """Return whether two values are one, or equal 64-bit constants."""
    number = as_integer(x)
    return x is y or (number is not None and number == as_integer(y))
