"""Calls machine code: arguments into a block of memory, results out of it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.backends.native.arenas import BAD_INDEX, BAD_LENGTH, DONE, NO_MEMORY
from wend.backends.native.llvm import Library
from wend.backends.native.program import ENTRY, Program
from wend.base.zero import ZERO
from wend.ir.types import MaybeType, TensorType, TokenType, Type

# Arenas are kept for the next call unless they are larger together.
KEPT_BYTES = 1 << 27

_FORMATS = {"f": "d", "i": "q", "b": "?7x"}
_SCALARS: dict[str, Callable[[Any], Any]] = {"f": np.float64, "i": np.int64, "b": np.bool_}
_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]


class Workspace:
    """The memory of one call at a time: arguments, results, and arenas that stay warm."""

    def __init__(self, size: int, arenas_at: int, strides: Sequence[int]) -> None:
        self.block = ctypes.create_string_buffer(max(size, 1))
        self.address = ctypes.addressof(self.block)
        self._arenas = struct.Struct("Pq" * len(strides))
        self._at, self._strides = arenas_at, strides
        self._free = _free  # also there when the interpreter shuts down

    def trim(self) -> None:
        """Give the arenas back to the system where they are large."""
        if self.arena_bytes() > KEPT_BYTES:
            self.release()

    def arena_bytes(self) -> int:
        """How much memory the arenas hold."""
        rooms = self._arenas.unpack_from(self.block, self._at)[1::2]
        return sum(room * stride for room, stride in zip(rooms, self._strides, strict=True))

    def release(self) -> None:
        """Give all arenas back to the system."""
        buffers = self._arenas.unpack_from(self.block, self._at)
        self._arenas.pack_into(self.block, self._at, *([0] * len(buffers)))
        for data in buffers[::2]:
            self._free(data)

    def __del__(self) -> None:
        self.release()


class NativeExecutable:
    """A compiled graph. Any number of threads may call it at once."""

    def __init__(self, name: str, program: Program, library: Library) -> None:
        self.name = name
        self._library = library  # the code lives as long as this
        self._enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(library.addresses[ENTRY])
        self._arguments = struct.Struct("".join(map(_format, program.params)))
        self._results = struct.Struct("".join(map(_format, program.results)))
        self._strides = program.strides
        self._size = self._arguments.size + self._results.size + 16 * len(program.strides)
        self._readers = [_reader(type) for type in program.results]
        self._simple = all(isinstance(type, TensorType) for type in program.params)
        self._writers = [_writer(type) for type in program.params]
        self._idle: list[Workspace] = []

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        try:
            space = self._idle.pop()
        except IndexError:
            space = self._new_space()
        try:
            given = arguments if self._simple else self._flat(arguments)
            self._arguments.pack_into(space.block, 0, *given)
            status = self._enter(space.address)
            if status != DONE:
                raise self._error(status)
            found = iter(self._results.unpack_from(space.block, self._arguments.size))
            return [read(found) for read in self._readers]
        finally:
            if self._strides:
                space.trim()
            self._idle.append(space)

    def _new_space(self) -> Workspace:
        return Workspace(self._size, self._arguments.size + self._results.size, self._strides)

    def _flat(self, arguments: Sequence[Any]) -> list[Any]:
        pairs = zip(self._writers, arguments, strict=True)
        return [slot for write, argument in pairs for slot in write(argument)]

    def _error(self, status: int) -> Exception:
        match status:
            case _ if status == NO_MEMORY:
                return MemoryError(f"{self.name}: no memory for the records of a loop")
            case _ if status == BAD_INDEX:
                return IndexError(f"{self.name}: a list was read, or a branch chosen, out of range")
            case _ if status == BAD_LENGTH:
                return ValueError(f"{self.name}: lists of different lengths were added")
        return RuntimeError(f"{self.name}: native code returned status {status}")


def _format(type: Type) -> str:
    match type:
        case TensorType(dtype=dtype):
            return _FORMATS[dtype.kind]
        case MaybeType(of=inner):
            return "?7x" + _format(inner)
    return ""


def _reader(type: Type) -> Callable[[Any], Any]:
    """What takes the slots of one result from an iterator, and makes the result."""
    match type:
        case TensorType(dtype=dtype):
            scalar = _SCALARS[dtype.kind]
            return lambda slots: scalar(next(slots))
        case MaybeType(of=inner):
            read = _reader(inner)

            def read_maybe(slots: Any) -> Any:
                flag, value = next(slots), read(slots)
                return value if flag else ZERO

            return read_maybe
        case TokenType():
            return lambda slots: None
    raise TypeError(f"no result can be {type}")


def _writer(type: Type) -> Callable[[Any], tuple[Any, ...]]:
    """What makes slots of one argument."""
    match type:
        case MaybeType(of=inner):
            write = _writer(inner)
            absent = write(0)
            return lambda x: (False, *absent) if x is ZERO else (True, *write(x))
        case TokenType():
            return lambda x: ()
    return lambda x: (x,)
