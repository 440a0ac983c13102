"""The memory of one call at a time: the block, arenas and pool, which stay warm between calls."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakSet

from wend.backends.native.program import Layout
from wend.backends.native.rt import redzones
from wend.backends.native.rt.pool import Pool
from wend.backends.native.target.value_layout import ARENA_BYTES, SLOT_BYTES
from wend.base.config import settings

# How many workspaces wait for calls
MOST_IDLE = 64

_process = ctypes.CDLL(None)
_free, _realloc = _process.free, _process.realloc
_free.argtypes = [ctypes.c_void_p]
_realloc.argtypes, _realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p
_BEFORE = 16  # before the block: a pattern, and so that it starts as memory does
_ARENA = struct.Struct("Pqq")
assert _ARENA.size == ARENA_BYTES


# Those that are looked at after each call
CHECKED: WeakSet[Workspace] = WeakSet()


class Workspace:
    """The memory of one call at a time."""

    def __init__(
        self,
        layout: Layout,
        strides: Sequence[int],
        take: Callable[[int, int], int | None] | None,
    ) -> None:
        self._memory = ctypes.create_string_buffer(_BEFORE + layout.size)
        redzones.write(self._memory, _BEFORE - redzones.BYTES)
        self.block = (ctypes.c_char * layout.size).from_buffer(self._memory, _BEFORE)
        for place in layout.guards.values():
            redzones.write(self.block, place)
        self.address = ctypes.addressof(self.block)
        if settings().verify_memory:
            CHECKED.add(self)
        self._layout, self._strides, self._take = layout, strides, take
        self._kept = 0  # the bytes that it holds while it waits
        self.objects: list[Any] = []
        self.lease: Any = None  # what keeps it after the call, while results are read
        self.run_host: Callable[[], None] | None = None  # what native code calls
        self.pool = Pool() if take is not None else None
        if self.pool is not None:
            struct.pack_into("P", self.block, layout.pool, self.pool.address)

    # What `marshal` asks for
    def take(self, size: int) -> int:
        assert self._take is not None and self.pool is not None
        address = self._take(self.pool.address, size)
        if address is None:
            raise MemoryError(f"no memory for {size} bytes")
        return address

    def where(self, number: int) -> tuple[int, int]:
        data, step, _ = self._arena(number)
        return data, self._strides[number] or step

    def extend(self, number: int, stride: int, count: int) -> int:
        data, room, fill = self._arena(number)
        if fill + count > room:
            room = max(2 * room, fill + count, 64)
            size = room * stride * SLOT_BYTES
            moved = _realloc(data, size + redzones.BYTES)
            if moved is None:
                raise MemoryError("no memory for the records of a loop")
            ctypes.c_uint64.from_address(moved + size).value = redzones.WORD
            data = moved
        _ARENA.pack_into(self.block, self._place(number), data, room, fill + count)
        return fill

    def give_back(self, idle: list[Workspace]) -> None:
        """Wait for the next call, unless many wait already.

        All that wait keep no more memory than the setting says.
        """
        if len(idle) >= MOST_IDLE:
            return
        self._kept = self.bytes()
        if sum([space._kept for space in idle]) + self._kept > settings().tape_keep:
            self.release()
            self._kept = 0
        idle.append(self)

    def bytes(self) -> int:
        """How much memory arenas and pool hold."""
        return self.arena_bytes() + (0 if self.pool is None else len(self.pool))

    def faults(self) -> Iterator[str]:
        """What of its patterns has been written over, in words."""
        if not redzones.is_there(self._memory, _BEFORE - redzones.BYTES):
            yield "the memory before arguments and results"
        for what, place in self._layout.guards.items():
            if not redzones.is_there(self.block, place):
                yield f"the memory behind {what}"
        for number, stride in enumerate(self._strides):
            data, room, _ = self._arena(number)
            if data and stride:
                end = ctypes.c_uint64.from_address(data + room * stride)
                if end.value != redzones.WORD:
                    yield f"the memory behind {room} records of {stride} bytes of lists"

    def arena_bytes(self) -> int:
        """How much memory the arenas hold."""
        arenas = enumerate(self._strides)
        return sum(self._arena(number)[1] * stride for number, stride in arenas)

    def release(self) -> None:
        """Give all arenas, and what the pool holds, back to the system."""
        for number, stride in enumerate(self._strides):
            if not stride:
                continue  # an argument's
            data = self._arena(number)[0]
            _ARENA.pack_into(self.block, self._place(number), 0, 0, 0)
            _free(data)
        if self.pool is not None:
            self.pool.release()

    def __del__(self, _is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _is_over():
            self.release()

    def _place(self, number: int) -> int:
        return self._layout.arenas + _ARENA.size * number

    def _arena(self, number: int) -> tuple[int, int, int]:
        data, room, fill = _ARENA.unpack_from(self.block, self._place(number))
        return data, room, fill
