"""Lookahead of backward loops: they compute what no trip waits for, for eight trips in one vector.

In a trip of a backward loop, only what depends on the cotangents has to wait for the previous trip.
What follows from the record alone, such as recomputed sines and cosines, can be computed for the
next trips as well. It is stored in buffers on the stack, from which the trips load it. The last
trips, too few for a vector, compute their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.emit.scalar.functions import sincos_pair
from wend.backends.native.target.kinds import Kind
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import FLOAT64, INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType
from wend.ops import creating, elementwise, lists
from wend.ops.control import WhileParts

LANES = 8  # more are no faster: the trips overlap with the computation of the next vector
_VECTOR = Kind(FLOAT64, LANES)
_SINCOS = (elementwise.sin, elementwise.cos)
# Operations worth a lookahead; arithmetic takes part only if it stands between them.
_TRANSCENDENTAL = {
    *(*_SINCOS, elementwise.exp, elementwise.expm1),
    *(elementwise.log, elementwise.log1p, elementwise.tanh),
}
_ARITHMETIC = {
    *(elementwise.add, elementwise.sub, elementwise.mul, elementwise.div, elementwise.neg),
    *(elementwise.reciprocal, elementwise.abs, elementwise.sqrt),
    *(elementwise.maximum, elementwise.minimum),
}
_F64, _I64 = TensorType(FLOAT64, ()), TensorType(INT64, ())


@dataclass(slots=True)
class LookaheadPlan:
    """The part of a loop body that can be computed ahead.

    Attributes:
        body: The body.
        count: The param that decreases by one each trip.
        positions: The positions that are a constant distance from the count, with that distance.
        prologue: The nodes of constants, positions and records, which every trip computes.
        nodes: The nodes computed ahead.
    """

    body: Graph
    count: Value
    positions: dict[Value, int]
    prologue: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    @property
    def live_out(self) -> list[Value]:
        """The values computed ahead that the rest of the body uses."""
        inside = set(self.nodes)
        used_operands = [v for node in self.body.nodes if node not in inside for v in node.operands]
        used = {*used_operands, *self.body.results}
        return [value for node in self.nodes for value in node.results if value in used]


def find_lookahead(w: WhileParts) -> LookaheadPlan | None:
    """Return what a loop can compute ahead, or None if it is not worth it."""
    count = _find_countdown(w)
    if count is None:
        return None
    plan = LookaheadPlan(w.after, count, {count: 0})
    invariants = {value for value in w.after_invariants if value.type == _F64}
    ahead: set[Value] = set()
    for node in w.after.nodes:
        result = node.results[0] if node.results else None
        if node.op is creating.constant:
            plan.prologue.append(node)
            invariants.update(value for value in node.results if value.type == _F64)
        elif _is_decrement(node, count):
            plan.prologue.append(node)
            plan.positions[node.results[0]] = -1
        elif node.op is lists.list_get and result is not None and result.type == _F64:
            if node.operands[0] in w.after_invariants and node.operands[1] in plan.positions:
                plan.prologue.append(node)
                ahead.add(result)
        elif node.op in _TRANSCENDENTAL or node.op in _ARITHMETIC:
            is_real = all(v.type == _F64 for v in (*node.operands, *node.results))
            if (
                is_real
                and not ahead.isdisjoint(node.operands)
                and {*node.operands} <= ahead | invariants
            ):
                plan.nodes.append(node)
                ahead.update(node.results)
    return plan if any(node.op in _TRANSCENDENTAL for node in plan.nodes) else None


def _find_countdown(w: WhileParts) -> Value | None:
    """Return the param of `after` that decreases by one each trip."""
    for carried, next_value in zip(w.before_carry, w.next_carry, strict=True):
        for param, forwarded in zip(w.after_forwarded, w.forwarded, strict=True):
            decreases = next_value.node is not None and _is_decrement(next_value.node, param)
            if forwarded is carried and decreases:
                return param
    return None


def _is_decrement(node: Node, count: Value) -> bool:
    """Return whether a node subtracts 1 from the count."""
    if node.op is not elementwise.sub or node.operands[0] is not count or count.type != _I64:
        return False
    one = node.operands[1].node
    return one is not None and one.op is creating.constant and one.attrs["value"] == 1


def emit_lookahead(low: Lowering, plan: LookaheadPlan, buffered: str) -> str:
    """Emit the start of a trip.

    Args:
        low: The lowering of the function; the params of the body have their slots.
        plan: What is computed ahead.
        buffered: The number of trips in the buffers, an i64.

    Returns:
        The number of trips left in the buffers for the next trip.
    """
    w, live_out = low.w, plan.live_out
    low.find_sincos_pairs(plan.body)
    for node in plan.prologue:
        low.emit_hoisted(node)
    buffers = [w.allocate(_VECTOR.text) for _ in live_out]
    count = low.values[plan.count][0]
    refill_label, fill_label, compute_label, load_label, done_label = (
        w.new_label(hint) for hint in ("asks", "fill", "alone", "take", "ready")
    )
    entry = w.block
    w.branch(w.define(f"icmp ne i64 {buffered}, 0"), load_label, refill_label)
    w.start(refill_label)
    w.branch(w.define(f"icmp sge i64 {count}, {LANES}"), fill_label, compute_label)

    w.start(fill_label)
    _fill_buffers(low, plan, buffers)
    filled_block = w.block
    w.jump(load_label)

    w.start(compute_label)
    for node in plan.nodes:
        low.emit_hoisted(node)
    computed = [low.values[value][0] for value in live_out]
    computed_block = w.block
    w.jump(done_label)

    w.start(load_label)
    available = w.phi("i64", (buffered, entry), (str(LANES), filled_block))
    remaining = w.define(f"sub i64 {available}, 1")
    loaded = []
    for buffer in buffers:
        address = w.define(f"getelementptr double, ptr {buffer}, i64 {remaining}")
        loaded.append(w.define(f"load double, ptr {address}"))
    w.jump(done_label)

    w.start(done_label)
    for value, scalar, from_buffer in zip(live_out, computed, loaded, strict=True):
        low.values[value] = (w.phi("double", (scalar, computed_block), (from_buffer, load_label)),)
    return w.phi("i64", ("0", computed_block), (remaining, load_label))


def _fill_buffers(low: Lowering, plan: LookaheadPlan, buffers: Sequence[str]) -> None:
    """Compute a vector of each value; the current trip uses its last lane."""
    w, values = low.w, dict[Value, str]()
    for node in plan.prologue:
        if node.op is lists.list_get:
            values[node.results[0]] = _load_records(low, plan, node)
    sincos_pairs: dict[Value, tuple[str, str]] = {}

    def vector(value: Value) -> str:
        if value not in values:
            lane_zero = w.define(
                f"insertelement {_VECTOR.text} poison, double {low.values[value][0]}, i64 0"
            )
            mask = f"<{LANES} x i32> zeroinitializer"
            values[value] = w.define(
                f"shufflevector {_VECTOR.text} {lane_zero}, {_VECTOR.text} poison, {mask}"
            )
        return values[value]

    for node in plan.nodes:
        args = [vector(operand) for operand in node.operands]
        (result,) = node.results
        if node.op in _SINCOS:
            if node.operands[0] not in sincos_pairs:
                sincos_pairs[node.operands[0]] = sincos_pair(low, _VECTOR, args[0])
            values[result] = sincos_pairs[node.operands[0]][_SINCOS.index(node.op)]
        else:
            values[result] = ELEMENTS[node.op].emit(low, node, _VECTOR, *args)
    for value, buffer in zip(plan.live_out, buffers, strict=True):
        w.do(f"store {_VECTOR.text} {values[value]}, ptr {buffer}")


def _load_records(low: Lowering, plan: LookaheadPlan, node: Node) -> str:
    """Load what a `list_get` reads in this trip and the next ones, in the order of the list."""
    list = low.values[node.operands[0]]
    offset = plan.positions[node.operands[1]] - (LANES - 1)
    first_position = low.w.define(f"add i64 {low.values[plan.count][0]}, {offset}")
    record = low.w.define(f"add i64 {list[0]}, {first_position}")
    return low.arenas.load_f64_vector(low.list_classes.of_use(node, 0), record, LANES)
