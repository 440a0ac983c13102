"""Effects: a check is a comparison and a trap; stores to variables are host calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.messages import print_text
from wend.backends.native.codegen.traps import FAILED, HOST, FrameState
from wend.backends.native.emit.array.shaping import emit_identity, share_operand
from wend.backends.native.emit.control.host import call_host, prepare_host_call
from wend.backends.native.target.platform import platform
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.base.errors import UnsupportedError, explain
from wend.base.source import at
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
    if not platform().is_process:
        return [()]
    traps, token = low.traps, frame_states.base_of(node)
    base = None if token is None or token.node is None else traps.states.get(token.node)
    traps.state = None
    if token is None or base is not None:
        state = FrameState.of(node, operands, base, low.refcounts.held)
        traps.state = traps.states[node] = state
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
    if platform().is_process:
        prepare_host_call(low, node, operands)
        status = call_host(low, with_lists=False)
        low.traps.check(low.w.define(f"icmp eq i32 {status}, 0"), HOST)
    slots = low.coerce(node, operands[1], node.operands[1].type, node.results[0].type)
    share_operand(low, node, slots, index=1)
    return [slots]


def emit_print(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a call of the caller's function that prints; in this process, Python prints."""
    if platform().is_process:
        return NotImplemented
    is_array = any(not is_scalar(value.type) for value in node.operands[1:])
    file = node.attrs.get("file")
    if is_array or not isinstance(file, str | None):
        where = f"`print`{at(node.source)}"
        what = f"{where} of {'an array' if is_array else 'a file'} has no code without Python."
        raise UnsupportedError(explain(what, cure="print numbers, and to no file."))
    text = node.attrs["format"] + node.attrs.get("end", "\n").replace("{", "{{").replace("}", "}}")
    print_text(low.w, low.calls, "%workspace", text, node.operands[1:], operands[1:])
    return [()]


EMITTERS: Mapping[Op, Emit] = {
    effects.print_: emit_print,
    effects.raise_if: emit_raise_if,
    effects.token: emit_token,
    frame_states.frame_state: emit_frame_state,
    effects.after: emit_after,
    effects.checked: emit_checked,
    state.store: emit_store,
}
