"""Changes of shape and reductions, which for scalars change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise, reducing, shaping


def emit_same(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """The operand itself."""
    return [low.fit(node, operands[0], node.operands[0].type, node.results[0].type)]


EMITTERS: Mapping[Op, Emit] = {
    shaping.broadcast_to: emit_same,
    shaping.sum_to: emit_same,
    shaping.reshape: emit_same,
    shaping.refine: emit_same,
    shaping.transpose: emit_same,
    reducing.reduce_sum: emit_same,
    reducing.reduce_prod: emit_same,
    reducing.reduce_max: emit_same,
    reducing.reduce_min: emit_same,
    elementwise.stop_gradient: emit_same,
}
