"""Positions in arrays that are affine in the trip number of an innermost counted loop.

Such a position is `first + slope * trip` (LLVM: an add recurrence). If its first and its last value
are in range, so are all between them, and one test before the loop replaces one in each trip.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias, TypeVar

from wend.backends.native.target.value_layout import is_scalar
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect, Op
from wend.ir.types import ListType, TensorType, TokenType, Type, without_maybe
from wend.ops import creating, elementwise, lists
from wend.ops.control import IfParts, WhileParts, if_
from wend.ops.frame_states import frame_state
from wend.ops.loop_counters import LOOP_TESTS, as_integer, counters
from wend.ops.tape_lengths import excess_length, known_length
from wend.ops.updating import ELEMENT_POSITIONS

T = TypeVar("T")

_I64 = TensorType(INT64, ())
# The first of the operands that are positions
_POSITIONS = {**ELEMENT_POSITIONS, lists.list_get: 1}
_ARITHMETIC = {elementwise.add: "add", elementwise.sub: "sub", elementwise.mul: "mul"}
# The comparisons with their operands exchanged
_EXCHANGED = {
    elementwise.lt: elementwise.gt,
    elementwise.le: elementwise.ge,
    elementwise.gt: elementwise.lt,
    elementwise.ge: elementwise.le,
}
# Two copies of a larger body would cost more to compile than the tests cost to run.
MAX_NODES = 48


@dataclass(frozen=True, slots=True)
class Combination:
    """A number computed from others in wrapping 64-bit arithmetic: their sum, difference, product.

    Attributes:
        op: the LLVM instruction.
    """

    op: str
    x: Number
    y: Number


# A number that does not change in the loop; a `Value` is a param of `before`, as the loop begins
Number: TypeAlias = int | Value | Combination


def combine(op: str, x: Number, y: Number) -> Number:
    """Return a sum, difference or product, computed now if that is possible."""
    result: Number | None = fold(op, x, y)
    return Combination(op, x, y) if result is None else result


def fold(op: str, x: int | T, y: int | T) -> int | T | None:
    """Return a sum, difference or product if it takes no instruction, else None."""
    if isinstance(x, int) and isinstance(y, int):
        return wrap(x + y if op == "add" else x - y if op == "sub" else x * y)
    if y == 0 and op != "mul":
        return x
    if x == 0 and op == "add":
        return y
    if op == "mul" and 0 in (x, y):
        return 0
    if op == "mul" and 1 in (x, y):
        return y if x == 1 else x
    return None


def wrap(number: int) -> int:
    """Return a number as 64 signed bits hold it."""
    return (number + 2**63) % 2**64 - 2**63


@dataclass(frozen=True, slots=True)
class Affine:
    """The number `first + slope * trip`, in wrapping 64-bit arithmetic."""

    first: Number
    slope: Number


@dataclass(frozen=True, slots=True)
class RemainderRange:
    """A remainder by `bound`: not negative, and less than it if that is positive."""

    bound: Number


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an array along an axis, or the length of a list; it is a param of `before`."""

    array: Value
    axis: int


@dataclass(frozen=True, slots=True)
class Access:
    """A position of a node that reads or writes an element.

    Attributes:
        node: the node.
        operand: the number of the operand that is the position.
        positions: the values that it takes.
        size: the size that it must be less than.
        follows_test: whether only trips compute it; else the test that ends the loop does, too.
    """

    node: Node
    operand: int
    positions: Affine | RemainderRange
    size: int | Size
    follows_test: bool


@dataclass(frozen=True, slots=True)
class TripTest:
    """A comparison with a bound that holds in each trip; the slope of its value is a number.

    Attributes:
        value: what is compared.
        slope: its slope, towards the bound.
        bound: the bound.
        is_inclusive: whether the value may be the bound in a trip.
        is_predicate: whether nothing else ends the loop.
    """

    value: Affine
    slope: int
    bound: Number
    is_inclusive: bool
    is_predicate: bool


@dataclass(frozen=True, slots=True)
class CountedAccesses:
    """The test that bounds the trips of a loop, and the positions that then follow a pattern.

    Attributes:
        test: the test.
        accesses: the positions.
        repeats_test: whether `before` may run again on the same carry.
    """

    test: TripTest
    accesses: Sequence[Access]
    repeats_test: bool


def counted_accesses(w: WhileParts, emitted: Container[Op]) -> CountedAccesses | None:
    """Return the positions of a small innermost loop that a test before it can check, if any.

    Args:
        w: the loop.
        emitted: the operations that have native code.
    """
    nodes = [node for region in (w.before, w.after) for node in region.walk()]
    if len(nodes) > MAX_NODES or not all(node.op in emitted and _is_simple(node) for node in nodes):
        return None
    values = LoopValues(w)
    flag_and_test = values.test()
    if flag_and_test is None:
        return None
    flag, test = flag_and_test
    accesses = (
        *values.accesses(w.before, flag, False),
        *values.accesses(w.after, flag, True),
    )
    if not accesses:
        return None
    return CountedAccesses(test, accesses, _is_repeatable(w))


def tape_reads(w: WhileParts) -> Sequence[tuple[Node, int]]:
    """Return the positions, by node and operand, at which a loop reads tapes backwards.

    The loop counts down to 0 from the trip count of the loop that recorded them, so it reads each
    tape from its last record on, and no position is out of range.
    """
    reads = [node for node in w.after.nodes if node.op is lists.list_get]
    if not reads:
        return ()
    values = LoopValues(w)
    flag_and_test = values.test()
    if flag_and_test is None:
        return ()
    flag, test = flag_and_test
    if (test.slope, test.bound, test.is_inclusive) != (-1, 0, False):
        return ()
    start = test.value.first
    outer = dict(zip(w.before.params, (*w.carry, *w.invariants), strict=True))

    def is_in_range(access: Access) -> bool:
        if not isinstance(access.size, Size) or not isinstance(access.size.array.type, ListType):
            return False
        items, excess = outer[access.size.array], None
        if isinstance(start, Value):
            excess = excess_length(items, outer[start])
        elif isinstance(start, int) and start >= 0 and (length := known_length(items)) is not None:
            excess = length - start
        if excess is None or excess < 0:
            return False
        first = access.positions
        return first == Affine(combine("sub", start, 1), -1) or (
            excess > 0 and first == Affine(start, -1)
        )

    accesses = values.accesses(w.after, flag, True)
    return [(x.node, x.operand) for x in accesses if is_in_range(x)]


def _is_simple(node: Node) -> bool:
    """Return whether a node takes the time of a few instructions."""
    if node.op is frame_state:
        return True
    if node.op.effect not in (Effect.NONE, Effect.CHECK) or (node.regions and node.op is not if_):
        return False
    if node.op in ELEMENT_POSITIONS:
        numbers = [*node.operands[1:], *(() if node.op.updates == 0 else node.results)]
        return all(is_scalar(value.type) for value in numbers)
    if node.op is if_:
        return True
    return all(map(_is_scalar_or_list, (v.type for v in (*node.operands, *node.results))))


def _is_scalar_or_list(type: Type) -> bool:
    """Return whether a value is a number, a list of numbers or a token."""
    type = without_maybe(type)
    if isinstance(type, ListType):
        return is_scalar(type.element)
    return isinstance(type, TokenType) or (isinstance(type, TensorType) and is_scalar(type))


def _is_repeatable(w: WhileParts) -> bool:
    """Return whether `before` only computes numbers, and hands on each array once."""
    arrays = [v for v in w.before_carry if not _is_scalar_or_list(v.type)]
    handed_on = [v for v in w.forwarded if not _is_scalar_or_list(v.type)]
    has_updates = any(node.op.updates is not None for node in w.before.walk())
    return not has_updates and sorted(map(id, arrays)) == sorted(map(id, handed_on))


@dataclass(eq=False, slots=True)
class LoopValues:
    """The facts about values in a loop.

    Attributes:
        w: the loop.
        same: the value that each param of a region stands for.
    """

    w: WhileParts
    same: dict[Value, Value] = field(default_factory=dict)
    _affine: dict[Value, Affine | None] = field(default_factory=dict)
    _stable: set[Value] = field(default_factory=set)
    _arrays: dict[Value, Value | None] = field(default_factory=dict)  # as `_stable` has it

    def __post_init__(self) -> None:
        w = self.w
        self.same.update(zip(w.after_invariants, w.before_invariants, strict=True))
        self.same.update(zip(w.after_forwarded, w.forwarded, strict=True))
        for region in (w.before, w.after):
            for node in region.walk():
                if node.op is if_:
                    parts = IfParts.of(node)
                    for branch in parts.branches:
                        self.same.update(zip(branch.params, parts.operands, strict=True))
        for param, outer in zip(w.before_invariants, w.invariants, strict=True):
            if param.type == _I64:
                known = as_integer(outer)
                self._affine[param] = Affine(param if known is None else known, 0)
        for param, counter in counters(w).items():
            if param.type == _I64:
                start, step = as_integer(counter.start), self.affine(counter.step)
                assert step is not None
                slope = combine("sub", 0, step.first) if counter.is_down else step.first
                self._affine[param] = Affine(param if start is None else start, slope)
        self._stable.update(w.before_carry)
        while changed := {
            param
            for param, following in zip(w.before_carry, w.next_carry, strict=True)
            if param in self._stable and self.array(following) is not param
        }:
            self._stable -= changed
            self._arrays.clear()

    def resolve(self, value: Value) -> Value:
        """Return the value that the param of a region stands for."""
        while value in self.same:
            value = self.same[value]
        return value

    def affine(self, value: Value) -> Affine | None:
        """Return a 64-bit integer as a function of the trip, if it is affine."""
        value = self.resolve(value)
        if value not in self._affine:
            self._affine[value] = self._find_affine(value)
        return self._affine[value]

    def _find_affine(self, value: Value) -> Affine | None:
        node = value.node
        if node is None or value.type != _I64:
            return None
        if node.op is creating.constant:
            return Affine(int(node.attrs["value"]), 0)
        if node.op is elementwise.neg:
            op, operands = "sub", [Affine(0, 0), self.affine(node.operands[0])]
        elif node.op in _ARITHMETIC:
            op, operands = _ARITHMETIC[node.op], [*map(self.affine, node.operands)]
        else:
            return None
        x, y = operands
        if x is None or y is None:
            return None
        first = combine(op, x.first, y.first)
        if op != "mul":
            return Affine(first, combine(op, x.slope, y.slope))
        if x.slope != 0 and y.slope != 0:
            return None
        slope, factor = (x.slope, y.first) if y.slope == 0 else (y.slope, x.first)
        return Affine(first, combine("mul", slope, factor))

    def positions(self, value: Value) -> Affine | RemainderRange | None:
        """Return the values that a position takes, if they follow a pattern."""
        affine, node = self.affine(value), self.resolve(value).node
        if affine is not None or node is None or node.op is not elementwise.remainder:
            return affine
        divisor = self.affine(node.operands[1])
        return RemainderRange(divisor.first) if divisor is not None and divisor.slope == 0 else None

    def array(self, value: Value) -> Value | None:
        """Return the param of `before` that has the sizes of an array in each trip, if known."""
        value = self.resolve(value)
        if value not in self._arrays:
            self._arrays[value] = self._array(value)
        return self._arrays[value]

    def _array(self, value: Value) -> Value | None:
        node = value.node
        if node is None:
            is_known = value in self._stable or value in self.w.before_invariants
            return value if is_known else None
        if node.op.updates is not None and node.op in ELEMENT_POSITIONS:
            return self.array(node.operands[node.op.updates])
        if node.op is if_:
            k = node.results.index(value)
            arrays = {self.array(branch.results[k]) for branch in IfParts.of(node).branches}
            return arrays.pop() if len(arrays) == 1 else None
        return None

    def test(self) -> tuple[Value, TripTest] | None:
        """Return a comparison with a bound that holds in each trip, and what it says."""
        predicate = self.resolve(self.w.predicate)
        for flag in self.implied(predicate):
            node = flag.node
            if node is None or node.op not in LOOP_TESTS:
                continue
            x, y = map(self.affine, node.operands)
            if x is None or y is None:
                continue
            op = node.op
            if x.slope == 0:
                op, x, y = _EXCHANGED[op], y, x
            sign, is_inclusive = LOOP_TESTS[op]
            if y.slope == 0 and isinstance(x.slope, int) and x.slope * sign > 0:
                test = TripTest(x, x.slope, y.first, is_inclusive, flag is predicate)
                return flag, test
        return None

    def implied(self, flag: Value) -> Iterator[Value]:
        """Yield flags that hold where a flag holds."""
        flag = self.resolve(flag)
        yield flag
        node = flag.node
        if node is None:
            return
        if node.op is elementwise.bit_and:
            for operand in node.operands:
                yield from self.implied(operand)
        elif node.op is if_:
            parts, k = IfParts.of(node), node.results.index(flag)
            if len(parts.branches) == 2 and parts.selector.type == flag.type:
                otherwise = self.resolve(parts.branches[0].results[k])
                if creating.is_constant(otherwise) and not otherwise.node.attrs["value"]:  # type: ignore[union-attr]
                    yield from self.implied(parts.selector)

    def accesses(self, region: Graph, flag: Value, follows_test: bool) -> Iterator[Access]:
        """Yield the positions in a region that follow a pattern; `flag` is the test's."""
        for node in region.nodes:
            if node.op is if_:
                parts = IfParts.of(node)
                is_flag = len(parts.branches) == 2 and flag in self.implied(parts.selector)
                for k, branch in enumerate(parts.branches):
                    yield from self.accesses(branch, flag, follows_test or (is_flag and k == 1))
            elif node.op in _POSITIONS:
                first = _POSITIONS[node.op]
                for axis, position in enumerate(node.operands[first:]):
                    positions = self.positions(position)
                    size = self._size(node.operands[0], axis)
                    if positions is not None and size is not None:
                        yield Access(node, first + axis, positions, size, follows_test)

    def _size(self, array: Value, axis: int) -> int | Size | None:
        type = array.type
        if isinstance(type, ListType):
            items = self.resolve(array)
            return Size(items, axis) if items in self.w.before_invariants else None
        if not isinstance(type, TensorType) or type.shape is None or is_scalar(type):
            return None
        dim = type.shape[axis]
        if isinstance(dim, int):
            return dim
        param = self.array(array)
        return None if param is None else Size(param, axis)
