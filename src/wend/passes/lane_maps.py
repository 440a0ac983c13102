"""Lanes in registers: the maps whose elements a backend computes side by side, in vectors.

Such a body is made of numbers, and nothing in it can fail. Its loops may be nested, and may keep
records for backward loops; the records of an inner loop are items of those of the outer one. A
backend that has lanes gets these maps as they are; others are lowered to loops over the elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace

from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.types import ListType, MaybeType, TensorType, Type
from wend.ops import creating, elementwise, lists
from wend.ops.control import PREDICATE, WhileParts, if_, while_
from wend.ops.parallel_map import LIST, STACK, ParallelMapParts, parallel_map
from wend.ops.shapes import size_of
from wend.passes.batch_lanes import MAX_VALUE_ELEMENTS, is_harmless

# Fewer elements run one after the other
MIN_ELEMENTS = 16
# Two vectors hide the latency of short bodies, and of the rounds of draws, each of which waits for
# the one before; other long ones have parallelism, and few registers
NARROW, WIDE, _MAX_WIDE_NODES = 8, 16, 32


def runs_in_lanes(node: Node) -> bool:
    """Return whether the elements of a map can be computed side by side in vectors.

    That holds for one lane, too: what is computed, and in which order, does not depend on how many
    the program asks for.
    """
    return may_run_in_lanes(node) and all(form == STACK for form in node.attrs["results"])


def may_run_in_lanes(node: Node) -> bool:
    """Return whether a map can run in lanes once its sums are those of stacks."""
    if node.op is not parallel_map:
        return False
    p = ParallelMapParts.of(node)
    size = p.mapped[0].tensor.dims[0] if isinstance(p.mapped[0].type, TensorType) else 0
    if "lanes" not in p.limits and isinstance(size, int) and size < MIN_ELEMENTS:
        return False
    if LIST in p.forms:
        return False
    types = [*p.body.param_types, *p.body.result_types]
    return all(map(is_number, types)) and _LaneBody().accepts(p.body)


def obstacle(node: Node) -> str:
    """Return why a map has no lanes; nothing if no single node of its body is the reason."""
    p = ParallelMapParts.of(node)
    size = p.mapped[0].tensor.dims[0] if isinstance(p.mapped[0].type, TensorType) else MIN_ELEMENTS
    if p.limits.get("lanes") == 1:
        return "vmap has lanes=1"
    if isinstance(size, int) and size < MIN_ELEMENTS:
        return f"there are fewer than {MIN_ELEMENTS}"
    for inner in p.body.walk():
        is_of_lists = _has_list((*inner.operands, *inner.results))
        if not is_of_lists and (inner.op.may_fail(inner) or inner.op.effect is not Effect.NONE):
            return f"`{inner.op.name}`{at(inner.source)} may raise an error"
        types = [_innermost(x.type) for x in (*inner.operands, *inner.results)]
        large = [type for type in types if not _has_few_elements(type)]
        if large:
            return f"`{inner.op.name}`{at(inner.source)} has {large[0]}"
    loops = [WhileParts.of(x) for x in p.body.walk() if x.op is while_]
    if any(_has_list(w.carry) and _has_list(w.invariants) for w in loops):
        return "a loop that reads records keeps others"
    branches = [x for x in p.body.walk() if x.op is if_]
    if any(x.op is while_ and _has_list(x.operands) for node in branches for x in _inside(node)):
        return "a loop in a branch keeps records"
    return ""


def _inside(node: Node) -> list[Node]:
    return [x for region in node.regions for x in region.walk()]


def _innermost(type: Type) -> Type:
    while not isinstance(type, TensorType):
        if isinstance(type, ListType):
            type = type.element
        elif isinstance(type, MaybeType):
            type = type.of
        else:
            return type
    return type


def _has_few_elements(type: Type) -> bool:
    """Return whether a type is that of a small array, of any numbers."""
    if not isinstance(type, TensorType) or type.shape is None:
        return False
    count = size_of(type.shape)
    return count is not None and count <= MAX_VALUE_ELEMENTS


def is_loop_of_numbers(w: WhileParts) -> bool:
    """Return whether a loop can run in lanes of registers, by itself."""
    values = [*w.before_carry, *w.before_invariants, *w.forwarded]
    return all(is_number(x.type) for x in values) and all(
        _accepts_all(region) for region in (w.before, w.after)
    )


def is_number(type: Type) -> bool:
    """Return whether values of a type are numbers that lanes have."""
    return (
        isinstance(type, TensorType)
        and type.shape == ()
        and type.dtype.kind in "fiub"
        and (type.dtype.kind != "f" or type.dtype.itemsize in (4, 8))
    )


def is_elementwise(node: Node) -> bool:
    """Return whether each element of a result follows from those of the operands at its place."""
    return node.op.batch is elementwise.add.batch


def lane_count(node: Node) -> int:
    """Return how many elements of a map are computed side by side; 1: it is a loop over them."""
    p = ParallelMapParts.of(node)
    return p.limits.get("lanes") or suitable_lanes(p.body)


def suitable_lanes(body: Graph) -> int:
    """Return how many lanes suit a body."""
    nodes = sum(node.op is not creating.constant for node in body.walk())
    draws = any(node.op is elementwise.mul_high for node in body.walk())
    return WIDE if draws or nodes <= _MAX_WIDE_NODES else NARROW


def refilled_loops(body: Graph) -> Sequence[Node]:
    """Return the loops whose lanes take the next element when one is done.

    They are the only loop of a body, or one with the loop that reads its records; none if the body
    has others. Then elements run in groups.
    """
    loops = [node for node in body.nodes if _has_loop(node)]
    match [(_has_list(node.operands), _has_list(node.results)) for node in loops]:
        case [(False, False)] | [(True, True), (True, False)]:
            return loops if all(node.op is while_ for node in loops) else ()
    return ()


def _has_list(values: Iterable[Value]) -> bool:
    return any(isinstance(x.type, ListType) for x in values)


def _accepts_all(region: Graph) -> bool:
    return all(map(_accepts, region.nodes))


def _accepts(node: Node) -> bool:
    """Return whether lanes may compute a node without records."""
    if not all(is_number(x.type) for x in (*node.operands, *node.results)):
        return False
    if node.op is while_ or (node.op is if_ and _is_choice(node)):
        return all(map(_accepts_all, node.regions))
    return is_harmless(node) and (node.op is creating.constant or is_elementwise(node))


def _is_choice(node: Node) -> bool:
    return node.operands[0].type == PREDICATE and len(node.regions) == 2


@dataclass(frozen=True, eq=False, slots=True)
class _Records:
    """The facts about a list of records.

    Attributes:
        item: the item that a trip adds, in the region of the loop that adds it.
        counters: the values that are the number of trips of that loop.
        trips: that number, where it is the same for all elements and known.
        has_last: whether there is a record of the test that ended the loop, too.
    """

    item: Value
    counters: Collection[Value]
    trips: int | None
    has_last: bool

    def is_counter(self, value: Value) -> bool:
        """Return whether a value is the number of trips of the loop."""
        is_trips = self.trips is not None and _is_int(value, self.trips)
        return is_trips or value in self.counters


@dataclass(slots=True)
class _LaneBody:
    """The lists of a body.

    Attributes:
        empty: those that are empty, and that no loop has filled yet.
        records: those that a loop has filled.
    """

    empty: set[Value] = field(default_factory=set)
    records: dict[Value, _Records] = field(default_factory=dict)

    def accepts(self, body: Graph) -> bool:
        """Return whether lanes may compute a body, and should: it has a loop."""
        return any(map(_has_loop, body.nodes)) and self._accepts_all(body)

    def _accepts_all(self, region: Graph, known: Collection[Node] = ()) -> bool:
        """Accept the nodes of a region, but for those that are known to be right."""
        return all(node in known or self._accepts(node) for node in region.nodes)

    def _accepts(self, node: Node) -> bool:
        if node.op is lists.list_new:
            self.empty.update(node.results)
            return True
        if node.op is if_:
            numbers = all(is_number(x.type) for x in (*node.operands, *node.results))
            return numbers and _is_choice(node) and all(map(self._accepts_all, node.regions))
        if node.op is not while_:
            return _accepts(node)
        w = WhileParts.of(node)
        if _has_list(w.carry):
            return self._accepts_writer(node, w)
        if _has_list(w.invariants):
            return self._accepts_reader(w)
        values = (*w.carry, *w.invariants, *node.results)
        return all(is_number(x.type) for x in values) and all(map(self._accepts_all, node.regions))

    def _accepts_writer(self, node: Node, w: WhileParts) -> bool:
        """Accept a loop that adds one record a trip to lists that were empty."""
        pushes: dict[Value, Node] = {}
        with_last: set[Value] = set()
        counters: list[Value] = []
        for k, start in enumerate(w.carry):
            is_list = isinstance(start.type, ListType)
            if not is_list and not is_number(start.type):
                return False
            early = push_before(w, k) if is_list else None
            if early is not None and start in self.empty:
                self.empty.remove(start)
                result = node.results[w.forwarded.index(early.results[0])]
                pushes[result] = early
                with_last.add(result)
                continue
            place = _forwarded_at(w, k)
            if place is None:
                if is_list:
                    return False
                continue
            inner, following = w.after_forwarded[place], w.next_carry[k]
            if not is_list:
                if _is_int(start, 0) and is_sum(following, inner, 1):
                    counters.append(node.results[place])
                continue
            push = following.node
            users = [x for x in w.after.nodes if inner in x.operands]
            if start not in self.empty or push is None or push.op is not lists.list_push:
                return False
            if users != [push] or push.operands[0] is not inner or inner in w.next_carry:
                return False
            self.empty.remove(start)
            pushes[node.results[place]] = push
        listed = {x for x in node.results if isinstance(x.type, ListType)}
        if not counters or listed != pushes.keys():
            return False
        known = {*pushes.values()}
        if not all(is_number(x.type) for x in w.invariants):
            return False
        if not all(self._accepts_all(region, known) for region in node.regions):
            return False
        for result, push in pushes.items():
            item = push.operands[1]
            if not is_number(item.type) and item not in self.records:
                return False
            self.records[result] = _Records(item, counters, _known_trips(w), result in with_last)
        return True

    def _accepts_reader(self, w: WhileParts) -> bool:
        """Accept a loop that reads the records of one loop, the last first."""
        counter = backward_counter(w)
        read = [x for x in w.invariants if isinstance(x.type, ListType)]
        if counter is None or not all(x in self.records for x in read):
            return False
        if not all(self.records[x].is_counter(w.carry[counter]) for x in read):
            return False
        place = _forwarded_at(w, counter)
        assert place is not None
        pairs = zip(w.invariants, w.before_invariants, w.after_invariants, strict=True)
        for x, *params in pairs:
            if x in read:
                self.records.update(dict.fromkeys(params, self.records[x]))
        last = self._record_reads(w.before, w.before_carry[counter], None)
        index = w.after_forwarded[place]
        gets = self._record_reads(w.after, index, index)
        return (
            self._accepts_all(w.before, last)
            and self._accepts_all(w.after, gets)
            and all(is_number(x.type) for x in (*w.before_carry, *w.forwarded))
        )

    def _record_reads(self, region: Graph, following: Value, index: Value | None) -> set[Node]:
        """Return the nodes that read the record of a trip, or of the test that followed it.

        `following` is the number of that test, and `index` less one that of the trip.
        """
        items: dict[Node, tuple[Value, bool]] = {}
        for node in region.nodes:
            if node.op is not lists.list_get or node.operands[0] not in self.records:
                continue
            list, position = node.operands
            records, is_next = self.records[list], position is following
            is_trip = index is not None and is_sum(position, index, -1)
            if is_trip or (is_next and records.has_last):
                items[node] = records.item, is_next
        for node, (item, is_next) in items.items():
            if item in self.records:
                inner = self.records[item]
                counters = [
                    x.results[0]
                    for x in items
                    if items[x] in {(y, is_next) for y in inner.counters}
                ]
                self.records[node.results[0]] = replace(inner, counters=counters)
        return {*items}


def _known_trips(w: WhileParts) -> int | None:
    """Return the number of trips of a loop that counts them up to a constant."""
    test = w.predicate.node
    if test is None or test.op is not elementwise.lt or test.operands[0] not in w.before_carry:
        return None
    k, bound = w.before_carry.index(test.operands[0]), test.operands[1].node
    place = _forwarded_at(w, k)
    if place is None or bound is None or bound.op is not creating.constant:
        return None
    is_count = _is_int(w.carry[k], 0) and is_sum(w.next_carry[k], w.after_forwarded[place], 1)
    return max(0, int(bound.attrs["value"][()])) if is_count else None


def push_before(w: WhileParts, k: int) -> Node | None:
    """Return what adds a record to a carried list before each test, if nothing else uses it."""
    list = w.before_carry[k]
    users = [x for x in w.before.nodes if list in x.operands]
    if len(users) != 1 or users[0].op is not lists.list_push or users[0].operands[0] is not list:
        return None
    (pushed,) = users[0].results
    if [x for x in w.before.results if x in (list, pushed)] != [pushed]:
        return None
    inner = w.after_forwarded[w.forwarded.index(pushed)]
    is_passed_on = [i for i, x in enumerate(w.next_carry) if x is inner] == [k]
    used = any(pushed in x.operands for x in w.before.nodes)
    used |= any(inner in x.operands for x in w.after.nodes)
    return users[0] if is_passed_on and not used else None


def backward_counter(w: WhileParts) -> int | None:
    """Return the position of the carry that counts the trips of a loop down to 0, if that ends it.

    Its test is the only thing that the loop computes before a trip.
    """
    test = w.predicate.node
    if test is None or test.op not in (elementwise.gt, elementwise.lt):
        return None
    operand, bound = test.operands if test.op is elementwise.gt else reversed(test.operands)
    if operand not in w.before_carry or not _is_int(bound, 0):
        return None
    k = w.before_carry.index(operand)
    place = _forwarded_at(w, k)
    if place is None or not is_sum(w.next_carry[k], w.after_forwarded[place], -1):
        return None
    return k


def _forwarded_at(w: WhileParts, k: int) -> int | None:
    """Return where a loop forwards a carry unchanged."""
    value = w.before_carry[k]
    return w.forwarded.index(value) if value in w.forwarded else None


def _is_int(value: Value, number: int) -> bool:
    node = value.node
    if node is None or node.op is not creating.constant or value.type != TensorType(INT64, ()):
        return False
    return int(node.attrs["value"][()]) == number


def is_sum(value: Value, operand: Value, number: int) -> bool:
    """Return whether a value is another plus a number."""
    node = value.node
    if node is None:
        return False
    if node.op is elementwise.sub:
        return node.operands[0] is operand and _is_int(node.operands[1], -number)
    if node.op is not elementwise.add or operand not in node.operands:
        return False
    others: Sequence[Value] = [x for x in node.operands if x is not operand]
    return len(others) == 1 and _is_int(others[0], number)


def _has_loop(node: Node) -> bool:
    return node.op is while_ or any(x.op is while_ for x in _inside(node))
