"""Backward loops compute ahead: what no trip waits for, for eight trips at once, in a vector.

Of a trip of a backward loop only what depends on the cotangents has to wait for the trip before.
What follows from its record alone, the sines and cosines that were not kept, may be had for the
next trips as well: they are put into buffers on the stack, from which the trips take theirs. The
last trips, when they are too few for a vector, compute for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.emit.scalar.functions import sincos_pair
from wend.backends.native.target.kinds import Kind
from wend.ir.dtypes import FLOAT64, INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType
from wend.ops import creating, elementwise, lists
from wend.ops.control import WhileParts

LANES = 8  # more at once are no faster: the trips run while the next vector is computed
_VECTOR = Kind(FLOAT64, LANES)
_SINCOS = (elementwise.sin, elementwise.cos)
# What pays: the others take part where they stand between these.
_COSTLY = {
    *(*_SINCOS, elementwise.exp, elementwise.expm1),
    *(elementwise.log, elementwise.log1p, elementwise.tanh),
}
_CHEAP = {
    *(elementwise.add, elementwise.sub, elementwise.mul, elementwise.div, elementwise.neg),
    *(elementwise.reciprocal, elementwise.abs, elementwise.sqrt),
    *(elementwise.maximum, elementwise.minimum),
}
_F64, _I64 = TensorType(FLOAT64, ()), TensorType(INT64, ())


@dataclass(slots=True)
class LookaheadPlan:
    """What the body of a loop can compute ahead.

    Attributes:
        body: the region.
        count: its param that falls by one each trip.
        positions: how far a position is from the count, by value.
        first: the nodes that give constants, positions and records; every trip has them.
        nodes: those to be computed ahead.
    """

    body: Graph
    count: Value
    positions: dict[Value, int]
    first: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    @property
    def gives(self) -> list[Value]:
        """The values computed ahead that something else takes."""
        inside = set(self.nodes)
        takers = [v for node in self.body.nodes if node not in inside for v in node.operands]
        taken = {*takers, *self.body.results}
        return [value for node in self.nodes for value in node.results if value in taken]


def find_lookahead(w: WhileParts) -> LookaheadPlan | None:
    """Find what a loop can compute ahead, if it is worth it."""
    count = _falling_count(w)
    if count is None:
        return None
    plan = LookaheadPlan(w.after, count, {count: 0})
    known = {value for value in w.after_invariants if value.type == _F64}
    read: set[Value] = set()
    for node in w.after.nodes:
        result = node.results[0] if node.results else None
        if node.op is creating.constant:
            plan.first.append(node)
            known.update(value for value in node.results if value.type == _F64)
        elif _is_less_one(node, count):
            plan.first.append(node)
            plan.positions[node.results[0]] = -1
        elif node.op is lists.list_get and result is not None and result.type == _F64:
            if node.operands[0] in w.after_invariants and node.operands[1] in plan.positions:
                plan.first.append(node)
                read.add(result)
        elif node.op in _COSTLY or node.op in _CHEAP:
            is_real = all(v.type == _F64 for v in (*node.operands, *node.results))
            if is_real and not read.isdisjoint(node.operands) and {*node.operands} <= read | known:
                plan.nodes.append(node)
                read.update(node.results)
    return plan if any(node.op in _COSTLY for node in plan.nodes) else None


def _falling_count(w: WhileParts) -> Value | None:
    """The param of `after` that is one less in the next trip."""
    for carried, following in zip(w.before_carry, w.next_carry, strict=True):
        for param, given in zip(w.after_forwarded, w.forwarded, strict=True):
            is_less = following.node is not None and _is_less_one(following.node, param)
            if given is carried and is_less:
                return param
    return None


def _is_less_one(node: Node, count: Value) -> bool:
    if node.op is not elementwise.sub or node.operands[0] is not count or count.type != _I64:
        return False
    one = node.operands[1].node
    return one is not None and one.op is creating.constant and one.attrs["value"] == 1


def emit_lookahead(low: Lowering, plan: LookaheadPlan, left: str) -> str:
    """Write the start of a trip.

    Args:
        low: the params of the body have their slots.
        plan: what is computed ahead.
        left: how many trips are in the buffers, an i64.

    Returns:
        How many are left for the next trip.
    """
    w, gives = low.w, plan.gives
    low.find_sincos_pairs(plan.body)
    for node in plan.first:
        low.write_early(node)
    buffers = [w.allocate(_VECTOR.text) for _ in gives]
    count = low.values[plan.count][0]
    asks, fill, alone, take, ready = (
        w.new_label(hint) for hint in ("asks", "fill", "alone", "take", "ready")
    )
    here = w.block
    w.branch(w.define(f"icmp ne i64 {left}, 0"), take, asks)
    w.start(asks)
    w.branch(w.define(f"icmp sge i64 {count}, {LANES}"), fill, alone)

    w.start(fill)
    _fill(low, plan, buffers)
    filled = w.block
    w.jump(take)

    w.start(alone)
    for node in plan.nodes:
        low.write_early(node)
    computed = [low.values[value][0] for value in gives]
    done = w.block
    w.jump(ready)

    w.start(take)
    there = w.phi("i64", (left, here), (str(LANES), filled))
    rest = w.define(f"sub i64 {there}, 1")
    taken = []
    for buffer in buffers:
        place = w.define(f"getelementptr double, ptr {buffer}, i64 {rest}")
        taken.append(w.define(f"load double, ptr {place}"))
    w.jump(ready)

    w.start(ready)
    for value, mine, early in zip(gives, computed, taken, strict=True):
        low.values[value] = (w.phi("double", (mine, done), (early, take)),)
    return w.phi("i64", ("0", done), (rest, take))


def _fill(low: Lowering, plan: LookaheadPlan, buffers: Sequence[str]) -> None:
    """Compute a vector of each value; the trip that comes first takes the last of its numbers."""
    w, values = low.w, dict[Value, str]()
    for node in plan.first:
        if node.op is lists.list_get:
            values[node.results[0]] = _records(low, plan, node)
    sincos_pairs: dict[Value, tuple[str, str]] = {}

    def vector(value: Value) -> str:
        if value not in values:
            one = w.define(
                f"insertelement {_VECTOR.text} poison, double {low.values[value][0]}, i64 0"
            )
            zeros = f"<{LANES} x i32> zeroinitializer"
            values[value] = w.define(
                f"shufflevector {_VECTOR.text} {one}, {_VECTOR.text} poison, {zeros}"
            )
        return values[value]

    for node in plan.nodes:
        given = [vector(operand) for operand in node.operands]
        (result,) = node.results
        if node.op in _SINCOS:
            if node.operands[0] not in sincos_pairs:
                sincos_pairs[node.operands[0]] = sincos_pair(low, _VECTOR, given[0])
            values[result] = sincos_pairs[node.operands[0]][_SINCOS.index(node.op)]
        else:
            values[result] = ELEMENTS[node.op].write(low, node, _VECTOR, *given)
    for value, buffer in zip(plan.gives, buffers, strict=True):
        w.do(f"store {_VECTOR.text} {values[value]}, ptr {buffer}")


def _records(low: Lowering, plan: LookaheadPlan, node: Node) -> str:
    """What a `list_get` reads in this trip and those after it, in the order of the list."""
    list = low.values[node.operands[0]]
    offset = plan.positions[node.operands[1]] - (LANES - 1)
    lowest = low.w.define(f"add i64 {low.values[plan.count][0]}, {offset}")
    record = low.w.define(f"add i64 {list[0]}, {lowest}")
    return low.arenas.load_reals(low.places.used(node, 0), record, LANES)
