"""Which arguments of a function a traced number was computed from."""

from __future__ import annotations

from typing import Any

from wend.base.errors import listed
from wend.ir.graph import Value
from wend.ir.types import TensorType

_ARGUMENT = "argument "


def origins(value: Value, recording: Any) -> list[str] | None:
    """The arguments that a value was computed from, by name, if each is an integer.

    None where other things are behind it too: floats, arrays, what a loop carries.
    """
    found: dict[str, None] = {}
    seen = {value}
    todo = [(value, recording)]
    while todo:
        value, here = todo.pop()
        if value.node is not None:
            more = [(operand, here) for operand in value.node.operands]
        elif here.is_region and here.outer_value(value) is not None:
            more = [(here.outer_value(value), here.parent)]
        elif _is_integer(value) and (value.name or "").startswith(_ARGUMENT):
            found[str(value.name).removeprefix(_ARGUMENT)] = None
            continue
        else:
            return None
        todo += [pair for pair in more if pair[0] not in seen]
        seen.update(one for one, _ in more)
    return sorted(found)


def static_advice(value: Value, recording: Any) -> str | None:
    """How Python would know a number: which arguments to make static."""
    found = origins(value, recording)
    if not found:
        return None
    plain = [name for name in found if name.isidentifier()]
    if len(plain) < len(found):
        parts = [name for name in found if name not in plain]
        return f"pass {listed(parts)} as an argument by itself, and make it static"
    names = repr(plain[0]) if len(plain) == 1 else repr(plain)
    return f"make {listed(plain)} static: wend.function(static_argnames={names})"


def _is_integer(value: Value) -> bool:
    type = value.type
    return isinstance(type, TensorType) and type.shape == () and type.dtype.kind in "iub"
