"""Patterns around the memory of native code: they stay, and what is written over is named."""

from __future__ import annotations

import ctypes
import gc
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.helpers.programs import PROGRAMS, Program

import wend
import wend.numpy as wnp
from wend.backends.native.jit.llvm import engine
from wend.backends.native.rt import redzones
from wend.backends.native.run import workspace
from wend.backends.native.run.memory_checks import MemoryChecked, OverrunError, check

# Takes memory of 24 bytes from a pool, and writes 8 where it is told to.
WRITES = """
declare ptr @wend.take(ptr, i64)
declare void @wend.free(ptr, ptr)
declare void @wend.reset(ptr)
define void @write(ptr %pool, i64 %at, i1 %frees) {
  %data = call ptr @wend.take(ptr %pool, i64 24)
  %place = getelementptr i8, ptr %data, i64 %at
  store i64 7, ptr %place
  br i1 %frees, label %free, label %end
free:
  call void @wend.free(ptr %pool, ptr %data)
  br label %end
end:
  call void @wend.reset(ptr %pool)
  ret void
}
"""


@pytest.fixture(autouse=True)
def verified() -> Iterator[None]:
    with wend.config(backend="native", verify_memory=True):
        yield


@pytest.mark.parametrize("frees", [False, True])
@pytest.mark.parametrize(("at", "expected"), [(0, ""), (16, ""), (24, "behind"), (-24, "before")])
def test_arrays(at: int, expected: str, frees: bool) -> None:
    library = engine().compile(WRITES, ["write"], checked=True)
    type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool)
    pool = workspace.Pool()
    type(library.addresses["write"])(pool.address, at, frees)
    assert [*redzones.faults(pool)] == (
        [f"the memory {expected} an array of 24 bytes"] if expected else []
    )
    assert not [*redzones.faults(pool)]  # told once


def collected() -> Any:
    """A function with a list, and the workspace that it has used."""

    @wend.function
    def fun(x: Any) -> Any:
        found = []
        while x < 100.0:
            found.append(x)
            x = x * 1.1
        return sum(found)

    gc.collect()
    before = {*workspace.CHECKED}
    fun(1.0)
    (space,) = {*workspace.CHECKED} - before
    return fun, space


def test_a_call_reports_the_arrays_of_its_pool() -> None:
    before = {*workspace.CHECKED}
    fun = wend.function(lambda x: wnp.cumsum(wnp.sort(x) + 0.125)[::-1] * x)
    fun(np.ones(100))
    (space,) = [space for space in {*workspace.CHECKED} - before if space.pool is not None]
    library = engine().compile(WRITES, ["write"], checked=True)
    type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool)
    type(library.addresses["write"])(space.pool.address, 24, False)
    with pytest.raises(OverrunError, match="wrote over the memory behind an array of 24 bytes"):
        fun(np.ones(100))
    fun(np.ones(100))


def test_lists() -> None:
    fun, space = collected()
    data, room, _ = space._arena_header(0)
    end = ctypes.c_uint64.from_address(data + room * space._strides[0])
    assert end.value == redzones.WORD
    end.value = 0
    with pytest.raises(OverrunError, match=r"behind \d+ records of 8 bytes of lists"):
        fun(1.0)
    end.value = redzones.WORD
    fun(1.0)


@pytest.mark.parametrize(
    "part",
    ["arguments and results", "what is known of lists", "what Python shares", "operands of"],
)
def test_parts_of_the_block(part: str) -> None:
    fun, space = collected()
    (place,) = [at for what, at in space._layout.guards.items() if what.startswith(part)]
    space.block[place] = b"\0"
    with pytest.raises(OverrunError, match=f"`fun` wrote over the memory behind {part}"):
        fun(1.0)
    redzones.write(space.block, place)
    fun(1.0)


def test_the_start_of_the_block() -> None:
    fun, space = collected()
    ctypes.c_uint64.from_address(space.address - redzones.BYTES).value = 1
    with pytest.raises(OverrunError, match="before arguments and results"):
        fun(1.0)
    redzones.write(space._memory, 8)
    fun(1.0)


def test_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    _, space = collected()
    found_now = ["the memory behind an array of 8 bytes"]
    monkeypatch.setattr(workspace, "CHECKED", [space])
    monkeypatch.setattr(workspace.Workspace, "faults", lambda space: iter(found_now))
    with pytest.raises(OverrunError) as found:
        check("grad_f")
    assert str(found.value) == (
        "`grad_f` wrote over the memory behind an array of 8 bytes.\n"
        '  To fix it: run it with backend="numpy", and report this as a fault of wend, with the '
        'files that wend.config(dump="folder") writes.'
    )


def test_without_the_setting_nothing_is_looked_at() -> None:
    with wend.config(verify_memory=False):
        run = wend.function(lambda x: wnp.sort(x)).get_concrete_function(np.ones(3))
        assert not isinstance(run.compiled.executable("native"), MemoryChecked)
    run = wend.function(lambda x: wnp.sort(x)).get_concrete_function(np.ones(3))
    assert isinstance(run.compiled.executable("native"), MemoryChecked)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_whole_programs_and_their_gradients(program: Program) -> None:
    places = tuple(range(len(program.args)))
    value, gradient = wend.value_and_grad(program.fun, argnums=places)(*program.args)
    with wend.config(backend="numpy", verify_memory=False):
        expected = wend.value_and_grad(program.fun, argnums=places)(*program.args)
    np.testing.assert_allclose(value, expected[0], rtol=1e-9, atol=1e-9)
    for found, other in zip(gradient, expected[1], strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-9)


def slices(x: Any, n: Any) -> Any:
    """Arrays of known and unknown sizes, changed in place, in lists, from Python's kernels."""
    kept = []
    for i in range(n):
        x = wnp.sin(x) * 1.1 + x[::-1]
        x[i] = wnp.max(x[: i + 1])
        kept.append(x * 1.0)
    return wnp.sum(wnp.sort(x)) + wnp.sum(kept[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [3, 4, 17, 64])
def test_programs_stay_within_their_memory(size: int) -> None:
    x = np.linspace(0.1, 0.9, size)
    checked = wend.value_and_grad(slices)
    found = [checked(x, 3), checked(x, 3)]
    with wend.config(backend="numpy", verify_memory=False):
        expected = wend.value_and_grad(slices)(x, 3)
    for value, gradient in found:
        np.testing.assert_allclose(value, expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)


def test_a_run_before_its_pullback_keeps_its_arrays() -> None:
    x = np.linspace(0.1, 0.9, 20)
    fun = wend.function(lambda x: wnp.sum(wend.fori_loop(0, 4, lambda i, y: wnp.tanh(y) * y, x)))
    _, first = wend.vjp(fun, x)
    _, second = wend.vjp(fun, 2.0 * x)
    (one,), (two,) = first(1.0), second(1.0)
    with wend.config(backend="numpy", verify_memory=False):
        np.testing.assert_allclose(one, wend.grad(fun.python_function)(x), rtol=1e-12)
        np.testing.assert_allclose(two, wend.grad(fun.python_function)(2.0 * x), rtol=1e-12)


def test_no_memory() -> None:
    library = engine().compile(WRITES, ["write"], checked=True)
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    pool = workspace.Pool()
    assert take(engine().shared_address("wend.checked.take"))(pool.address, 1 << 60) is None
    type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool)
    type(library.addresses["write"])(pool.address, 0, False)
    assert not [*redzones.faults(pool)]


class Stop(Exception):
    """Raised by the handler of an alarm."""


# Python drops what a handler raises while an object is finalized.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts() -> None:
    """A handler that raises ends a call, and changes no array of a later one."""

    def stop(*_: Any) -> None:
        raise Stop

    x = np.linspace(0.1, 0.9, 64)
    slope = wend.grad(slices)
    expected = slope(x, 60)
    start = time.perf_counter()
    slope(x, 60)
    duration = time.perf_counter() - start
    rng = np.random.default_rng(0)
    before = signal.signal(signal.SIGALRM, stop)
    stopped = 0
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, rng.uniform(0.0, duration)))
                result = slope(x, 60)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except Stop:
                stopped += 1
            else:
                np.testing.assert_array_equal(result, expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert stopped > 10
    np.testing.assert_array_equal(slope(x, 60), expected)
