"""Ctrl-C stops a loop that runs as machine code, and leaves all as Python would."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

# 0.2 s on an idle machine; here others may be at work
PATIENCE = 2.0
FOREVER = 10**15


def native(fun: Callable[..., Any]) -> Any:
    return wend.function(fun, backend="native")


def interrupt(fun: Callable[..., Any], *args: Any, after: float = 0.05) -> list[str]:
    """Call a function, and press Ctrl-C; the notes of what it raises, soon."""

    def ring(*_: Any) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, ring)
    start = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        fun(*args)
    except KeyboardInterrupt as error:
        assert time.perf_counter() - start - after < PATIENCE
        return getattr(error, "__notes__", [])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    pytest.fail("it has ended by itself")


@native
def value(x: Any, n: Any) -> Any:
    i = 0
    while i < n:
        x = x + wnp.sin(x) * 1e-3
        i += 1
    return x


@native
def nested(x: Any, n: Any, m: Any) -> Any:
    i = 0
    while i < n:
        j = 0
        while j < m:
            x, j = wnp.cos(x), j + 1
        i += 1
    return x


@native
def arrays(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = wnp.sin(x) + 0.5 * x
    return x


@native
def endless(x: Any) -> Any:
    while x < 1.0:
        x = x * 0.5
    return x


X = np.linspace(0.1, 1.0, 300)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fun", "long", "short"),
    [
        (value, (1.0, FOREVER), (1.0, 5)),
        (nested, (1.0, FOREVER, 3), (1.0, 2, 3)),
        (nested, (1.0, 2, FOREVER), (1.0, 2, 3)),
        (nested, (1.0, FOREVER, 0), (1.0, 0, 3)),
        (arrays, (X, FOREVER), (X, 3)),
        (endless, (0.0,), (2.0,)),
    ],
)
def test_a_loop_is_interrupted_and_runs_again(fun: Any, long: Any, short: Any) -> None:
    expected = wend.function(fun.__wrapped__, backend="numpy")(*short)
    np.testing.assert_allclose(fun(*short), expected, rtol=1e-14)
    for _ in range(3):
        (note,) = interrupt(fun, *long)
        assert note.startswith("in while at test_safepoints.py:")
        np.testing.assert_allclose(fun(*short), expected, rtol=1e-14)


def test_the_note_names_the_line_of_the_loop() -> None:
    value(1.0, 1)
    line = value.__wrapped__.__code__.co_firstlineno + 3
    assert interrupt(value, 1.0, FOREVER) == [f"in while at test_safepoints.py:{line}"]


def growing(x: Any, n: Any) -> Any:
    i = 0
    while i < n:
        x = x + wnp.sin(x) * 1e-9
        i += 1
    return x


def test_the_forward_part_of_a_gradient() -> None:
    slope = native(wend.grad(growing))
    expected = slope(1.0, 4)
    for _ in range(3):
        interrupt(slope, 1.0, 3 * 10**7, after=0.02)  # some 0.3 s
        assert slope(1.0, 4) == expected


def test_the_backward_part_of_a_gradient() -> None:
    @wend.custom_vjp
    def endlessly_back(x: Any) -> Any:
        return x * 2.0

    def backward(residual: Any, ct: Any) -> Any:
        i = 0
        while i < 10**15:
            ct, i = wnp.sin(ct) + residual, i + 1
        return (ct,)

    endlessly_back.defvjp(lambda x: (x * 2.0, x), backward)
    slope = native(wend.grad(lambda x: endlessly_back(growing(x, 3))))
    slope.get_concrete_function(1.0).compiled.executable("native")
    for _ in range(2):
        (note,) = interrupt(slope, 1.0)
        assert note.startswith("in while at test_safepoints.py:")


def test_variables_hold_what_was_assigned() -> None:
    count, double = wend.Variable(0), wend.Variable(np.zeros(2))

    @native
    def fun(n: Any) -> Any:
        i = 0
        while i < n:
            count.assign_add(1)
            double.assign_add(np.full(2, 2.0))
            i += 1
        return i

    fun(1)
    for _ in range(5):
        before = int(count.value)
        interrupt(fun, FOREVER)
        after = int(count.value)
        assert after > before
        assert double.value[0] == double.value[1]
        assert double.value[0] in (2.0 * after, 2.0 * (after - 1))
        double.assign(np.full(2, 2.0 * after))
    before = int(count.value)
    assert fun(3) == 3
    assert count.value == before + 3


def test_arrays_that_variables_are_given_in_a_loop() -> None:
    """The memory of what was stored is not given back before the loop is done with it."""
    held = wend.Variable(np.zeros(2))

    @native
    def fun(n: Any) -> Any:
        i = 0
        while i < n:
            held.assign_add(np.full(2, 2.0))
            i += 1
        return held.value

    np.testing.assert_array_equal(fun(1), [2.0, 2.0])
    np.testing.assert_array_equal(fun(5), [12.0, 12.0])
    np.testing.assert_array_equal(held.value, [12.0, 12.0])


def test_python_in_a_loop_is_interrupted() -> None:
    seen: list[float] = []

    def note(x: Any) -> Any:
        seen.append(float(x))
        time.sleep(0.001)
        return x

    @native
    def fun(x: Any, n: Any) -> Any:
        i = 0
        while i < n:
            x = wend.py_function(note, wend.TensorSpec([]), x) + 1.0
            i += 1
        return x

    fun(0.0, 1)
    for _ in range(5):
        seen.clear()
        metadata = interrupt(fun, 0.0, FOREVER)
        assert len(metadata) == 1
        assert " at test_safepoints.py:" in metadata[0]
        assert seen == [float(k) for k in range(len(seen))]
    assert fun(0.0, 3) == 3.0


def test_memory_and_threads_over_many_interrupts() -> None:
    threads = threading.active_count()
    arrays(X, 1)
    for _ in range(10):
        interrupt(arrays, X, FOREVER, after=0.003)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        interrupt(arrays, X, FOREVER, after=0.003)
    # Kilobytes. An array is 2.4 of them, the tape of a run far more.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2000
    assert threading.active_count() == threads


def test_a_handler_may_raise_what_it_likes_or_nothing() -> None:
    value(1.0, 1)
    rang: list[int] = []
    old = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        start, n = time.perf_counter(), 10_000
        while time.perf_counter() - start < 0.3 or not rang:
            value(1.0, n)
            n *= 2
        assert rang
        signal.setitimer(signal.ITIMER_REAL, 0.0)

        def fail(*_: Any) -> None:
            raise ZeroDivisionError("enough")

        signal.signal(signal.SIGALRM, fail)
        with pytest.raises(ZeroDivisionError, match="enough"):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            value(1.0, FOREVER)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)


def test_threads_other_than_the_main_one_run_on() -> None:
    value(1.0, 1)
    found: list[Any] = []
    worker = threading.Thread(target=lambda: found.append(value(1.0, 3 * 10**6)))
    worker.start()
    interrupt(value, 1.0, FOREVER)
    worker.join()
    assert found == [value(1.0, 3 * 10**6)]


def test_ctrl_c_in_a_process_of_its_own(tmp_path: Path) -> None:
    program = """
        import wend

        @wend.function(backend="native")
        def fun(x):
            while x > 0.0:
                x = x + 1.0
            return x

        fun(-1.0)
        print("ready", flush=True)
        try:
            fun(1.0)
        except KeyboardInterrupt:
            print("stopped", fun(-2.0), flush=True)
        """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(program))
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (out, errors) == ("stopped -2.0\n", "")
