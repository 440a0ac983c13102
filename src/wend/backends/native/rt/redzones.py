"""Redzones around the arrays of native code: `config(verify_memory=True)`.

Modules then call Python instead of the functions of `pool.py` for every array. That is slow, but it
reports writes past the end of an array or before its start.

The block of a workspace and the buffers of lists always have redzones, which cost nothing there
(`run/workspace.py`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

WORD = 0x5AFE_C0DE_5AFE_C0DE  # the pattern of a redzone
BYTES = 8
_WORD_STRUCT = struct.Struct("Q")
_HEADER = struct.Struct("qq")  # before the elements: the reference count and the size class
_PREFIX_BYTES = 64  # redzone and header, padded to align the elements to 64 bytes
Buffer = ctypes.Array[ctypes.c_char]


def write(buffer: Any, offset: int) -> None:
    """Write a redzone at an offset."""
    _WORD_STRUCT.pack_into(buffer, offset, WORD)


def is_intact(buffer: Any, offset: int) -> bool:
    """Return whether the redzone at an offset is unchanged."""
    return bool(_WORD_STRUCT.unpack_from(buffer, offset) == (WORD,))


@dataclass(slots=True)
class _PoolArrays:
    """The arrays of one pool.

    Attributes:
        blocks: for the address of its elements, the buffer of an array, their offset and size.
        is_call_over: whether the call is over, so that the next one may free them.
    """

    blocks: dict[int, tuple[Buffer, int, int]] = field(default_factory=dict)
    is_call_over: bool = False


# By the address of the pool. The arrays of a call stay until the pool is used again.
_pools: dict[int, _PoolArrays] = {}
# What ended functions that machine code called: the call raises it when it is over.
_errors: list[BaseException] = []


def take(pool: int, size: int) -> int:
    """Allocate an array with one reference, as `wend.take` does."""
    arrays = _pools.setdefault(pool, _PoolArrays())
    if arrays.is_call_over:
        arrays.blocks.clear()
        arrays.is_call_over = False
    buffer = ctypes.create_string_buffer(_PREFIX_BYTES + size + BYTES + 64)
    start = ctypes.addressof(buffer)
    offset = -start % 64 + _PREFIX_BYTES
    _HEADER.pack_into(buffer, offset - _HEADER.size, 1, 0)
    write(buffer, offset - _HEADER.size - BYTES)
    write(buffer, offset + size)
    arrays.blocks[start + offset] = buffer, offset, size
    return start + offset


def faults() -> Iterator[str]:
    """Describe each redzone that has been overwritten, once."""
    for arrays in [*_pools.values()]:
        for address, block in [*arrays.blocks.items()]:
            if fault := _fault(*block):
                del arrays.blocks[address]
                yield fault


def _fault(buffer: Buffer, offset: int, size: int) -> str:
    if not is_intact(buffer, offset - _HEADER.size - BYTES):
        return f"the memory before an array of {size} bytes"
    if not is_intact(buffer, offset + size):
        return f"the memory behind an array of {size} bytes"
    return ""


@cache
def functions(free: int, reset: int) -> dict[str, Any]:
    """Return the functions that modules call by the names of those of `pool.py`.

    Args:
        free: the address of `wend.free` of the pool, for arrays that Python has allocated.
        reset: the address of its `wend.reset`.
    """
    pool_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(free)
    pool_reset = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(reset)

    def checked_free(pool: int, address: int) -> None:
        arrays = _pools.get(pool, _PoolArrays())
        block = arrays.blocks.get(address)
        if block is None:
            pool_free(pool, address)
        elif not _fault(*block):  # else it is reported when the call is over
            del arrays.blocks[address]

    def checked_reset(pool: int) -> None:
        if pool in _pools:
            _pools[pool].is_call_over = True
        pool_reset(pool)

    types: dict[str, tuple[Callable[..., Any], Any]] = {
        "wend.take": (take, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)),
        "wend.free": (checked_free, (None, ctypes.c_void_p, ctypes.c_void_p)),
        "wend.reset": (checked_reset, (None, ctypes.c_void_p)),
    }
    return {
        name: ctypes.CFUNCTYPE(*type)(_failing_with_null(function))
        for name, (function, type) in types.items()
    }


def _failing_with_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes an error and returns null: ctypes would return any number."""

    def call(*args: int) -> Any:
        try:
            return function(*args)
        except MemoryError:  # as null says
            return None
        except BaseException as error:  # noqa: BLE001 - raised when the call is over
            _errors.append(error)
            return None

    return call


def raise_error() -> None:
    """Raise the first error of a function that machine code called, if there is one."""
    if _errors:
        error = _errors[0]
        _errors.clear()
        raise error
