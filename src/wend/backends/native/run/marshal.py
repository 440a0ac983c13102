"""Marshalling of values between Python and the slots of native code.

A `Marshaller` converts values of one type: `read` makes a value from slots, `write` makes the slots
of a value. `write` copies arrays into the pool and lists into their arenas.
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
    absent_value,
    is_scalar,
    registers,
)
from wend.base.zero import ZERO
from wend.ir.dtypes import short
from wend.ir.types import HostType, ListType, MaybeType, Symbol, TensorType, Type
from wend.runtime.sequence import Sequence

# The `struct` format of a slot, by dtype
_STRUCT_FORMATS = {
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
    """The memory of a run that values are read from and written to."""

    def allocate(self, size: int) -> int:
        """Allocate `size` bytes from the pool, with one reference."""
        ...

    def arena_records(self, number: int) -> tuple[int, int]:
        """Return the address of the records of an arena and their stride in bytes."""
        ...

    def extend(self, number: int, stride: int, count: int) -> int:
        """Append `count` records to an arena; return the number of the first."""
        ...

    @property
    def objects(self) -> list[Any]:
        """The Python objects that native code refers to by number, until the call is over."""
        ...


class Marshaller:
    """The conversion of values of one type to slots and back.

    Attributes:
        format: the `struct` format of the slots.
    """

    def __init__(self, field: Field) -> None:
        self.type = field.type
        self.format = struct_format(field.type)
        list_class = None if field.list_class is None else root(field.list_class)
        self.read: Callable[[Iterator[Any], Memory], Any] = _reader(field.type, list_class)
        self.write: Callable[[Any, Memory], tuple[Any, ...]] = writer(field.type, list_class)


def struct_format(type: Type) -> str:
    """Return the `struct` format of the slots of a value."""
    match type:
        case TensorType(dtype=dtype) if is_scalar(type):
            return _STRUCT_FORMATS[short(dtype)]
        case MaybeType(of=inner):
            return "?7x" + struct_format(inner)
    return "q" * len(registers(type))


def view(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return a view of the array at an address, valid for as long as the memory is."""
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    if not size:
        return np.empty(shape, dtype)
    buffer = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memoryview(buffer))


def _reader(type: Type, list_class: ListClass | None) -> Callable[[Iterator[Any], Memory], Any]:
    match type:
        case TensorType(dtype=dtype) if is_scalar(type):
            return lambda slots, memory, scalar=dtype.type: scalar(next(slots))  # type: ignore[misc]
        case TensorType(shape=None):
            return lambda slots, memory: _read_boxed(next(slots), type.dtype)
        case TensorType():
            return _array_reader(type)
        case MaybeType(of=inner):
            read = _reader(inner, list_class)

            def read_maybe(slots: Iterator[Any], memory: Memory) -> Any:
                if next(slots):
                    return read(slots, memory)
                for _ in registers(inner):
                    next(slots)
                return ZERO

            return read_maybe
        case ListType():
            assert list_class is not None
            read_items = partial(read_list, list_class)
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
    memory: Memory, list_class: ListClass, dtype: np.dtype, base: int, length: int
) -> np.ndarray:
    """Return a view of one field of `length` records of an arena, from number `base` on."""
    if not length:
        return np.empty(0, dtype)
    data, stride = memory.arena_records(list_class.arena.number)
    start = data + stride * base + list_class.offset * SLOT_BYTES
    buffer = (ctypes.c_char * ((length - 1) * stride + dtype.itemsize)).from_address(start)
    return np.ndarray(length, dtype, memoryview(buffer), strides=stride)


def read_list(list_class: ListClass, base: int, length: int, memory: Memory) -> list[Any]:
    """Return the items of a list; arrays are copied."""
    if isinstance(list_class.element, TensorType) and is_scalar(list_class.element):
        return list(_column(memory, list_class, list_class.element.dtype, base, length))
    record_struct = struct.Struct(struct_format(list_class.element))
    read = _reader(list_class.element, None if list_class.inner is None else root(list_class.inner))
    data, stride = memory.arena_records(list_class.arena.number)
    items = []
    for k in range(length):
        address = data + stride * (base + k) + list_class.offset * SLOT_BYTES
        item_slots = record_struct.unpack(
            (ctypes.c_char * record_struct.size).from_address(address)
        )
        item = read(iter(item_slots), memory)
        items.append(item.copy() if isinstance(item, np.ndarray) else item)
    return items


def writer(type: Type, list_class: ListClass | None) -> Callable[[Any, Memory], tuple[Any, ...]]:
    """Return the function that makes slots of values; it appends lists to `list_class`."""
    match type:
        case TensorType() if is_scalar(type):
            return lambda x, memory: (x,)
        case TensorType(shape=None):
            return lambda x, memory: (_write_boxed(x, type.dtype, memory),)
        case TensorType():
            return _array_writer(type)
        case MaybeType(of=inner):
            write = writer(inner, list_class)
            absent = (False, *(0 for _ in absent_value(inner)))
            return lambda x, memory: absent if x is ZERO else (True, *write(x, memory))
        case ListType():
            assert list_class is not None
            return _list_writer(list_class)
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
        matches = array.ndim == len(dims) and array.dtype == dtype
        pairs = zip(dims, array.shape, strict=False)
        if not matches or any(
            expected != size for expected, size in pairs if not isinstance(expected, Symbol)
        ):
            shown = f"{short(array.dtype)}[{','.join(map(str, array.shape))}]"
            raise ValueError(f"expected an array of type {type}, not {shown}")
        address = memory.allocate(array.nbytes)
        view(address, array.shape, dtype)[...] = array
        return (address, *(array.shape[k] for k in unknown))

    return write


def _write_boxed(x: Any, dtype: np.dtype, memory: Memory) -> int:
    array = np.asarray(x, dtype)
    address = memory.allocate(BOXED_BYTES + array.nbytes)
    header = view(address, (1 + array.ndim,), np.dtype(np.int64))
    header[0], header[1:] = array.ndim, array.shape
    view(address + BOXED_BYTES, array.shape, dtype)[...] = array
    return address


def _list_writer(list_class: ListClass) -> Callable[[Any, Memory], tuple[Any, ...]]:
    arena, offset = list_class.arena, list_class.offset * SLOT_BYTES
    if isinstance(list_class.element, TensorType) and is_scalar(list_class.element):
        dtype = list_class.element.dtype

        def write_numbers(x: Any, memory: Memory) -> tuple[Any, ...]:
            items = x.items()
            base = memory.extend(arena.number, arena.stride, len(items))
            _column(memory, list_class, dtype, base, len(items))[:] = items
            return base, len(items)

        return write_numbers
    record_struct = struct.Struct(struct_format(list_class.element))
    inner = None if list_class.inner is None else root(list_class.inner)
    write = writer(list_class.element, inner)

    def write_list(x: Any, memory: Memory) -> tuple[Any, ...]:
        items = [write(item, memory) for item in x.items()]
        base = memory.extend(arena.number, arena.stride, len(items))
        for k, slots in enumerate(items):
            data, stride = memory.arena_records(arena.number)
            address = data + stride * (base + k) + offset
            target = (ctypes.c_char * record_struct.size).from_address(address)
            record_struct.pack_into(target, 0, *slots)
        return base, len(items)

    return write_list


assert len(_STRUCT_FORMATS) == len(REGISTERS)
