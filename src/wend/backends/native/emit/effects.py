"""What is seen outside: an assertion that holds costs a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.exits import FAILED
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import effects


def emit_assert(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Leave unless the condition holds; its kernel says what is wrong."""
    low.exits.unless(operands[1][0], FAILED)
    return [()]


EMITTERS: Mapping[Op, Emit] = {effects.assert_: emit_assert}
