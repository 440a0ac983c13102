"""Blocks that change their pool: a result that one call leaves to another."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from wend.backends.native.jit.llvm import engine
from wend.backends.native.rt.pool import RECEIVE, Pool

LARGE, SMALL = 10_000, 64  # bytes


def function(name: str, *types: Any) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_void_p, *types)(engine().shared_address(name))


def take(pool: Pool, size: int) -> int:
    return int(function("wend.take", ctypes.c_void_p, ctypes.c_int64)(pool.address, size))


def reset(pool: Pool) -> None:
    function("wend.reset", ctypes.c_void_p)(pool.address)


def receive(pool: Pool, new: int, other: Pool, result: int, size: int) -> int:
    call = function(RECEIVE, *[ctypes.c_void_p] * 4, ctypes.c_int64)
    return int(call(pool.address, new, other.address, result, size))


def filled(pool: Pool, size: int) -> int:
    data = take(pool, size)
    ctypes.memset(data, 7, size)
    return data


def contents(data: int, size: int) -> bytes:
    return ctypes.string_at(data, size)


def retained(data: int) -> None:
    ctypes.c_int64.from_address(data - 16).value += 1


def test_blocks_of_one_size_change_places() -> None:
    caller, callee = Pool(), Pool()
    held = []
    for _ in range(50):
        result = filled(callee, LARGE)
        reset(callee)
        new = take(caller, LARGE)
        received = receive(caller, new, callee, result, LARGE)
        assert received == result
        assert contents(received, LARGE) == b"\7" * LARGE
        function("wend.free", ctypes.c_void_p, ctypes.c_void_p)(caller.address, received)
        held.append((len(caller), len(callee)))
    assert len({*held}) == 1  # two blocks go round
    assert take(callee, LARGE) == new
    caller.release()
    callee.release()


@pytest.mark.parametrize("kind", ["small", "shared", "larger"])
def test_others_are_copied(kind: str) -> None:
    caller, callee = Pool(), Pool()
    size = SMALL if kind == "small" else LARGE
    result = filled(callee, 2 * size if kind == "larger" else size)
    if kind == "shared":
        retained(result)
    reset(callee)
    before = len(caller), len(callee)
    new = take(caller, size)
    assert receive(caller, new, callee, result, size) == new
    assert contents(new, size) == b"\7" * size
    assert len(callee) == before[1]
    caller.release()
    callee.release()
