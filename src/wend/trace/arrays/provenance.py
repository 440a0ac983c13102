"""The arguments of a function that a traced number was computed from."""

from __future__ import annotations

from typing import Any, TypeVar

from wend.base.errors import ConcreteValueError, listed
from wend.ir.graph import Value
from wend.ir.types import TensorType

E = TypeVar("E", bound=ConcreteValueError)

_ARGUMENT = "argument "


def source_arguments(value: Value, recording: Any) -> list[str] | None:
    """Return the names of the arguments that a value was computed from, if all are integers.

    None if it also depends on something else, such as floats, arrays (0-d ones too) or a loop's
    carry.
    """
    names: dict[str, None] = {}
    seen = {value}
    worklist = [(value, recording)]
    while worklist:
        value, scope = worklist.pop()
        if value.node is not None:
            operands = [(operand, scope) for operand in value.node.operands]
        elif scope.is_region and scope.outer_value(value) is not None:
            operands = [(scope.outer_value(value), scope.parent)]
        elif _is_integer_argument(value, scope):
            names[str(value.name).removeprefix(_ARGUMENT)] = None
            continue
        else:
            return None
        worklist += [pair for pair in operands if pair[0] not in seen]
        seen.update(operand for operand, _ in operands)
    return sorted(names)


def _is_integer_argument(value: Value, recording: Any) -> bool:
    """Return whether a value is a number of Python or NumPy that is passed as an argument."""
    if not _is_integer(value) or not (value.name or "").startswith(_ARGUMENT):
        return False
    pairs = zip(recording.arguments, recording.b.params, strict=False)
    return not any(argument.zero_dim for argument, param in pairs if param is value)


def static_advice(value: Value, recording: Any) -> str | None:
    """Return advice to make the arguments static that a number was computed from, or None."""
    sources = source_arguments(value, recording)
    if not sources:
        return None
    plain = [name for name in sources if name.isidentifier()]
    if len(plain) < len(sources):
        nested = [name for name in sources if name not in plain]
        return f"pass {listed(nested)} as an argument by itself, and make it static"
    names = repr(plain[0]) if len(plain) == 1 else repr(plain)
    return f"make {listed(plain)} static: wend.function(static_argnames={names})"


def with_sources(error: E, *numbers: Any) -> E:
    """Return an error that names, as its `sources`, the arguments that decide on numbers."""
    sources: list[str] = []
    for number in numbers:
        if hasattr(number, "value") and hasattr(number, "recording"):
            sources += source_arguments(number.value, number.recording) or ()
    error.sources = tuple(dict.fromkeys(sources))
    return error


def _is_integer(value: Value) -> bool:
    type = value.type
    return isinstance(type, TensorType) and type.shape == () and type.dtype.kind in "iub"
