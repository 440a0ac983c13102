"""Assignment to variables: the value. What a run leaves in them is stored from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import state


def emit_store(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """What is stored."""
    return [low.fit(node, operands[1], node.operands[1].type, node.results[0].type)]


EMITTERS: Mapping[Op, Emit] = {state.store: emit_store}
