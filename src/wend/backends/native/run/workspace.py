"""Workspaces: the block, arenas and pool of one call at a time, reused by later calls."""

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

# The number of workspaces that one executable keeps idle
MAX_IDLE = 64

_process = ctypes.CDLL(None)
_free, _realloc = _process.free, _process.realloc
_free.argtypes = [ctypes.c_void_p]
_realloc.argtypes, _realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p
# glibc keeps freed blocks below one in use; other C libraries have no such function, or no need.
_malloc_trim: Callable[[int], object] = getattr(_process, "malloc_trim", int)
_PREFIX_BYTES = 16  # bytes before the block: a redzone, padded to keep the block aligned
_ARENA_HEADER = struct.Struct("Pqq")
assert _ARENA_HEADER.size == ARENA_BYTES


# The workspaces that `memory_checks` checks after each call
CHECKED: WeakSet[Workspace] = WeakSet()


class Workspace:
    """The memory of one call at a time."""

    def __init__(
        self,
        layout: Layout,
        strides: Sequence[int],
        pool_take: Callable[[int, int], int | None] | None,
    ) -> None:
        self._memory = ctypes.create_string_buffer(_PREFIX_BYTES + layout.size)
        redzones.write(self._memory, _PREFIX_BYTES - redzones.BYTES)
        self.block = (ctypes.c_char * layout.size).from_buffer(self._memory, _PREFIX_BYTES)
        for offset in layout.guards.values():
            redzones.write(self.block, offset)
        self.address = ctypes.addressof(self.block)
        if settings().verify_memory:
            CHECKED.add(self)
        self._layout, self._strides, self._pool_take = layout, strides, pool_take
        self._idle_bytes = self._peak = 0  # bytes held when it became idle: last, and at most
        self.objects: list[Any] = []
        self.lease: Any = None  # set while results are read, if lists keep it alive
        self.run_host: Callable[[], None] | None = None  # the callback of host calls
        self.pool = Pool() if pool_take is not None else None
        self.chunks: list[Workspace] = []  # those of the functions that it calls, for each thread
        if self.pool is not None:
            struct.pack_into("P", self.block, layout.pool, self.pool.address)

    # The `Memory` protocol of `marshal`
    def allocate(self, size: int) -> int:
        assert self._pool_take is not None and self.pool is not None
        address = self._pool_take(self.pool.address, size)
        if address is None:
            raise MemoryError(f"no memory for {size} bytes")
        return address

    def arena_records(self, number: int) -> tuple[int, int]:
        data, step, _ = self._arena_header(number)
        return data, self._strides[number] or step

    def extend(self, number: int, stride: int, count: int) -> int:
        data, capacity, length = self._arena_header(number)
        if length + count > capacity:
            capacity = max(2 * capacity, length + count, 64)
            size = capacity * stride * SLOT_BYTES
            moved = _realloc(data, size + redzones.BYTES)
            if moved is None:
                raise MemoryError("no memory for the records of a loop")
            ctypes.c_uint64.from_address(moved + size).value = redzones.WORD
            data = moved
        _ARENA_HEADER.pack_into(
            self.block, self._arena_offset(number), data, capacity, length + count
        )
        return length

    def give_back(self, idle: list[Workspace]) -> None:
        """Join the idle workspaces, unless there are `MAX_IDLE`.

        It frees memory first if the idle ones together would hold more than `tape_keep` bytes.
        """
        if len(idle) >= MAX_IDLE:
            return
        self._idle_bytes = self.bytes()
        self._peak = max(self._peak, self._idle_bytes)
        others = sum([space._idle_bytes for space in idle])
        if others + self._idle_bytes > settings().tape_keep:
            self._shrink(settings().tape_keep - others)
            self._idle_bytes = self.bytes()
            _malloc_trim(0)
        idle.append(self)

    def _shrink(self, most: int) -> None:
        """Free large blocks until at most so many bytes are left, or else all memory.

        The system clears what is taken anew, which takes longer than to fill it.
        """
        for space in (self, *self.chunks):
            if space.pool is not None:
                space.pool.shrink(max(0, len(space.pool) + most - self.bytes()))
        if self.bytes() > most:
            self.release()

    def bytes(self) -> int:
        """Return the bytes that arenas and pool hold."""
        return self.arena_bytes() + self.pool_bytes()

    def pool_bytes(self) -> int:
        """Return the bytes that its pools hold."""
        own = 0 if self.pool is None else len(self.pool)
        return own + sum(chunk.pool_bytes() for chunk in self.chunks)

    def peak(self) -> int:
        """Return the most bytes that arenas and pool have needed for a call."""
        return max(self._peak, self.bytes())

    def faults(self) -> Iterator[str]:
        """Describe each redzone that has been overwritten."""
        if not redzones.is_intact(self._memory, _PREFIX_BYTES - redzones.BYTES):
            yield "the memory before arguments and results"
        for section, offset in self._layout.guards.items():
            if not redzones.is_intact(self.block, offset):
                yield f"the memory behind {section}"
        for number, stride in enumerate(self._strides):
            data, capacity, _ = self._arena_header(number)
            if data and stride:
                end = ctypes.c_uint64.from_address(data + capacity * stride)
                if end.value != redzones.WORD:
                    yield f"the memory behind {capacity} records of {stride} bytes of lists"
        if self.pool is not None:
            yield from redzones.faults(self.pool)

    def arena_bytes(self) -> int:
        """Return the bytes that the arenas hold."""
        strides = enumerate(self._strides)
        own = sum(self._arena_header(number)[1] * stride for number, stride in strides)
        return own + sum(chunk.arena_bytes() for chunk in self.chunks)

    def release(self) -> None:
        """Free the arenas and the memory of the pool."""
        for number, stride in enumerate(self._strides):
            if not stride:
                continue  # the records belong to an argument
            data = self._arena_header(number)[0]
            _ARENA_HEADER.pack_into(self.block, self._arena_offset(number), 0, 0, 0)
            _free(data)
        if self.pool is not None:
            self.pool.release()
        for chunk in self.chunks:
            chunk.release()

    def __del__(self, _is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _is_over():
            self.release()

    def _arena_offset(self, number: int) -> int:
        return self._layout.arenas + _ARENA_HEADER.size * number

    def _arena_header(self, number: int) -> tuple[int, int, int]:
        data, capacity, fill = _ARENA_HEADER.unpack_from(self.block, self._arena_offset(number))
        return data, capacity, fill
