"""Intervals of the integers of a graph, where each one is computed (interval analysis).

Ends follow by arithmetic; from tests, in the branches and trips that they let in; and for what
loops carry from a fixpoint, in which an end that keeps moving is given up (P. and R. Cousot,
Abstract interpretation, 1977). So `x[i]` is known to be in range behind `while i < len(x)`.
Equal expressions have one interval, in whichever region they are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field
from typing import TypeAlias

from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import BOOL, INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import TensorType
from wend.ops import creating, elementwise, indexing
from wend.ops.control import CallParts, IfParts, WhileParts, call, if_, while_
from wend.ops.creating import is_constant
from wend.ops.loop_counters import MAX_TRIPS, as_integer, known_values, outer_value, tested_counter

# The least and the greatest value of an integer
Interval: TypeAlias = tuple[int, int]
Intervals: TypeAlias = dict[Value, Interval]
# A number: a constant, an operation on others, or what a value is
Expression: TypeAlias = "int | Value | tuple[Op, *tuple[Expression, ...]]"
# The intervals of numbers that are no constants
Facts: TypeAlias = dict[Expression, Interval]

_ANY: Interval = (-(2**63), 2**63 - 1)
# An end that keeps moving by small steps: no program makes so many trips that it gets there.
_WIDENED = MAX_TRIPS + 1
_SMALL_STEP = 8
_MAX_ROUNDS = 3  # of a loop, before ends that still move are given up
_MAX_VISITS = 64  # of a node, on average: loops in loops in loops have their bodies visited often
_MAX_DEPTH = 3  # of an expression whose interval is computed again
_INTEGER, _FLAG = TensorType(INT64, ()), TensorType(BOOL, ())


def ranges_of_positions(graph: Graph, positions_of: Callable[[Node], Iterable[Value]]) -> Intervals:
    """Return the intervals of the positions that nodes use, in regions too, where they are known.

    An interval holds behind the tests that lead to its node. The result is empty where several
    nodes hold one region, or where loops are nested so deep that the analysis would take long.

    Args:
        graph: the graph.
        positions_of: returns the operands of a node that are positions: 64-bit integers.
    """
    nodes = [*graph.walk()]
    held = [region for node in nodes for region in node.regions]
    if len({*held}) < len(held):
        return {}
    analysis = _RangeAnalysis(positions_of, _MAX_VISITS * len(nodes))
    try:
        analysis.region(graph, {})
    except _TooManyVisitsError:
        return {}
    return analysis.known


class _TooManyVisitsError(Exception):
    """Nodes were visited so often that the analysis is given up."""


def _is_integer(value: Value) -> bool:
    return value.type == _INTEGER


def _meet(x: Interval, y: Interval) -> Interval:
    """Return what is in both; `x` where that is nothing, as in code that no run gets to."""
    low, high = max(x[0], y[0]), min(x[1], y[1])
    return (low, high) if low <= high else x


def _join(x: Interval, y: Interval) -> Interval:
    return min(x[0], y[0]), max(x[1], y[1])


@dataclass(eq=False, repr=False, slots=True)
class _RangeAnalysis:
    """The analysis of a graph and its regions.

    A region is visited again where more is carried to it, or less known; the last visit is_final.

    Attributes:
        positions_of: returns the operands of a node that are positions: 64-bit integers.
        known: their intervals.
        expressions: the number that each integer and test is, in the latest visit of its region.
        visits: how many visits of nodes are left.
    """

    positions_of: Callable[[Node], Iterable[Value]]
    visits: int
    known: Intervals = field(default_factory=dict)
    expressions: dict[Value, Expression] = field(default_factory=dict)
    _contents: dict[Graph, tuple[Sequence[Node], Sequence[Value]]] = field(default_factory=dict)

    def expression(self, value: Value) -> Expression:
        """Return the number that a value is."""
        return self.expressions.get(value, value)

    def interval(self, value: Value, facts: Facts) -> Interval | None:
        """Return the interval of a value, if it is an integer with a known one."""
        return refined(self.expression(value), facts) if _is_integer(value) else None

    def bind_params(self, operands: Sequence[Value], params: Sequence[Value]) -> None:
        """Bind the params of a region to the numbers that enter it."""
        for operand, param in zip(operands, params, strict=True):
            self.expressions[param] = self.expression(operand)

    def bind(
        self, values: Sequence[Value], intervals: Sequence[Interval | None], facts: Facts
    ) -> None:
        """Bind values to numbers of their own, in these intervals."""
        for value, interval in zip(values, intervals, strict=True):
            self.expressions[value] = value
            facts.pop(value, None)
            if interval is not None:
                facts[value] = interval

    def region(self, graph: Graph, facts: Facts, *, is_final: bool = True) -> Facts:
        """Return what is known in a region, given what is known where it is entered.

        Args:
            graph: the region; its params are bound.
            facts: the intervals of numbers.
            is_final: whether each run of the region is so, not only those with some outcome.
        """
        facts = dict(facts)
        nodes, positions = self._contents_of(graph)
        self.visits -= len(nodes)
        if self.visits < 0:
            raise _TooManyVisitsError
        for node in nodes:
            if node.op is while_:
                self._loop(node, facts, is_final=is_final)
            elif node.op is if_:
                self._branches(node, facts, is_final=is_final)
            elif node.op is call:
                p = CallParts.of(node)
                self.bind_params(p.operands, p.callee.params)
                inside = self.region(p.callee, facts, is_final=is_final)
                self.bind(node.results, [self.interval(x, inside) for x in p.callee.results], facts)
            elif node.regions:
                for region in node.regions if is_final else ():
                    self.bind(region.params, [None] * len(region.params), facts)
                    self.region(region, facts)
            else:
                self._compute(node, facts)
        for value in positions if is_final else ():
            interval = self.interval(value, facts)
            if interval is None:
                self.known.pop(value, None)
            else:
                self.known[value] = interval
        return facts

    def _contents_of(self, graph: Graph) -> tuple[Sequence[Node], Sequence[Value]]:
        """Return the nodes of a region that tell of integers, and the values to be known."""
        if graph not in self._contents:
            nodes = [node for node in graph.nodes if node.regions or _tells_of_integers(node)]
            positions = [x for node in graph.nodes for x in self.positions_of(node)]
            self._contents[graph] = nodes, [*dict.fromkeys(positions)]
        return self._contents[graph]

    def _compute(self, node: Node, facts: Facts) -> None:
        """Find the number that a node computes, and its interval."""
        result = node.results[0]
        number = as_integer(result)
        if number is not None:
            self.expressions[result] = number
        elif node.op in _ENDS or node.op in _TESTS or node.op in _LOGIC:
            is_of_integers = all(map(_is_integer, node.operands))
            if node.op in _LOGIC or is_of_integers:
                expression: Expression = (node.op, *map(self.expression, node.operands))
                self.expressions[result] = expression
                interval = _recomputed(expression, facts) if node.op in _ENDS else None
                if interval is not None:
                    facts[expression] = _meet(facts.get(expression, _ANY), interval)
        elif node.op is elementwise.select and _is_integer(result):
            test, *choices = node.operands
            behind = (self.assume(self.expression(test), truth, facts) for truth in (True, False))
            pairs = zip(choices, behind, strict=True)
            x, y = (self.interval(choice, of_choice) for choice, of_choice in pairs)
            self.bind([result], [_join(x, y) if x and y else None], facts)
        elif node.op is indexing.position:
            self.bind([result], [interval_of(node, {})], facts)

    def _branches(self, node: Node, facts: Facts, *, is_final: bool) -> None:
        p = IfParts.of(node)
        ends: list[Sequence[Interval | None]] = []
        for number, branch in enumerate(p.branches):
            of_branch = facts
            if p.selector.type == _FLAG:
                of_branch = self.assume(self.expression(p.selector), bool(number), facts)
            self.bind_params(p.operands, branch.params)
            inside = self.region(branch, of_branch, is_final=is_final)
            ends.append([self.interval(x, inside) for x in branch.results])
        joined = [
            (min(x[0] for x in of_result if x), max(x[1] for x in of_result if x))
            if all(of_result)
            else None
            for of_result in zip(*ends, strict=True)
        ]
        self.bind(node.results, joined, facts)

    def _loop(self, node: Node, facts: Facts, *, is_final: bool) -> None:
        w = WhileParts.of(node)
        entering = {x: self.interval(x, facts) for x in (*w.carry, *w.invariants)}
        outer = {x: ends for x, ends in entering.items() if ends is not None}
        ranges = counter_ranges(w, outer)
        first = [
            ranges[1].get(x, outer.get(y)) for x, y in zip(w.before_carry, w.carry, strict=True)
        ]
        before, carry, number = facts, first, 0
        while True:
            before, following = self._trip(w, carry, facts, ranges, is_final=is_final)
            widened = _widened(carry, following, gives_up=number >= _MAX_ROUNDS)
            if number >= 2 * _MAX_ROUNDS:
                widened = [None] * len(carry)
            if widened == carry:
                break
            carry, number = widened, number + 1
        if number > _MAX_ROUNDS:
            # One more trip gives bounds that hold as well: what was given up may return.
            carry = [
                _join(x, y) if x and y else None for x, y in zip(first, following, strict=True)
            ]
            before, _ = self._trip(w, carry, facts, ranges, is_final=is_final)
        left = self.assume(self.expression(w.predicate), False, before)
        self.bind(node.results, [self.interval(x, left) for x in w.forwarded], facts)

    def _trip(
        self,
        w: WhileParts,
        carry: Sequence[Interval | None],
        facts: Facts,
        ranges: tuple[Intervals, Intervals],
        *,
        is_final: bool,
    ) -> tuple[Facts, Sequence[Interval | None]]:
        """Return what is known at the test of a loop, and the intervals of the next carry."""
        facts = dict(facts)
        self.bind_params(w.invariants, w.before_invariants)
        self.bind(w.before_carry, carry, facts)
        before = self.region(w.before, facts, is_final=is_final)
        going = dict(self.assume(self.expression(w.predicate), True, before))
        _restrict(going, ranges[0])
        self.bind_params(w.forwarded, w.after_forwarded)
        self.bind_params(w.invariants, w.after_invariants)
        after = self.region(w.after, going, is_final=is_final)
        following = [
            now if x in ranges[1] else self.interval(value, after)
            for x, now, value in zip(w.before_carry, carry, w.next_carry, strict=True)
        ]
        return before, following

    def assume(self, test: Expression, truth: bool, facts: Facts) -> Facts:
        """Return what is known where a test has this outcome."""
        if isinstance(test, Value):
            if test.node is not None and test.node.op is if_:
                return self._assume_branch(test, truth, facts)
            return facts
        if isinstance(test, int):
            return facts
        op, *parts = test
        if op is elementwise.bit_not:
            return self.assume(parts[0], not truth, facts)
        if op is (elementwise.bit_and if truth else elementwise.bit_or):
            for part in parts:
                facts = self.assume(part, truth, facts)
            return facts
        return _compared(op, parts[0], parts[1], truth, facts) if op in _TESTS else facts

    def _assume_branch(self, result: Value, truth: bool, facts: Facts) -> Facts:
        """Return what is known where the result of a branch is so, if one branch can give it."""
        assert result.node is not None
        p, k = IfParts.of(result.node), result.node.results.index(result)
        if p.selector.type != _FLAG:
            return facts
        able = [x for x in (0, 1) if _may_be(p, x, k, truth)]
        if len(able) != 1:
            return facts
        (number,) = able
        branch = p.branches[number]
        facts = self.assume(self.expression(p.selector), bool(number), facts)
        self.bind_params(p.operands, branch.params)
        inside = self.assume(
            self.expression(branch.results[k]), truth, self.region(branch, facts, is_final=False)
        )
        local = {x for node in branch.walk() for x in node.results}
        return {
            expression: ends for expression, ends in inside.items() if not _reads(expression, local)
        }


def _tells_of_integers(node: Node) -> bool:
    """Return whether a node gives an integer, or a test of integers, by a rule of this analysis."""
    result = node.results[0] if len(node.results) == 1 else None
    if result is None or result.type not in (_INTEGER, _FLAG):
        return False
    is_known = node.op in _ENDS or node.op in _TESTS or node.op in _LOGIC
    return is_known or node.op in (creating.constant, elementwise.select, indexing.position)


def _may_be(p: IfParts, number: int, k: int, truth: bool) -> bool:
    """Return whether a result of a branch may be so: a constant, and the selector, are known."""
    branch = p.branches[number]
    result = branch.results[k]
    if is_constant(result) and result.node is not None:
        return bool(result.node.attrs["value"]) == truth
    if result in branch.params and p.operands[branch.params.index(result)] is p.selector:
        return bool(number) == truth
    return True


def _reads(expression: Expression, values: Set[Value]) -> bool:
    """Return whether a number is computed from one of these values."""
    if isinstance(expression, tuple):
        return any(_reads(part, values) for part in expression[1:])
    return expression in values


def refined(expression: Expression, facts: Facts, depth: int = _MAX_DEPTH) -> Interval | None:
    """Return the interval of a number, computed again from numbers of which more may be known."""
    if isinstance(expression, int):
        return expression, expression
    interval = facts.get(expression)
    again = _recomputed(expression, facts, depth) if depth else None
    return interval if again is None else again if interval is None else _meet(interval, again)


def _recomputed(expression: Expression, facts: Facts, depth: int = _MAX_DEPTH) -> Interval | None:
    """Return the interval of the result of an operation by its operands alone."""
    if not isinstance(expression, tuple) or expression[0] not in _ENDS:
        return None
    intervals = [refined(x, facts, depth - 1) for x in expression[1:]]
    return _ends(expression[0], [x for x in intervals if x is not None]) if all(intervals) else None


def _restrict(facts: Facts, others: Intervals) -> None:
    for value, interval in others.items():
        facts[value] = _meet(facts[value], interval) if value in facts else interval


def _widened(
    carry: Sequence[Interval | None], following: Sequence[Interval | None], *, gives_up: bool
) -> list[Interval | None]:
    """Return intervals that hold what is carried and what follows."""
    widened: list[Interval | None] = []
    for now, then in zip(carry, following, strict=True):
        if now is None or then is None:
            widened.append(None)
            continue
        low, high = _join(now, then)
        if gives_up:
            low, high = low if low == now[0] else -_WIDENED, high if high == now[1] else _WIDENED
        widened.append((low, high))
    return widened


_LOGIC = {elementwise.bit_and, elementwise.bit_or, elementwise.bit_not}
# The comparisons of x and y where they hold, and where they do not
_TESTS: Mapping[Op, tuple[str, str]] = {
    elementwise.lt: ("<", ">="),
    elementwise.le: ("<=", ">"),
    elementwise.gt: (">", "<="),
    elementwise.ge: (">=", "<"),
    elementwise.eq: ("==", "!="),
    elementwise.ne: ("!=", "=="),
}
_EXCHANGED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _compared(op: Op, x: Expression, y: Expression, truth: bool, facts: Facts) -> Facts:
    """Return what is known where a comparison has this outcome."""
    relation = _TESTS[op][0 if truth else 1]
    of_x, of_y = (refined(number, facts) or _ANY for number in (x, y))
    facts = _with_interval(x, _left_of(relation, of_x, of_y), facts)
    return _with_interval(y, _left_of(_EXCHANGED[relation], of_y, of_x), facts)


def _left_of(relation: str, x: Interval, y: Interval) -> Interval:
    """Return what x may be, if it is so related to y."""
    match relation:
        case "<":
            return _meet(x, (_ANY[0], y[1] - 1))
        case "<=":
            return _meet(x, (_ANY[0], y[1]))
        case ">":
            return _meet(x, (y[0] + 1, _ANY[1]))
        case ">=":
            return _meet(x, (y[0], _ANY[1]))
        case "==":
            return _meet(x, y)
    if y[0] == y[1] and x[0] < x[1]:  # an end that it is not
        return x[0] + (x[0] == y[0]), x[1] - (x[1] == y[0])
    return x


def _with_interval(expression: Expression, interval: Interval, facts: Facts) -> Facts:
    """Return facts in which a number has this interval, and what it is computed from follows."""
    if isinstance(expression, int) or interval == _ANY:
        return facts
    facts = {**facts, expression: _meet(facts.get(expression, _ANY), interval)}
    if not isinstance(expression, tuple) or expression[0] not in _SOURCES:
        return facts
    op, x, y = expression  # type: ignore[misc]
    if op is elementwise.mul and _recomputed(expression, facts) is None:
        return facts  # it may wrap; sums that do have one source in 64 bits all the same
    for source, other, is_first in ((x, y, True), (y, x, False)):
        ends = refined(other, facts)
        if ends is None or ends[0] != ends[1]:
            continue
        source_ends = _SOURCES[op](facts[expression], ends[0], is_first)
        if source_ends is not None and source_ends == _meet(source_ends, _ANY):
            facts = _with_interval(source, source_ends, facts)
    return facts


def _factor(z: Interval, k: int) -> Interval | None:
    return (-(-z[0] // k), z[1] // k) if k > 0 else None


# What x may be, if x + k, x - k or k - x, x · k are in an interval
_SOURCES: Mapping[Op, Callable[[Interval, int, bool], Interval | None]] = {
    elementwise.add: lambda z, k, is_first: (z[0] - k, z[1] - k),
    elementwise.sub: lambda z, k, is_first: (
        (z[0] + k, z[1] + k) if is_first else (k - z[1], k - z[0])
    ),
    elementwise.mul: lambda z, k, is_first: _factor(z, k),
}


# Arithmetic
def interval_of(node: Node, known: Mapping[Value, Interval]) -> Interval | None:
    """Return the interval of the result of a node, if it is an integer with a known one."""
    if node.op is indexing.position:
        size = as_integer(node.operands[1])
        return None if not size else (0, size - 1)
    if node.op is creating.constant:
        number = as_integer(node.results[0])
        return None if number is None else (number, number)
    if node.op not in _ENDS or not all(x in known for x in node.operands):
        return None
    return _ends(node.op, [known[x] for x in node.operands])


def _ends(op: Op, intervals: Sequence[Interval]) -> Interval | None:
    """Return the interval of the result of an operation on integers, None where it may wrap."""
    ends = _ENDS[op](*intervals)
    low, high = min(ends), max(ends)
    if op in (elementwise.add, elementwise.sub):
        low, high = _with_widened_ends(intervals, low, high)
    return (low, high) if max(-low, high) <= _WIDENED else None


def _with_widened_ends(intervals: Sequence[Interval], low: int, high: int) -> Interval:
    """Return the ends of a sum or difference: one that was given up stays, by small steps."""
    for x, y in (intervals, intervals[::-1]):
        if max(map(abs, y)) <= _SMALL_STEP:
            low = -_WIDENED if x[0] == -_WIDENED and low < -_WIDENED else low
            high = _WIDENED if x[1] == _WIDENED and high > _WIDENED else high
    return low, high


def _quotients(x: Interval, y: Interval) -> Sequence[int]:
    return [i // k for i in x for k in y] if y[0] > 0 else _ANY


def _remainders(x: Interval, y: Interval) -> Sequence[int]:
    if y[0] <= 0:
        return _ANY
    return x if x[0] >= 0 and x[1] < y[0] else (0, y[1] - 1)


# What is least or greatest of the results of operands in these intervals
_ENDS: Mapping[Op, Callable[..., Sequence[int]]] = {
    elementwise.add: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    elementwise.sub: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    elementwise.mul: lambda x, y: [i * k for i in x for k in y],
    elementwise.neg: lambda x: (-x[1], -x[0]),
    elementwise.floor_divide: _quotients,
    elementwise.remainder: _remainders,
    elementwise.minimum: lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    elementwise.maximum: lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
}


# Counters
def counter_ranges(w: WhileParts, known: Intervals) -> tuple[Intervals, Intervals]:
    """Return the intervals of the counters of `before` in trips, and at all tests."""
    values = known_values(w)
    if values:
        trips = {x: (min(r[0], r[-1]), max(r[0], r[-1])) for x, r in values.items() if r}
        ends = {x: (r.start, r.start + r.step * len(r)) for x, r in values.items()}
        return trips, {x: (min(pair), max(pair)) for x, pair in ends.items()}
    tested = tested_counter(w)
    if tested is None:
        return {}, {}
    start, bound = (_outer_interval(w, x, known) for x in (tested.start, tested.bound))
    if start is None or bound is None:
        return {}, {}
    by = int(tested.is_inclusive)
    low, high = (start[0], bound[1] - 1 + by) if tested.step > 0 else (bound[0] + 1 - by, start[1])
    # What the last trip adds goes past the bound by less than a step
    at_tests = min(low + min(tested.step, 0), start[0]), max(high + max(tested.step, 0), start[1])
    if max(map(abs, at_tests)) > MAX_TRIPS:
        return {}, {}
    return {tested.param: (low, high)} if low <= high else {}, {tested.param: at_tests}


def _outer_interval(w: WhileParts, value: Value, known: Intervals) -> Interval | None:
    outer = outer_value(w, value)
    number = as_integer(outer)
    return known.get(outer) if number is None else (number, number)
