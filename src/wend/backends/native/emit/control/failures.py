"""Messages of errors, in code that runs without Python."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.messages import write_message
from wend.backends.native.codegen.traps import BAD_INDEX, BAD_LENGTH, BAD_SHAPE, FAILED, NO_MEMORY
from wend.backends.native.target.value_layout import Registers
from wend.base.source import at
from wend.ir.graph import Node, Value
from wend.ops import effects

_REASONS = {
    NO_MEMORY: "MemoryError",
    BAD_INDEX: "IndexError",
    BAD_LENGTH: "ValueError: a length",
    BAD_SHAPE: "ValueError: sizes that do not fit",
}


def tell_failure(
    low: Lowering, reason: int, node: Node | None, operands: Sequence[Registers] | None
) -> None:
    """Emit the message of an error: the exception, its text, and the user's line."""
    values: Sequence[Value] = ()
    text = _REASONS.get(reason, "")
    if node is not None and reason == FAILED:
        if node.op is effects.raise_if:
            error = effects.error_class(node.attrs["error"]).__name__
            text, values = f"{error}: {node.attrs['text'] or ''}", node.operands[2:]
        else:
            text = f"error in {node.op.name}"
    elif node is not None:
        text = f"{text} in {node.op.name}"
    if operands is None or node is None:
        text, values = text.replace("{", "{{").replace("}", "}}"), ()
    slots = operands[2:] if operands is not None and values else ()
    where = "" if node is None else at(node.source).replace("{", "{{").replace("}", "}}")
    write_message(low.w, low.calls, "%workspace", text + where, values, slots)
