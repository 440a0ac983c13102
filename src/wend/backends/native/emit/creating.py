"""Constants: literals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.math_body import literal
from wend.backends.native.slots import Slots
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import creating


def emit_constant(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """A literal, to the last bit."""
    value = node.attrs["value"]
    match value.dtype.kind:
        case "f":
            return [(literal(float(value)),)]
        case "b":
            return [("true" if value else "false",)]
    return [(str(int(value)),)]


EMITTERS: Mapping[Op, Emit] = {creating.constant: emit_constant}
