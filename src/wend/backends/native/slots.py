"""How a value lies in registers and in records: as slots of eight bytes, by its type.

A scalar is one slot; a list is where it starts in its arena and its length; a maybe is a flag and
the slots of its value; a token is nothing.
"""

from __future__ import annotations

from typing import TypeAlias

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at
from wend.ir.dtypes import BOOL, FLOAT64, INT64
from wend.ir.graph import Node
from wend.ir.types import ListType, MaybeType, TensorType, TokenType, Type

Slots: TypeAlias = tuple[str, ...]  # per slot the SSA name or the literal that holds it

SLOT_BYTES = 8
REGISTERS = {FLOAT64: "double", INT64: "i64", BOOL: "i1"}
# What an absent value holds
NOTHING = {"double": "0.0", "i64": "0", "i1": "false"}


class UnknownTypeError(Exception):
    """A type that native code does not handle."""


def registers(type: Type) -> tuple[str, ...]:
    """The LLVM types of the slots of a value.

    Raises:
        UnknownTypeError: native code does not handle values of this type.
    """
    match type:
        case TensorType(dtype=dtype, shape=()) if dtype in REGISTERS:
            return (REGISTERS[dtype],)
        case ListType(element=element):
            registers(element)
            return ("i64", "i64")
        case MaybeType(of=inner):
            return ("i1", *registers(inner))
        case TokenType():
            return ()
    raise UnknownTypeError(str(type))


def width(type: Type) -> int:
    """How many slots a value takes."""
    return len(registers(type))


def nothing(type: Type) -> Slots:
    """Slots to stand for a value that is absent."""
    return tuple(NOTHING[register] for register in registers(type))


def fit(slots: Slots, found: Type, expected: Type) -> Slots:
    """The slots of a value where another type is declared: a maybe may be given its value."""
    if isinstance(expected, MaybeType) and not isinstance(found, MaybeType):
        return ("true", *fit(slots, found, expected.of))
    if width(found) != width(expected):
        raise UnknownTypeError(f"{found} as {expected}")
    return slots


def refuse(node: Node, reason: str) -> UnsupportedError:
    """The error that says what native code cannot do, and where the user wrote it."""
    return refuse_at(f"`{node.op.name}`{at(node.source)}", reason)


def refuse_at(what: str, reason: str) -> UnsupportedError:
    """The error that says what native code cannot do."""
    return UnsupportedError(
        explain(
            f"the native backend cannot run {what}: {reason}",
            "It runs f64, i64 and bool scalars, and loops and branches of these.",
            cure='use backend="numpy".',
        )
    )
