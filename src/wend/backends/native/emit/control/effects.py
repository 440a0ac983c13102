"""Effects: a check is a comparison and a trap; stores to variables are host calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import FAILED, HOST, FrameState
from wend.backends.native.emit.array.shaping import emit_identity, share_operand
from wend.backends.native.emit.control.host import call_host, prepare_host_call
from wend.backends.native.target.value_layout import Registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import effects, frame_states, state


def emit_raise_if(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a trap if the predicate holds; the kernel of the node then raises."""
    low.traps.check(low.w.define(f"xor i1 {operands[1][0]}, true"), FAILED)
    return [()]


def emit_token(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit nothing: the order of nodes is that of tokens."""
    return [()]


def emit_frame_state(
    low: Lowering, node: Node, operands: Sequence[Registers]
) -> Sequence[Registers]:
    """Emit nothing: the exits of the nodes that follow pass the operands to Python."""
    low.traps.state = FrameState(node, operands, low.refcounts.held & {*node.operands})
    return [()]


def emit_after(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Forward the value."""
    share_operand(low, node, operands[0])
    return [operands[0]]


def emit_checked(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Forward a number, after a trap if a predicate holds; the kernel of the node then raises."""
    fails = operands[1][0]
    for predicate in operands[2:]:
        fails = low.w.define(f"or i1 {fails}, {predicate[0]}")
    low.traps.check(low.w.define(f"xor i1 {fails}, true"), FAILED)
    return emit_identity(low, node, operands)


def emit_store(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit the host call that stores a value, and forward the value under the variable's type.

    Python does not return it.
    """
    prepare_host_call(low, node, operands)
    status = call_host(low, with_lists=False)
    low.traps.check(low.w.define(f"icmp eq i32 {status}, 0"), HOST)
    slots = low.coerce(node, operands[1], node.operands[1].type, node.results[0].type)
    share_operand(low, node, slots, index=1)
    return [slots]


EMITTERS: Mapping[Op, Emit] = {
    effects.raise_if: emit_raise_if,
    effects.token: emit_token,
    frame_states.frame_state: emit_frame_state,
    effects.after: emit_after,
    effects.checked: emit_checked,
    state.store: emit_store,
}
