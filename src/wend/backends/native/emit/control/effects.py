"""Effects: assertions are a comparison and a trap; stores to variables are host calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import FAILED, HOST
from wend.backends.native.emit.array.shaping import share_operand
from wend.backends.native.emit.control.host import call_host, prepare_host_call
from wend.backends.native.target.value_layout import Registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import effects, state


def emit_assert(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a trap unless the condition holds; the kernel of the node then raises."""
    low.traps.check(operands[1][0], FAILED)
    return [()]


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


EMITTERS: Mapping[Op, Emit] = {effects.assert_: emit_assert, state.store: emit_store}
