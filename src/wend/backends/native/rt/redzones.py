"""Arrays of native code with a pattern before and behind each: `config(verify_memory=True)`.

In place of the functions of `pool.py` modules then call Python for every array. That is slow; but
whoever writes past the end of an array, or before its start, is told of.

The block of a workspace and the buffers of lists have such patterns always, as they cost nothing
there (`workspace.py`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

WORD = 0x5AFE_C0DE_5AFE_C0DE  # the pattern
BYTES = 8
_word = struct.Struct("Q")
_HEAD = struct.Struct("qq")  # before the elements: how many references there are; a class
_BEFORE = 64  # the pattern and the head, so that elements start at multiples of 64 bytes
Buffer = ctypes.Array[ctypes.c_char]


def write(buffer: Any, offset: int) -> None:
    """Put the pattern somewhere."""
    _word.pack_into(buffer, offset, WORD)


def is_there(buffer: Any, offset: int) -> bool:
    """Whether the pattern still is."""
    return bool(_word.unpack_from(buffer, offset) == (WORD,))


@dataclass(slots=True)
class _Arrays:
    """The arrays of one pool.

    Attributes:
        blocks: for the address of its elements, memory around an array, and its size.
        over: whether the call is over, so that the next one may drop them.
    """

    blocks: dict[int, tuple[Buffer, int, int]] = field(default_factory=dict)
    over: bool = False


# By the address of the pool; what a call has left, until its pool is used again
_pools: dict[int, _Arrays] = {}


def take(pool: int, size: int) -> int:
    """An array's memory with one reference, as `wend.take`."""
    arrays = _pools.setdefault(pool, _Arrays())
    if arrays.over:
        arrays.blocks.clear()
        arrays.over = False
    buffer = ctypes.create_string_buffer(_BEFORE + size + BYTES + 64)
    start = ctypes.addressof(buffer)
    offset = -start % 64 + _BEFORE
    _HEAD.pack_into(buffer, offset - _HEAD.size, 1, 0)
    write(buffer, offset - _HEAD.size - BYTES)
    write(buffer, offset + size)
    arrays.blocks[start + offset] = buffer, offset, size
    return start + offset


def faults() -> Iterator[str]:
    """What has been written over, in words; each is told of once."""
    for arrays in [*_pools.values()]:
        for address, block in [*arrays.blocks.items()]:
            if found := _fault(*block):
                del arrays.blocks[address]
                yield found


def _fault(buffer: Buffer, offset: int, size: int) -> str:
    if not is_there(buffer, offset - _HEAD.size - BYTES):
        return f"the memory before an array of {size} bytes"
    if not is_there(buffer, offset + size):
        return f"the memory behind an array of {size} bytes"
    return ""


@cache
def functions(free: int, reset: int) -> dict[str, Any]:
    """What modules call by the names of `pool.py`.

    Args:
        free: the address of the pool's own, for arrays that Python has put there.
        reset: likewise.
    """
    give_back = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(free)
    make_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(reset)

    def checked_free(pool: int, address: int) -> None:
        arrays = _pools.get(pool, _Arrays())
        block = arrays.blocks.get(address)
        if block is None:
            give_back(pool, address)
        elif not _fault(*block):  # else it is told of when the call is over
            del arrays.blocks[address]

    def checked_reset(pool: int) -> None:
        if pool in _pools:
            _pools[pool].over = True
        make_free(pool)

    types: dict[str, tuple[Callable[..., Any], Any]] = {
        "wend.take": (take, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)),
        "wend.free": (checked_free, (None, ctypes.c_void_p, ctypes.c_void_p)),
        "wend.reset": (checked_reset, (None, ctypes.c_void_p)),
    }
    return {name: ctypes.CFUNCTYPE(*type)(function) for name, (function, type) in types.items()}
