"""Calls that go straight into machine code."""

from __future__ import annotations

import ctypes
import gc
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy._core.multiarray import get_handler_name
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend.backends.fastcall import FALLBACK, CallArgument, CallConstant, CallSignature, Guard
from wend.backends.native.jit.llvm import engine
from wend.backends.protocol import FastCallable
from wend.eager.dispatch import recorder


class Own(np.ndarray):
    """An array of a class of its own."""


DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c16", "c8", "f2"]


def native(fun: Callable[..., Any], **options: Any) -> Any:
    return wend.function(fun, backend="native", **options)


def fast_call(fun: Any, *args: Any, **options: Any) -> Any:
    """What calls a trace's code directly."""
    concrete = fun.get_concrete_function(*args)
    count = len(concrete.graph.params)
    options.setdefault("operands", tuple(CallArgument(k) for k in range(count)))
    options.setdefault("argument_count", count)
    options.setdefault("result_count", len(concrete.graph.results))
    made = concrete.compiled.executable("native").fast_call(CallSignature(**options))
    assert made is not None
    return made


def is_direct(fun: Any) -> bool:
    """Whether calls of a function go straight into machine code."""
    return fun._cache.fast_paths.first is not None


def repeated(fun: Any, *args: Any) -> list[Any]:
    """Results of calls, the first by way of Python, the last directly."""
    found = [fun(*args) for _ in range(6)]
    assert is_direct(fun)
    return found


def assert_same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, tuple):
        for mine, theirs in zip(found, wanted, strict=True):
            assert_same(mine, theirs)
    elif wanted is not None:
        assert found.dtype is wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)


leaves = st.one_of(
    st.builds(
        lambda dtype, shape: np.ones(shape, dtype),
        st.sampled_from(DTYPES),
        st.lists(st.integers(0, 3), max_size=4),
    ),
    st.sampled_from(DTYPES).map(lambda dtype: np.dtype(dtype).type(1)),
    st.sampled_from([True, 3, 0.5, 2 - 1j]),
)


@settings(max_examples=sized(10, 25), deadline=None)
@given(st.lists(leaves, max_size=3))
def test_each_result_is_that_of_the_other_backend(args: list[Any]) -> None:
    def both(*args: Any) -> Any:
        return tuple(args), tuple(x + x for x in args)

    fun = native(lambda *args: sum(both(*args), ()))
    wanted = wend.function(fun.python_function, backend="numpy")(*args)
    for found in repeated(fun, *args):
        assert_same(found, wanted)


def test_results_are_the_callers() -> None:
    fun, x = native(lambda x: (x, x, x[:2])), np.arange(4.0)
    for a, b, c in repeated(fun, x):
        a[:], b[:], c[:] = 1.0, 2.0, 3.0
        assert a.flags.owndata
        assert a.flags.writeable
        assert a[0] == 1.0
        assert b[0] == 2.0
        assert x[1] == 1.0


@pytest.mark.parametrize("size", [511, 512, 100_000])
def test_large_results_are_aligned(size: int) -> None:
    fun = native(lambda x: x + 1.0)
    found = repeated(fun, np.zeros(size))[-1]
    assert get_handler_name(found) == ("wend" if size * 8 >= 4096 else "default_allocator")
    assert size * 8 < 4096 or found.ctypes.data % 64 == 0
    found.resize(2 * size)
    np.testing.assert_array_equal(found, np.repeat([1.0, 0.0], size))


def test_what_is_not_as_in_the_form_misses() -> None:
    fun = native(lambda x, y: (x * 2.0, y + 1.0))
    call = fast_call(fun, np.zeros((2, 3)), np.float64(1.0)).call
    good, one = np.ones((2, 3)), np.float64(1.0)
    assert call(good, one)[1] == 2.0
    assert call(good, np.asarray(1.0)) is FALLBACK  # which a function may change
    odd = np.frombuffer(bytes(8 * 6 + 1), np.int8)[1:].view(np.float64).reshape(2, 3)
    others = [
        *(good.T, good.T.copy(), good[:, ::-1], np.asfortranarray(good), odd, np.ones((2, 4))),
        *(np.ones(6), np.ones((1, 2, 3)), good.astype("f4"), good.astype(">f8"), good.tolist()),
        *(np.ma.masked_array(good), good.view(Own), np.float64(1.0), 1.0, None, "x"),
    ]
    for x in others:
        assert call(x, one) is FALLBACK
    for y in (1.0, 1, True, np.float32(1.0), np.ones(1), np.asarray(1), good, None):
        assert call(good, y) is FALLBACK
    for args in ((), (good,), (good, one, one)):
        assert call(*args) is FALLBACK
    with pytest.raises(TypeError, match="keyword"):
        call(good, y=one)


def test_numbers_of_python() -> None:
    fun = native(lambda x: x + x)
    weak = [(0.5, CallArgument(0, is_weak=True)), (3, CallArgument(0, is_weak=True))]
    for value, taken in weak:
        call = fast_call(fun, value, operands=(taken,), is_single=True).call
        assert call(value) == 2 * value
        assert type(call(value)) is np.asarray(value).dtype.type
        others = (0.5, 3, True, np.float64(1), np.int64(1), np.asarray(1.0), np.ones(1), None)
        assert all(call(x) is FALLBACK for x in others if type(x) is not type(value))
    assert call(2**62 - 1) == 2**63 - 2
    assert call(-(2**63)) == 0
    assert call(2**63) is FALLBACK
    assert call(-(2**63) - 1) is FALLBACK
    flag = native(wnp.logical_not)
    call = fast_call(flag, True, operands=(CallArgument(0, is_weak=True),), is_single=True).call
    assert call(True) == np.False_
    assert call(False) == np.True_
    assert call(1) is FALLBACK


@pytest.mark.parametrize("number", [2 - 1j, np.complex128(1j), np.complex64(3), np.float16(0.5)])
def test_numbers_that_take_no_register(number: Any) -> None:
    """Compiled code reads complex numbers and halves where Python holds them."""
    fun = native(lambda x, y: (x, x * y + x, y))
    is_weak = type(number) is complex
    operands = (CallArgument(0, is_weak=is_weak), CallArgument(1, is_weak=is_weak))
    call = fast_call(fun, number, number, operands=operands).call
    for k in range(1, 4):
        x, y = number * type(number)(k), number
        results = call(x, y)
        assert results == (x, x * y + x, y)
        assert {type(result) for result in results} == {np.asarray(number).dtype.type}
    others = (1, 1.0, np.float64(1), 1j, np.complex128(1), np.complex64(1), np.float16(1), None)
    arrays = np.asarray(number), np.ones(1, np.asarray(number).dtype)
    for other in (*others, *arrays):
        if type(other) is not type(number):
            assert call(number, other) is FALLBACK
    scaled = native(lambda x, z: x * z)  # beside arrays, from a structure
    tree, array = native(lambda p: p["x"] * p["z"]), np.arange(6.0)
    for _ in range(4):
        assert_same(scaled(array, number), tree({"x": array, "z": number}))


def test_arrays_in_another_layout_are_copied() -> None:
    fun = native(lambda x, y: (x, x * 2.0 + y))
    call = fast_call(fun, np.zeros((2, 3)), np.zeros(3), copies_arrays=True).call
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    wide = np.arange(24.0).reshape(4, 6)
    odd = np.frombuffer(bytes(8 * 6 + 1), np.int8)[1:].view(np.float64).reshape(2, 3)
    for other in (
        np.asfortranarray(x),
        x[:, ::-1],
        wide[::2, 1::2],
        odd,
        np.broadcast_to(y, (2, 3)),
    ):
        before = other.copy()
        for last in (y, y[::-1], wide[0, :3]):
            same, total = call(other, last)
            np.testing.assert_array_equal(same, before)
            np.testing.assert_array_equal(total, before * 2.0 + last)
            assert not np.shares_memory(same, other)
    for other in (x.T, wide[::2, ::2].astype("f4"), x.astype(">f8")[:, ::-1], x[:, :, None]):
        assert call(other, y) is FALLBACK
    references = [sys.getrefcount(z) for z in (x, y, wide)]
    for _ in range(100):
        call(x[:, ::-1], y[::-1])
        assert call(x[:, ::-1], wide) is FALLBACK
    assert [sys.getrefcount(z) for z in (x, y, wide)] == references


def test_an_error_lets_copies_go() -> None:
    fun = native(lambda x, k: np.sum(x) + x[k, 0])
    x = np.arange(60_000.0).reshape(300, 200).T
    for _ in range(3):
        fun(x, 0)
    tracemalloc.start()
    for _ in range(20):
        with pytest.raises(IndexError):
            fun(x, 500)
    assert tracemalloc.get_traced_memory()[0] < x.nbytes
    tracemalloc.stop()


def test_an_array_without_axes_is_no_number() -> None:
    """Which a function may change in place, as it may not a number."""

    def add(x: Any) -> Any:
        y = x
        y += 1j
        return y

    fun, array = native(add), np.array(1 + 0j)
    for call in range(4):
        assert fun(np.complex128(2)) == 2 + 1j
        assert fun(array) == 1 + (call + 1) * 1j
        assert array == 1 + (call + 1) * 1j


def test_sizes_that_are_not_known() -> None:
    fun = native(lambda x, y: wnp.sum(x, axis=0) + y)
    spec = wend.TensorSpec([None, None]), wend.TensorSpec([None])
    concrete = fun.get_concrete_function(*spec)
    x, y = concrete.graph.params
    assert len({*x.type.dims, *y.type.dims}) == 3
    square = native(lambda x: x + 1.0, reduce_retracing=True)
    assert repeated(square, np.zeros((3, 3)))[-1].shape == (3, 3)
    call = square._cache.fast_paths.first.fast_call.call
    for shape in ((2, 2), (3, 3), (100, 100)):
        assert call(np.zeros(shape)).shape == shape
    for shape in ((2, 3), (1, 1), (0, 0), (3,)):
        assert call(np.zeros(shape)) is FALLBACK


def test_arrays_that_are_bound() -> None:
    captured = np.arange(3.0)
    fun = native(lambda x: x * captured)
    x = np.full(3, 2.0)
    repeated(fun, x)
    captured[0] = 5.0  # by reference
    np.testing.assert_array_equal(fun(x), [10.0, 2.0, 4.0])
    assert is_direct(fun)


def test_guards() -> None:
    fun = native(lambda x: x + 1.0)
    expected = object()
    guard = Guard(recorder, None, None)
    call = fast_call(fun, np.float64(1), guards=(guard,), is_single=True).call
    assert call(np.float64(1.0)) == 2.0
    token = recorder.set(expected)  # type: ignore[arg-type]
    try:
        assert call(np.float64(1.0)) is FALLBACK
    finally:
        recorder.reset(token)
    assert call(np.float64(1.0)) == 2.0


def test_calls_are_counted_until_they_stop() -> None:
    counter = ctypes.c_int64()
    made = fast_call(
        native(lambda x: x + 1.0),
        1.0,
        operands=(CallArgument(0, is_weak=True),),
        is_single=True,
        counter=counter,
    )
    assert [made.call(x) is FALLBACK for x in (1.0, 2.0, 3, 4.0)] == [False, False, True, False]
    assert counter.value == 3
    made.stop()
    assert made.call(1.0) is FALLBACK
    assert made.call() is FALLBACK
    assert counter.value == 3


def test_another_callable_does_what_misses() -> None:
    made = fast_call(native(lambda x: x + 1.0), np.float64(1.0), is_single=True)
    given_: list[Any] = []

    def otherwise(*args: Any, **kwargs: Any) -> Any:
        given_.append((args, kwargs))
        if args == ("no",):
            raise ValueError("not this")
        return "otherwise"

    call = made.call_or(otherwise)
    x = np.float64(1.0)
    assert call(x) == 2.0
    assert given_ == []
    for args, kwargs in (((1.0,), {}), ((), {"x": x}), ((x,), {"y": 2}), ((x, x), {}), ((), {})):
        before = sys.getrefcount(FALLBACK), sys.getrefcount(otherwise)
        assert call(*args, **kwargs) == "otherwise"
        assert given_.pop() == (args, kwargs)
        assert (sys.getrefcount(FALLBACK), sys.getrefcount(otherwise)) == before
    with pytest.raises(ValueError, match="not this"):
        call("no")
    assert made.call(1.0) is FALLBACK


def test_references_are_balanced() -> None:
    captured = np.arange(3.0)
    fun = native(lambda x, y, z: (x * captured, y, z, None, x.sum()))
    args = np.ones(3), 12345.678, 10**9
    repeated(fun, *args)
    objects = [
        *args,
        captured,
        np.dtype("f8"),
        np.float64,
        None,
        FALLBACK,
        fun._cache.fast_paths.first.call,
    ]

    def counts() -> list[int]:
        return [sys.getrefcount(x) for x in objects]

    call = fun._cache.fast_paths.first.call
    for given_ in (args, (np.ones(4), 1.0, 1), (np.ones(3), 1.0, 2**70), (np.ones(3), 1.0)):
        before = counts()
        for _ in range(1000):
            call(*given_)
        # Other threads, and the interpreter itself, may hold one or another
        assert max(abs(a - b) for a, b in zip(before, counts(), strict=True)) < 100


def test_memory_is_constant() -> None:
    @native
    def fun(x: Any, n: Any) -> Any:
        y = x
        for _ in range(n):
            y = y * x + 1.0
        return y, y.sum()

    x = np.full(700, 0.5)
    grad = wend.grad(lambda x, n: fun(x, n)[1])
    with wend.config(backend="native"):
        for _ in range(100):
            fun(x, 3), grad(x, 3)
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(2000):
                fun(x, 3), grad(x, 3)
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert size < 100_000


def test_errors_have_the_users_line_and_leave_all_in_order() -> None:
    @native
    def fun(x: Any, k: Any) -> Any:
        return x[k] * 2.0

    x = np.arange(3.0)
    assert repeated(fun, x, 1)[-1] == 2.0
    for _ in range(20):
        with pytest.raises(IndexError, match="out of bounds") as caught:
            fun(x, 7)
        assert any("test_entry.py" in note for note in caught.value.__notes__)
        assert fun(x, 2) == 4.0
    assert is_direct(fun)


def test_sizes_that_do_not_agree_are_told_as_ever() -> None:
    fun = native(lambda x, y: x + y)
    for n in (3, 4, 5, 5, 5, 5):
        fun(np.ones(n), np.ones((2, n)))
    spec = native(lambda x, y: x + y, input_signature=[wend.TensorSpec([None])] * 2)
    for _ in range(5):
        spec(np.ones(3), np.ones(3))
    for _ in range(2):
        with pytest.raises(ValueError, match="broadcast"):
            spec(np.ones(3), np.ones(4))


@native
def steps(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = wnp.sin(x) + 0.5
    return x


def test_a_loop_lets_other_threads_run() -> None:
    repeated(steps, 1.0, 10)
    start = time.perf_counter()
    steps(1.0, 1_000_000)
    count = int(1e6 / (time.perf_counter() - start))  # what takes about a second
    runner = threading.Thread(target=steps, args=(1.0, count))
    runner.start()
    time.sleep(0.05)
    assert runner.is_alive()  # this thread has got the lock meanwhile
    runner.join()


def test_a_million_calls_take_no_memory() -> None:
    """The gradient of a loop keeps records, and gives an array; with the process's own memory."""
    x, grad = np.full(3, 0.5), wend.grad(lambda x, n: wend.fori_loop(0, n, _doubled, x).sum())
    with wend.config(backend="native"):

        def run(count: int) -> int:
            for _ in range(count):
                grad(x, 2)
            gc.collect()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = run(10_000)
        assert is_direct(grad)
        assert run(1_000_000) - before < 1000  # KiB


def _doubled(i: Any, x: Any) -> Any:
    return wnp.sin(x) * 2.0


def test_many_threads_at_once() -> None:
    x = np.arange(1000.0)

    @native
    def fun(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x * 0.5 + 1.0
        return x

    wanted = [repeated(fun, x, n)[-1] for n in range(8)]
    failed: list[Any] = []

    def work(n: int) -> None:
        for _ in range(200):
            if not np.array_equal(fun(x, n), wanted[n]):
                failed.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_function_that_calls_itself_by_way_of_python() -> None:
    spec = wend.TensorSpec([])

    def again(n: Any) -> Any:
        return np.float64(0.0) if n <= 0 else fun(np.float64(n - 1.0))

    @native
    def fun(n: Any) -> Any:
        return n + wend.py_function(again, spec, n)

    for _ in range(5):
        assert fun(np.float64(4.0)) == 10.0


def test_two_functions_that_wait_for_each_other() -> None:
    first, second = threading.Event(), threading.Event()

    def meet(mine: threading.Event, other: threading.Event) -> Any:
        def wait(x: Any) -> Any:
            mine.set()
            assert other.wait(30)
            return x

        return native(lambda x: wend.py_function(wait, wend.TensorSpec([]), x) + 1.0)

    one, two = meet(first, second), meet(second, first)
    thread = threading.Thread(target=lambda: [one(np.float64(1.0)) for _ in range(4)])
    thread.start()
    assert [two(np.float64(1.0)) for _ in range(4)] == [2.0] * 4
    thread.join()


def test_ctrl_c() -> None:
    def ring(*_: Any) -> None:
        raise KeyboardInterrupt

    repeated(steps, 1.0, 10)
    old = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                steps(1.0, 10**15)
            assert np.isfinite(steps(1.0, 10))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_much_memory_is_given_back() -> None:
    def fun(x: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, x: wnp.sin(x) * 1.5, x)

    grad = wend.grad(fun)
    with wend.config(backend="native"):
        for _ in range(5):
            grad(1.0, 10)
        assert is_direct(grad)
        grad(1.0, 20_000_000)
        (concrete,) = grad.concrete_functions()
        spaces = concrete.compiled.executable("native")._workspaces.all()
    assert spaces
    assert all(space.arena_bytes() < 1 << 27 for space in spaces)


def test_the_interpreter_may_end_at_any_time() -> None:
    text = """
        import atexit, threading
        import numpy as np, wend
        fun = wend.function(lambda x: x + 1.0, backend="native")
        atexit.register(lambda: print(fun(np.ones(3))))
        steps = wend.function(lambda n: wend.fori_loop(0, n, lambda i, x: x + 0.5, 0.0),
                              backend="native")
        for _ in range(5):
            fun(np.ones(3)), steps(3)
        threading.Thread(target=steps, args=(10**15,), daemon=True).start()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "[2. 2. 2.]\n"), done.stderr


def test_what_outlives_the_modules_is_quiet(tmp_path: Path) -> None:
    """Functions and their guards are freed after the globals of the modules are."""
    text = """
        import wend
        from wend.cli.dopri import advance
        def loss(p, x):
            def field(h):
                return (-p * h,)
            return advance(field, (x,), 2.0, 0.1, 1e-4)[0][0]
        def decay(p, h):
            return -p * h
        slope = wend.grad(loss)
        step = wend.function(lambda f, x: f(0.5, x))
        for _ in range(30):
            slope(1.0, 0.5), step(decay, 1.0)
    """
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signature_may_be_impossible() -> None:
    fun = native(lambda x: x + 1.0)
    run = fun.get_concrete_function(wend.TensorSpec(None)).compiled.executable("native")
    assert run.fast_call(CallSignature((CallArgument(0),), 1, 1)) is None
    run = fun.get_concrete_function(1.0).compiled.executable("numpy")
    assert not isinstance(run, FastCallable)
    fun = native(lambda x: x + 1.0)  # the trace of any rank would take this array, too
    bound = fast_call(
        fun, np.ones(2), operands=(CallConstant(np.ones(2)),), argument_count=0, is_single=True
    )
    np.testing.assert_array_equal(bound.call(), [2.0, 2.0])


def test_the_trampoline_is_compiled_when_calls_repay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @native
    def fun(x: Any) -> Any:
        return x * 2.0 + 1.0

    monkeypatch.setattr(type(engine()), "has_trampoline", False)
    for call in range(12):
        assert fun(3.0) == 7.0
        assert is_direct(fun) == (call >= 9)
