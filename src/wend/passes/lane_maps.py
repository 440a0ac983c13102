"""Lanes in registers: the maps whose elements a backend computes side by side, in vectors.

Such a body is made of numbers, and nothing in it can fail. Its loops may be nested, and may keep
records for one backward loop each. A backend that has lanes gets these maps as they are; others
are lowered to loops over the elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

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
        large = [type for type in types if not _is_few(type)]
        if large:
            return f"`{inner.op.name}`{at(inner.source)} has {large[0]}"
    loops = [x for x in p.body.walk() if x.op is while_]
    regions = [x for loop in loops for region in loop.regions for x in region.walk()]
    if any(x.op is while_ and _has_list(x.operands) for x in regions):
        return "loops inside another keep records"
    return ""


def _innermost(type: Type) -> Type:
    while not isinstance(type, TensorType):
        if isinstance(type, ListType):
            type = type.element
        elif isinstance(type, MaybeType):
            type = type.of
        else:
            return type
    return type


def _is_few(type: Type) -> bool:
    """Return whether a type is that of a few numbers."""
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
    """Return whether lanes may compute a node, those too that do not take part."""
    if not all(is_number(x.type) for x in (*node.operands, *node.results)):
        return False
    if node.op is while_:
        return all(map(_accepts_all, node.regions))
    if node.op is if_:
        is_choice = node.operands[0].type == PREDICATE and len(node.regions) == 2
        return is_choice and all(map(_accepts_all, node.regions))
    return is_harmless(node) and (node.op is creating.constant or is_elementwise(node))


@dataclass(slots=True)
class _LaneBody:
    """The lists that the nodes of a body have filled so far.

    Attributes:
        empty: its empty lists.
        tapes: the lists of records, each with the numbers of trips of its loop.
        with_last: those with a record of the test that ended the loop.
    """

    empty: set[Value] = field(default_factory=set)
    tapes: dict[Value, Collection[Value]] = field(default_factory=dict)
    with_last: set[Value] = field(default_factory=set)

    def accepts(self, body: Graph) -> bool:
        has_loop = False
        for node in body.nodes:
            has_loop |= _has_loop(node)
            if node.op is lists.list_new:
                self.empty.update(node.results)
            elif not _accepts(node) and not self._accepts_tape(node):
                return False
        return has_loop

    def _accepts_tape(self, node: Node) -> bool:
        if node.op is not while_:
            return False
        w = WhileParts.of(node)
        if any(isinstance(x.type, ListType) for x in w.carry):
            return self._accepts_writer(node, w)
        return self._accepts_reader(w)

    def _accepts_writer(self, node: Node, w: WhileParts) -> bool:
        """Accept a loop that adds one record a trip to lists that were empty."""
        pushes: set[Node] = set()
        results: list[Value] = []
        counters: list[Value] = []
        for k, start in enumerate(w.carry):
            is_list = isinstance(start.type, ListType)
            if not is_list and not is_number(start.type):
                return False
            early = push_before(w, k) if is_list else None
            if early is not None and start in self.empty:
                self.empty.remove(start)
                pushes.add(early)
                result = node.results[w.forwarded.index(early.results[0])]
                results.append(result)
                self.with_last.add(result)
                continue
            place = _forwarded_at(w, k)
            if place is None:
                if is_list:
                    return False
                continue
            inner, following = w.after_forwarded[place], w.next_carry[k]
            if not is_list:
                if _is_int(start, 0) and _is_sum(following, inner, 1):
                    counters.append(node.results[place])
                continue
            push = following.node
            users = [x for x in w.after.nodes if inner in x.operands]
            if start not in self.empty or push is None or push.op is not lists.list_push:
                return False
            if users != [push] or push.operands[0] is not inner or inner in w.next_carry:
                return False
            self.empty.remove(start)
            pushes.add(push)
            results.append(node.results[place])
        listed = [x for x in node.results if isinstance(x.type, ListType)]
        self.tapes.update(dict.fromkeys(results, counters))
        nodes = [x for region in node.regions for x in region.nodes if x not in pushes]
        return (
            bool(counters)
            and {*listed} == {*results}
            and all(is_number(x.operands[1].type) for x in pushes)
            and all(is_number(x.type) for x in w.invariants)
            and all(map(_accepts, nodes))
        )

    def _accepts_reader(self, w: WhileParts) -> bool:
        """Accept a loop that reads the records of one loop, the last first."""
        counter = backward_counter(w)
        read = [x for x in w.invariants if isinstance(x.type, ListType)]
        if counter is None or any(w.carry[counter] not in self.tapes.get(x, ()) for x in read):
            return False
        place = _forwarded_at(w, counter)
        assert place is not None
        index = w.after_forwarded[place]
        pairs = zip(w.invariants, w.after_invariants, strict=True)
        tapes = {y: x for x, y in pairs if isinstance(x.type, ListType)}
        for node in w.after.nodes:
            if node.op is lists.list_get and node.operands[0] in tapes:
                list, position = node.operands
                is_next = position is index and tapes[list] in self.with_last
                is_read = is_next or _is_sum(position, index, -1)
                if not is_read or not is_number(node.results[0].type):
                    return False
            elif not _accepts(node):
                return False
        return _accepts_all(w.before) and all(
            is_number(x.type) for x in (*w.before_carry, *w.forwarded)
        )


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
    if place is None or not _is_sum(w.next_carry[k], w.after_forwarded[place], -1):
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


def _is_sum(value: Value, operand: Value, number: int) -> bool:
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
    return node.op is while_ or any(x.op is while_ for r in node.regions for x in r.walk())
