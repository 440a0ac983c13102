"""The layout of values in registers and in records: slots of eight bytes, by type.

A scalar is one slot. An array is a pointer to its elements in C order, plus a slot for each size
that is only known at run time; an array of unknown rank is a pointer to its rank, sizes and
elements. A list is its start in its arena and its length; a maybe is a flag and the slots of its
value; a token has no slots.
"""

from __future__ import annotations

from typing import TypeAlias

from wend.backends.native.target.kinds import ABSENT_LITERALS, REGISTERS
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

Registers: TypeAlias = tuple[str, ...]  # the SSA name or literal of each slot

SLOT_BYTES = 8
# Byte offsets of the fields of an ndarray object
DATA_OFFSET, DIMS_OFFSET = object.__basicsize__, object.__basicsize__ + 16
# The header of an arena: on the stack while the function runs, otherwise in the caller's memory
ARENA_FIELDS = (("ptr", "data"), ("i64", "room"), ("i64", "fill"))
ARENA_BYTES = SLOT_BYTES * len(ARENA_FIELDS)
# The header of an array of unknown rank: its rank and up to 64 sizes precede the elements.
BOXED_BYTES = SLOT_BYTES * 65


class UnknownTypeError(Exception):
    """A type that native code does not support."""


def is_scalar(type: Type) -> bool:
    """Return whether a value of this type is one number in a register."""
    return isinstance(type, TensorType) and type.shape == () and type.dtype in REGISTERS


def is_array(type: Type) -> bool:
    """Return whether a value of this type is elements in memory."""
    return isinstance(type, TensorType) and not is_scalar(type)


def is_unranked(type: Type) -> bool:
    """Return whether the rank of a possibly absent array is unknown."""
    inner = without_maybe(type)
    return isinstance(inner, TensorType) and inner.shape is None


def registers(type: Type) -> tuple[str, ...]:
    """Return the LLVM types of the slots of a value.

    Raises:
        UnknownTypeError: native code does not support this type.
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
            return ("i64",)  # an index into the objects that Python keeps for the call
    raise UnknownTypeError(str(type))


def references(type: Type) -> tuple[int, ...]:
    """Return the slots of a value that are pointers into the pool."""
    return tuple(k for k, register in enumerate(registers(type)) if register == "ptr")


def num_slots(type: Type) -> int:
    """Return the number of slots of a value."""
    return len(registers(type))


def list_layout(type: Type) -> tuple[str, ...]:
    """Return the record layout of a list, and of the lists in it.

    Lists with equal layouts can be read as each other. The layout of other values is empty.
    """
    layouts = []
    inner = without_maybe(type)
    while isinstance(inner, ListType):
        layouts.append(element_layout(inner.element))
        inner = without_maybe(inner.element)
    return tuple(layouts)


def element_layout(type: Type) -> str:
    """Return the layout of one record as text; sizes that it stores are anonymous."""
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


def absent_value(type: Type) -> Registers:
    """Return placeholder registers for an absent value."""
    return tuple(ABSENT_LITERALS.get(register, "0") for register in registers(type))


def refuse(node: Node, reason: str) -> UnsupportedError:
    """Return the error for a node that native code does not support, with its source line."""
    return refuse_at(f"`{node.op.name}`{at(node.source)}", reason)


def refuse_at(subject: str, reason: str) -> UnsupportedError:
    """Return the error for something that native code does not support."""
    return UnsupportedError(
        explain(f"the native backend cannot run {subject}: {reason}", cure='use backend="numpy".')
    )


def is_list(type: Type) -> bool:
    """Return whether a value is a list, possibly absent."""
    return isinstance(without_maybe(type), ListType)


def list_location_bytes(type: Type) -> int:
    """Return the bytes that locate the records of an argument and of the lists in it."""
    return 2 * SLOT_BYTES * len(list_layout(type))


def param_size(type: Type) -> int:
    """Return the number of bytes of the block that an argument takes."""
    if is_object(type):
        return SLOT_BYTES
    return SLOT_BYTES * len(registers(type)) + list_location_bytes(type)


def is_object(type: Type) -> bool:
    """Return whether an argument is passed as its Python object instead of in slots."""
    return isinstance(type, TensorType) and is_array(type) and type.shape is not None
