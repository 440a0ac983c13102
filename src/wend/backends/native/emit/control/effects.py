"""Effects: an assertion that holds costs a comparison; stores to variables are host calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import FAILED, HOST
from wend.backends.native.emit.control.host import give_kernel, run_kernel
from wend.backends.native.target.value_layout import Registers, references
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import effects, state


def emit_assert(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Leave unless the condition holds; its kernel says what is wrong."""
    low.traps.check(operands[1][0], FAILED)
    return [()]


def emit_store(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """What is stored, which Python need not give back, with sizes as the variable has them."""
    give_kernel(low, node, operands)
    status = run_kernel(low, with_lists=False)
    low.traps.check(low.w.define(f"icmp eq i32 {status}, 0"), HOST)
    _, value = node.operands
    (result,) = node.results
    slots = low.coerce(node, operands[1], value.type, result.type)
    for k in references(result.type):
        low.memory.share(result, value, slots[k])
    return [slots]


EMITTERS: Mapping[Op, Emit] = {effects.assert_: emit_assert, state.store: emit_store}
