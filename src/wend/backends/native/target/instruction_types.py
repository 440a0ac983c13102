"""Types of the results of LLVM instructions, read from their text."""

from __future__ import annotations

import re

_SCALAR = r"ptr|double|float|half|bfloat|i\d+"
_TYPE = re.compile(rf"(?<![%@\w.])(?:{_SCALAR})\b|<[^<>]*>|\{{[^{{}}]*\}}|\[[^\[\]]*\]")


def result_type(instruction: str) -> str | None:
    """Return the type of an instruction's result, or None if it is not evident from the text."""
    opcode, _, text = instruction.partition(" ")
    if opcode in ("getelementptr", "alloca"):
        return "ptr"
    if " to " in text:
        type = _TYPE.match(text.rsplit(" to ", 1)[1])
        return type and type[0]
    types = _TYPE.findall(text)
    if not types:
        return None
    first: str = types[0]
    if opcode in ("icmp", "fcmp"):
        return _vector_of(first, "i1")
    if opcode == "select":
        return str(types[1])
    if opcode == "extractelement":
        return first.strip("<>").split(" x ")[1].strip()
    if opcode == "extractvalue":
        index = int(text.rsplit(", ", 1)[1])
        return first.strip("{}").split(",")[index].strip() if "<" not in first else None
    if opcode == "shufflevector":
        count = str(types[2]).split(" x ")[0].strip("< ")
        return f"<{count} x {first.split(' x ')[1]}"
    if opcode == "cmpxchg":
        return f"{{ {types[1]}, i1 }}"
    if opcode == "atomicrmw":
        return str(types[1])
    return first


def _vector_of(type: str, element: str) -> str:
    """Return the type of comparisons of values of a type."""
    return f"<{type.strip('<>').split(' x ')[0].strip()} x {element}>" if "<" in type else element
