"""Carries values between Python and the slots of native code.

A `Carrier` does it for values of one type: `read` makes a value of slots, `write` slots of a
value. Arrays that are written go into the pool; lists into their arenas.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np

from wend.backends.native.analysis.list_classes import ListClass, root
from wend.backends.native.program import Field
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.value_layout import (
    BOXED_BYTES,
    SLOT_BYTES,
    is_scalar,
    nothing,
    registers,
)
from wend.base.zero import ZERO
from wend.ir.dtypes import short
from wend.ir.types import HostType, ListType, MaybeType, Symbol, TensorType, Type
from wend.runtime.sequence import Sequence

# How struct packs what is in a slot
_CODES = {
    "bool": "?7x",
    "f64": "d",
    "f32": "f4x",
    "i64": "q",
    "i32": "i4x",
    "i16": "h6x",
    "i8": "b7x",
    "u64": "Q",
    "u32": "I4x",
    "u16": "H6x",
    "u8": "B7x",
}


class Memory(Protocol):
    """What values are carried to and from."""

    def take(self, size: int) -> int:
        """Memory from the pool: so many bytes, with one reference."""
        ...

    def where(self, number: int) -> tuple[int, int]:
        """Where the records of an arena are, and how many bytes it is from one to the next."""
        ...

    def extend(self, number: int, stride: int, count: int) -> int:
        """Make new records at the end of an arena; return the first one's number."""
        ...

    @property
    def objects(self) -> list[Any]:
        """Python's objects that native code hands on by number, until the call is over."""
        ...


class Carrier:
    """Reads and writes values of one type.

    Attributes:
        format: how struct packs the slots.
    """

    def __init__(self, field: Field) -> None:
        self.type = field.type
        self.format = code_of(field.type)
        place = None if field.place is None else root(field.place)
        self.read: Callable[[Iterator[Any], Memory], Any] = _reader(field.type, place)
        self.write: Callable[[Any, Memory], tuple[Any, ...]] = writer(field.type, place)


def code_of(type: Type) -> str:
    """How struct packs the slots of a value."""
    match type:
        case TensorType(dtype=dtype) if is_scalar(type):
            return _CODES[short(dtype)]
        case MaybeType(of=inner):
            return "?7x" + code_of(inner)
    return "q" * len(registers(type))


def view(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The array that lies at an address; good for as long as the memory is."""
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    if not size:
        return np.empty(shape, dtype)
    buffer = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memoryview(buffer))


def _reader(type: Type, place: ListClass | None) -> Callable[[Iterator[Any], Memory], Any]:
    match type:
        case TensorType(dtype=dtype) if is_scalar(type):
            return lambda slots, memory, scalar=dtype.type: scalar(next(slots))  # type: ignore[misc]
        case TensorType(shape=None):
            return lambda slots, memory: _read_boxed(next(slots), type.dtype)
        case TensorType():
            return _array_reader(type)
        case MaybeType(of=inner):
            read = _reader(inner, place)

            def read_maybe(slots: Iterator[Any], memory: Memory) -> Any:
                if next(slots):
                    return read(slots, memory)
                for _ in registers(inner):
                    next(slots)
                return ZERO

            return read_maybe
        case ListType():
            assert place is not None
            read_items = partial(read_list, place)
            return lambda slots, memory: Sequence.of(read_items(next(slots), next(slots), memory))
        case HostType():
            return lambda slots, memory: memory.objects[next(slots)]
    return lambda slots, memory: None


def _array_reader(type: TensorType) -> Callable[[Iterator[Any], Memory], Any]:
    dtype, dims = type.dtype, type.dims

    def read(slots: Iterator[Any], memory: Memory) -> Any:
        address = next(slots)
        shape = tuple(next(slots) if isinstance(dim, Symbol) else dim for dim in dims)
        array = view(address, shape, dtype)
        return array if shape else array[()]

    return read


def _read_boxed(address: int, dtype: np.dtype) -> Any:
    (rank,) = view(address, (1,), np.dtype(np.int64))
    shape = tuple(view(address + SLOT_BYTES, (int(rank),), np.dtype(np.int64)).tolist())
    array = view(address + BOXED_BYTES, shape, dtype)
    return array if shape else array[()]


def _column(
    memory: Memory, place: ListClass, dtype: np.dtype, base: int, length: int
) -> np.ndarray:
    """The numbers at one place of each of the records of an arena from `base` on."""
    if not length:
        return np.empty(0, dtype)
    data, step = memory.where(place.arena.number)
    start = data + step * base + place.offset * SLOT_BYTES
    buffer = (ctypes.c_char * ((length - 1) * step + dtype.itemsize)).from_address(start)
    return np.ndarray(length, dtype, memoryview(buffer), strides=step)


def read_list(place: ListClass, base: int, length: int, memory: Memory) -> list[Any]:
    """The items of a list, arrays copied."""
    if isinstance(place.element, TensorType) and is_scalar(place.element):
        return list(_column(memory, place, place.element.dtype, base, length))
    slots_of = struct.Struct(code_of(place.element))
    read = _reader(place.element, None if place.inner is None else root(place.inner))
    data, step = memory.where(place.arena.number)
    items = []
    for k in range(length):
        address = data + step * (base + k) + place.offset * SLOT_BYTES
        found = slots_of.unpack((ctypes.c_char * slots_of.size).from_address(address))
        item = read(iter(found), memory)
        items.append(item.copy() if isinstance(item, np.ndarray) else item)
    return items


def writer(type: Type, place: ListClass | None) -> Callable[[Any, Memory], tuple[Any, ...]]:
    """What makes slots of values of a type; lists go to a place."""
    match type:
        case TensorType() if is_scalar(type):
            return lambda x, memory: (x,)
        case TensorType(shape=None):
            return lambda x, memory: (_write_boxed(x, type.dtype, memory),)
        case TensorType():
            return _array_writer(type)
        case MaybeType(of=inner):
            write = writer(inner, place)
            absent = (False, *(0 for _ in nothing(inner)))
            return lambda x, memory: absent if x is ZERO else (True, *write(x, memory))
        case ListType():
            assert place is not None
            return _list_writer(place)
        case HostType():
            return _write_object
    return lambda x, memory: ()


def _write_object(x: Any, memory: Memory) -> tuple[int]:
    memory.objects.append(x)
    return (len(memory.objects) - 1,)


def _array_writer(type: TensorType) -> Callable[[Any, Memory], tuple[Any, ...]]:
    dtype, dims = type.dtype, type.dims
    unknown = [k for k, dim in enumerate(dims) if isinstance(dim, Symbol)]

    def write(x: Any, memory: Memory) -> tuple[Any, ...]:
        array = np.asarray(x)
        fits = array.ndim == len(dims) and array.dtype == dtype
        pairs = zip(dims, array.shape, strict=False)
        if not fits or any(mine != size for mine, size in pairs if not isinstance(mine, Symbol)):
            found = f"{short(array.dtype)}[{','.join(map(str, array.shape))}]"
            raise ValueError(f"an array of type {type} was to come, not {found}")
        address = memory.take(array.nbytes)
        view(address, array.shape, dtype)[...] = array
        return (address, *(array.shape[k] for k in unknown))

    return write


def _write_boxed(x: Any, dtype: np.dtype, memory: Memory) -> int:
    array = np.asarray(x, dtype)
    address = memory.take(BOXED_BYTES + array.nbytes)
    head = view(address, (1 + array.ndim,), np.dtype(np.int64))
    head[0], head[1:] = array.ndim, array.shape
    view(address + BOXED_BYTES, array.shape, dtype)[...] = array
    return address


def _list_writer(place: ListClass) -> Callable[[Any, Memory], tuple[Any, ...]]:
    arena, offset = place.arena, place.offset * SLOT_BYTES
    if isinstance(place.element, TensorType) and is_scalar(place.element):
        dtype = place.element.dtype

        def write_numbers(x: Any, memory: Memory) -> tuple[Any, ...]:
            items = x.items()
            base = memory.extend(arena.number, arena.stride, len(items))
            _column(memory, place, dtype, base, len(items))[:] = items
            return base, len(items)

        return write_numbers
    slots_of = struct.Struct(code_of(place.element))
    inner = None if place.inner is None else root(place.inner)
    write = writer(place.element, inner)

    def write_list(x: Any, memory: Memory) -> tuple[Any, ...]:
        items = [write(item, memory) for item in x.items()]
        base = memory.extend(arena.number, arena.stride, len(items))
        for k, slots in enumerate(items):
            data, step = memory.where(arena.number)
            address = data + step * (base + k) + offset
            target = (ctypes.c_char * slots_of.size).from_address(address)
            slots_of.pack_into(target, 0, *slots)
        return base, len(items)

    return write_list


assert len(_CODES) == len(REGISTERS)
