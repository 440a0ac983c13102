"""Large loops on several threads: the same to the last bit, and nothing that waits for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite.binding import llvm_version_info

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND
from wend.backends.native.emit import loop_nest
from wend.backends.native.run import threads
from wend.backends.native.target.writer import Writer

MANY = 3  # on any machine


def chain(x: Any) -> Any:
    return wnp.exp(-x * x) * 2 + x


def softmax(x: Any) -> Any:
    e = wnp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    """Keeps a row in memory of its own: each thread has one."""
    y = wnp.tanh(wnp.exp(wnp.sin(x)))
    m = y.mean(axis=-1, keepdims=True)
    return ((y - m) / wnp.sqrt(wnp.square(y - m).mean(axis=-1, keepdims=True) + 1e-3)).sum(axis=-1)


def centred(x: Any) -> Any:
    return wnp.tanh(x - x.mean())


def turned(x: Any) -> Any:
    return wnp.swapaxes(x, -1, 0) * 2 + wnp.cos(wnp.swapaxes(x, -1, 0))


def by_columns(x: Any) -> Any:
    return (x * x).sum(axis=0), x - x.max()


def in_place(x: Any) -> Any:
    for _ in range(3):
        x = x * 0.5 + wnp.sin(x)
    return x


def compared(x: Any) -> Any:
    return wnp.where(x > 0, x, -x) > 0.5, wnp.arange(x.shape[0]) * 2


FUNCTIONS = [chain, softmax, layer_norm, centred, turned, by_columns, in_place, compared]


def compiled(fun: Callable[..., Any], count: int, **how: Any) -> Callable[..., Any]:
    """A function that runs on so many threads."""
    made = wend.function(fun, backend="native", **how)

    def call(*args: Any) -> Any:
        with wend.config(threads=count):
            return made(*args)

    return call


def same(x: Any, y: Any) -> None:
    for mine, theirs in zip(
        x if isinstance(x, tuple) else [x], y if isinstance(y, tuple) else [y], strict=True
    ):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every nest is worth splitting."""
    monkeypatch.setattr(loop_nest._NestEmitter, "_element_cost", lambda self: 1 << 24)


def text(fun: Callable[..., Any], *args: Any, count: int = MANY) -> str:
    with wend.config(threads=count):
        return BACKEND.text(wend.function(fun).get_concrete_function(*args).graph)


# Which loops are split
@pytest.mark.parametrize("fun", [chain, softmax, layer_norm, centred, turned, in_place])
def test_large_loops_are_split(fun: Callable[..., Any]) -> None:
    assert "@wend.parallel(ptr @wend_part0" in text(fun, np.zeros((2000, 500)))


def test_small_loops_are_not_split() -> None:
    assert "wend.parallel" not in text(chain, np.zeros(1000))


def test_one_thread_splits_nothing() -> None:
    assert "wend.parallel" not in text(chain, np.zeros(10**6), count=1)


def test_loops_of_unknown_size_are_split_where_a_call_is_not_felt() -> None:
    def carried(x: Any, n: Any) -> Any:
        while n > 0:
            x = chain(x)
            n -= 1
        return x

    any_size = wend.TensorSpec([None], np.float64)
    assert "wend.parallel" in text(chain, any_size)
    assert "wend.parallel" not in text(carried, any_size, 3)
    assert "wend.parallel" in text(carried, np.zeros(10**6), 3)


def test_helpers_help() -> None:
    f = compiled(chain, 2)
    x = np.linspace(-2.0, 2.0, 10**6)
    f(x)
    clock = time.pthread_getcpuclockid(threads.helper_threads()[0].ident or 0)
    before, end = time.clock_gettime(clock), time.monotonic() + 60
    while time.clock_gettime(clock) < before + 0.01:
        f(x)
        assert time.monotonic() < end


def test_what_a_part_of_a_loop_is_given() -> None:
    w = Writer()
    w.open_entry()
    x, y = w.define("load double, ptr %a"), w.define("call i64 @f(double 0.0)")
    z, close = w.open_phi("float", "0.0", "entry")
    room = w.allocate("i64")

    def found(*lines: str) -> dict[str, str] | None:
        return w.live_ins([f"  {line}" for line in lines], {"%given"})

    assert found(f"%u = fadd double {x}, {x}", "store double %u, ptr %given") == {x: "double"}
    assert found(f"%u = sitofp i64 {y} to float", f"%v = fadd float %u, {z}") == {
        y: "i64",
        z: "float",
    }
    assert found(f"store i64 0, ptr {room}") is None
    assert found("br label %exit1") is None
    assert found("%u = load i64, ptr %pool") is None
    close(z)


# Values
@pytest.mark.sampled(3)
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("fun", FUNCTIONS)
@given(
    shape=st.one_of(
        st.tuples(st.integers(1, 300)),
        st.tuples(st.integers(1, 40), st.integers(1, 40)),
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    ),
    dtype=st.sampled_from([np.float64, np.float32]),
    seed=st.integers(0, 99),
)
def test_equal_to_the_last_bit(
    fun: Callable[..., Any], shape: tuple[int, ...], dtype: Any, seed: int
) -> None:
    if fun is layer_norm and llvm_version_info < (21,):
        pytest.skip("this LLVM adds four numbers in another order in each copy of a loop")
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    same(compiled(fun, MANY)(x), compiled(fun, 1)(x))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_ones_too(fun: Callable[..., Any], dtype: Any) -> None:
    x = np.random.default_rng(1).normal(size=(3001, 333)).astype(dtype)
    many, one = compiled(fun, MANY), compiled(fun, 1)
    for _ in range(3):
        same(many(x), one(x))


@pytest.mark.usefixtures("always")
def test_gradients() -> None:
    x = np.random.default_rng(2).normal(size=(30, 20))

    def slope(x: Any) -> Any:
        return wend.grad(lambda x: (softmax(x) * wnp.sin(layer_norm(x))[:, None]).sum())(x)

    def bend(x: Any) -> Any:
        return wend.grad(lambda x: wnp.sin(slope(x)).sum())(x)

    for fun in (slope, bend):
        same(compiled(fun, MANY)(x), compiled(fun, 1)(x))


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 4096, 100_000])
def test_unknown_sizes(rows: int) -> None:
    spec = [wend.TensorSpec([None, 16], np.float64)]
    x = np.random.default_rng(3).normal(size=(rows, 16))
    for fun in (chain, softmax, layer_norm):
        many = compiled(fun, MANY, input_signature=spec)
        same(many(x), compiled(fun, 1, input_signature=spec)(x))


@pytest.mark.usefixtures("always")
def test_nothing_is_written_past_the_end() -> None:
    x = np.random.default_rng(4).normal(size=(33, 17))
    with wend.config(verify_memory=True):
        for fun in FUNCTIONS:
            same(compiled(fun, MANY)(x), compiled(fun, 1)(x))


@pytest.mark.usefixtures("always")
def test_an_index_out_of_range_is_refused() -> None:
    def pick(x: Any, k: Any) -> Any:
        return wnp.exp(x)[k] * 2 + wnp.exp(x)[:1]

    x = np.zeros(100)
    with pytest.raises(IndexError):
        compiled(pick, MANY)(x, np.array([0, 100]))


def test_calls_from_many_threads() -> None:
    x = np.random.default_rng(5).normal(size=(2000, 200))
    many, expected = compiled(softmax, MANY), compiled(softmax, 1)(x)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(20):
            if many(x).tobytes() != expected.tobytes():
                wrong.append(x)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_ctrl_c_stops_a_loop_with_split_loops() -> None:
    def forever(x: Any, n: Any) -> Any:
        while n > 0:
            x = chain(x)
            n -= 1
        return x

    def ring(*_: Any) -> None:
        raise KeyboardInterrupt

    x, f = np.linspace(-1.0, 1.0, 10**6), compiled(forever, 2)
    f(x, 1)
    old = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            f(x, 10**12)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    same(f(x, 2), compiled(forever, 1)(x, 2))


# Processes
def run(program: str, before: str = "") -> str:
    """Run a program that has split loops, to its end."""
    imports = """
        import atexit, os, sys, threading
        import numpy as np
        import wend
        import wend.numpy as wnp
    """
    start = """
        wend.config(threads=3)
        x = np.linspace(-2.0, 2.0, 10**6)
        f = wend.function(lambda x: wnp.exp(-x * x) * 2 + x, backend="native")
        expected = f(x)
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(map(textwrap.dedent, (imports, before, start, program)))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fork_has_no_helpers_and_may_make_its_own() -> None:
    found = run("""
        def names():
            return sum(t.name.startswith("wend-") for t in threading.enumerate())

        first = names()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            none = names()
            ok = (f(x) == expected).all()
            g = wend.function(lambda x: wnp.cos(x) * 2 + x, backend="native")
            g(x)
            print(first, none, names(), ok, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print((f(x) == expected).all())
    """)
    assert found.split() == ["2", "0", "2", "True", "True"]


def test_an_interpreter_ends_while_helpers_sleep_or_work() -> None:
    assert run("print('end')") == "end\n"
    run("""
        def work():
            while True:
                f(x)
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        f(x)
    """)


def test_functions_run_when_the_interpreter_ends() -> None:
    before = """
        def last():
            g = wend.function(lambda x: wnp.cos(x) * 2 + x, backend="native")
            print((f(x) == expected).all(), g(x).shape)

        atexit.register(last)
    """
    assert run("", before) == "True (1000000,)\n"


def test_as_many_as_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 64)
    assert threads.thread_count() == 8
    with wend.config(threads=1):
        assert threads.thread_count() == 1
