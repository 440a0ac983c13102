"""Assignment to variables: Python is told what a variable holds now, at once and in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.emit.host import give_kernel, run_kernel
from wend.backends.native.exits import HOST
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots, references
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import state


def emit_store(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """What is stored, which Python need not give back, with sizes as the variable has them."""
    give_kernel(low, node, operands)
    status = run_kernel(low, with_lists=False)
    low.exits.unless(low.w.define(f"icmp eq i32 {status}, 0"), HOST)
    _, value = node.operands
    (result,) = node.results
    slots = low.fit(node, operands[1], value.type, result.type)
    for k in references(result.type):
        low.memory.share(result, value, slots[k])
    return [slots]


EMITTERS: Mapping[Op, Emit] = {state.store: emit_store}
