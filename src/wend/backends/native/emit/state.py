"""Assignment to variables.

Where the whole graph can be run again, a store is its value, and what a run leaves in a variable is
stored from its results (`backends/storing.py`); else it is a host call, in order with the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots, references
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import state


def emit_store(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """What is stored: the memory of the second operand, its sizes as the variable has them."""
    if not low.can_run_again:
        return NotImplemented
    _, value = node.operands
    (result,) = node.results
    slots = low.fit(node, operands[1], value.type, result.type)
    for k in references(result.type):
        low.memory.share(result, value, slots[k])
    return [slots]


EMITTERS: Mapping[Op, Emit] = {state.store: emit_store}
