"""How a value lies in registers and in records: as slots of eight bytes, by its type.

A scalar is one slot. An array is a pointer to its elements, in C order, and a slot for each size
that is not known before the run; one of unknown rank is a pointer to rank, sizes and elements. A
list is where it starts in its arena and its length; a maybe is a flag and the slots of its value;
a token is nothing.
"""

from __future__ import annotations

from typing import TypeAlias

from wend.backends.native.target.kinds import NOTHING, REGISTERS
from wend.base.errors import UnsupportedError, explain
from wend.base.source import at
from wend.ir.graph import Node
from wend.ir.types import (
    HostType,
    ListType,
    MaybeType,
    Symbol,
    TensorType,
    TokenType,
    Type,
    without_maybe,
)

Registers: TypeAlias = tuple[str, ...]  # per slot the SSA name or the literal that holds it

SLOT_BYTES = 8
# The header of an arena: in stack slots while the function runs, else in the caller's memory
ARENA_FIELDS = (("ptr", "data"), ("i64", "room"), ("i64", "fill"))
ARENA_BYTES = SLOT_BYTES * len(ARENA_FIELDS)
# Rank and up to 64 sizes come before the elements of an array of unknown rank.
BOXED_BYTES = SLOT_BYTES * 65


class UnknownTypeError(Exception):
    """A type that native code does not handle."""


def is_scalar(type: Type) -> bool:
    """Whether a value of this type is one number in a register."""
    return isinstance(type, TensorType) and type.shape == () and type.dtype in REGISTERS


def is_array(type: Type) -> bool:
    """Whether a value of this type is elements in memory."""
    return isinstance(type, TensorType) and not is_scalar(type)


def is_unranked(type: Type) -> bool:
    """Whether not even the rank of a value is known, if it is there."""
    inner = without_maybe(type)
    return isinstance(inner, TensorType) and inner.shape is None


def registers(type: Type) -> tuple[str, ...]:
    """The LLVM types of the slots of a value.

    Raises:
        UnknownTypeError: native code does not handle values of this type.
    """
    match type:
        case TensorType(dtype=dtype) if is_scalar(type):
            return (REGISTERS[dtype],)
        case TensorType(shape=shape):
            return ("ptr", *("i64" for dim in shape or () if isinstance(dim, Symbol)))
        case ListType(element=element):
            registers(element)
            return ("i64", "i64")
        case MaybeType(of=inner):
            return ("i1", *registers(inner))
        case TokenType():
            return ()
        case HostType():
            return ("i64",)  # which of the objects that Python keeps for the call
    raise UnknownTypeError(str(type))


def references(type: Type) -> tuple[int, ...]:
    """The slots of a value that are pointers to memory from the pool."""
    return tuple(k for k, register in enumerate(registers(type)) if register == "ptr")


def width(type: Type) -> int:
    """How many slots a value takes."""
    return len(registers(type))


def layout(type: Type) -> tuple[str, ...]:
    """How the records of a list look, and those of the lists in it: equal where they can be

    read as each other's. Of a value that is no list: nothing.
    """
    found = []
    inner = without_maybe(type)
    while isinstance(inner, ListType):
        found.append(element_layout(inner.element))
        inner = without_maybe(inner.element)
    return tuple(found)


def element_layout(type: Type) -> str:
    """What is in a record: sizes that it holds have no name."""
    match type:
        case TensorType(dtype=dtype, shape=None):
            return f"{dtype.str}[...]"
        case TensorType(dtype=dtype, dims=dims):
            sizes = ",".join("?" if isinstance(dim, Symbol) else str(dim) for dim in dims)
            return f"{dtype.str}[{sizes}]"
        case MaybeType(of=inner):
            return f"maybe {element_layout(inner)}"
        case ListType():
            return "list"
    return type.__class__.__name__


def nothing(type: Type) -> Registers:
    """Slots to stand for a value that is absent."""
    return tuple(NOTHING.get(register, "0") for register in registers(type))


def refuse(node: Node, reason: str) -> UnsupportedError:
    """The error that says what native code cannot do, and where the user wrote it."""
    return refuse_at(f"`{node.op.name}`{at(node.source)}", reason)


def refuse_at(what: str, reason: str) -> UnsupportedError:
    """The error that says what native code cannot do."""
    return UnsupportedError(
        explain(
            f"the native backend cannot run {what}: {reason}",
            cure='use backend="numpy".',
        )
    )


def is_list(type: Type) -> bool:
    """Whether a value is a list, if it is there."""
    return isinstance(without_maybe(type), ListType)


def where_size(type: Type) -> int:
    """The bytes that say where the records of an argument lie, and those of the lists in it."""
    return 2 * SLOT_BYTES * len(layout(type))
