"""What goes wrong around a program: no memory, signals, forks, threads, the end of the process.

Each case is a program of its own, in a process of its own: it must end by itself, with the right
answer or a clear error.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.helpers.shares import sized

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 120  # seconds, until a program is said to hang

PRELUDE = """
import gc, os, resource, signal, sys, threading, time
import numpy as np
import wend, wend.numpy as wnp

def limit(megabytes):  # more than what is in use now
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

def unlimited():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def start_daemons(work):  # which do it without end, and have begun
    started = threading.Event()
    def endless():
        while True:
            started.set()
            work()
    for _ in range(3):
        threading.Thread(target=endless, daemon=True).start()
    started.wait()
"""

on_both = pytest.mark.parametrize("backend", ["native", "numpy"])
needs_on_exit = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "on_exit"), reason="needs glibc's on_exit"
)
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")


def run(tmp_path: Path, text: str, backend: str = "native", status: int = 0) -> str:
    """Run a program, which must end with a status; what it prints."""
    file = tmp_path / "program.py"
    file.write_text(PRELUDE + textwrap.dedent(text), encoding="utf-8")
    known = {**os.environ, "PYTHONPATH": str(SOURCE), "WEND_BACKEND": backend}
    known["OPENBLAS_NUM_THREADS"] = "1"  # whose threads take address space
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore::DeprecationWarning", str(file)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=known,
        check=False,
    )
    assert done.returncode == status, done.stderr[-3000:]
    assert "Fatal" not in done.stderr
    return done.stdout


@needs_proc
@on_both
def test_no_memory_for_a_tape(tmp_path: Path, backend: str) -> None:
    printed = run(
        tmp_path,
        """
        def fun(x, n):
            y, k = x, 0
            while k < n:
                y, k = wnp.sin(y) + x, k + 1
            return y.sum()

        # CPython has a SystemError where a frame finds no memory: arrays must be what does not fit.
        grad, x = wend.grad(fun), np.ones(1_000_000)
        small = grad(x, 3)
        limit(200)
        for _ in range(3):  # the first failure must leave the room for the next
            try:
                grad(x, 1000)
            except MemoryError:
                print("no memory")
            np.testing.assert_array_equal(grad(x, 3), small)
        """,
        backend,
    )
    assert printed == "no memory\n" * 3


@needs_proc
def test_no_memory_while_memory_is_verified(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
        wend.config(verify_memory=True)

        @wend.function
        def fun(n):
            big = wnp.zeros(n) + 1.0
            return (big * 2.0).sum() + wnp.sort(big)[0]

        fun(10), fun(20)
        limit(200)
        for _ in range(3):
            try:
                fun(10**9)
            except MemoryError:
                print("no memory", fun(10))
        """,
    )
    assert printed == "no memory 21.0\n" * 3


@needs_proc
@on_both
def test_no_memory_for_an_array(tmp_path: Path, backend: str) -> None:
    printed = run(
        tmp_path,
        """
        held = wend.Variable(1.0)

        @wend.function
        def fun(n):
            held.assign(2.0)
            big = wnp.zeros(n) + 1.0
            held.assign(3.0)
            return big.sum()

        fun(10)
        held.assign(1.0)
        limit(200)
        try:
            fun(10**9)
        except MemoryError:
            print("no memory", float(held.value))
        print(fun(10), float(held.value))
        """,
        backend,
    )
    assert printed == "no memory 2.0\n10.0 3.0\n"


def test_deep_nests_are_compiled_or_refused(tmp_path: Path) -> None:
    """Loops in loops in loops: a limit of Python's stack is an error, not a crash."""
    printed = run(
        tmp_path,
        """
        def nest(depth):
            def body(x):
                inner = nest(depth - 1) if depth else (lambda x: wnp.sin(x))
                return wend.fori_loop(0, 1, lambda k, x: inner(x), x)
            return body

        for depth in (5, 30, 400):
            try:
                value = wend.function(nest(depth))(1.0)
                print(depth, np.isclose(value, np.sin(1.0)))
            except RecursionError as error:
                print(depth, "refused")
        print(wend.function(nest(3))(1.0) == np.sin(1.0))
        """,
    )
    lines = printed.splitlines()
    assert lines[0] == "5 True"
    assert lines[1] == "30 True"
    assert lines[2] in ("400 True", "400 refused")
    assert lines[3] == "True"


def test_a_long_chain_of_operations(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
        def fun(x):
            for _ in range(3000):
                x = x * 1.0001
            return x

        print(np.isclose(wend.function(fun)(1.0), 1.0001**3000))
        print(np.isclose(wend.grad(fun)(1.0), 1.0001**3000))
        """,
        "numpy",
    )
    assert printed == "True\nTrue\n"


@on_both
def test_interrupts_at_random_moments(tmp_path: Path, backend: str) -> None:
    """A thousand: while tracing, compiling, running, assigning. Afterwards all is as it was."""
    printed = run(
        tmp_path,
        f"""
        import random
        trips = wend.Variable(0)
        double = wend.Variable(0)

        def fun(x, n):
            trips.assign_add(1)  # the two always change together, but for an interrupt between
            double.assign_add(2)
            k = 0
            while k < n:
                x, k = wnp.sin(x) + 0.1, k + 1
            return x.sum()

        def ring(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, ring)
        moments, interrupted = random.Random(7), 0
        run, grad = wend.function(fun), wend.grad(lambda x: (wnp.sin(x) * x).sum())
        x = np.ones(50)
        expected, slope = run(x, 300), grad(x)
        end = time.monotonic() + {20 if backend == "native" else 10}
        calls = 0
        while interrupted < 1000 and time.monotonic() < end:
            calls += 1
            fresh = calls % 50 == 0
            before = int(trips.value), int(double.value)
            moment = moments.uniform(1e-6, 0.02 if fresh else 5e-4)
            try:
                # Again and again: Python drops what is raised while an object is finalised.
                signal.setitimer(signal.ITIMER_REAL, moment, 0.5)
                again = wend.function(fun) if fresh else run
                found = again(x, 300)
                wend.grad(lambda x: (wnp.sin(x) * x).sum())(x) if fresh else grad(x)
                while True:
                    run(x, 300)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            one, two = int(trips.value), int(double.value)
            assert one - before[0] >= 0 and 2 * one - two in (0, 2), (before, one, two)
            if 2 * one != two:  # it came between the two
                double.assign(2 * one)
        assert run(x, 300) == expected, "another result"
        np.testing.assert_array_equal(grad(x), slope)
        assert threading.active_count() == 1
        print(interrupted >= 300, calls)
        """,
        backend,
    )
    assert printed.startswith("True"), printed


def test_a_fork_after_compiling(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
        fun = wend.function(lambda x: (wnp.sin(x) @ x).sum())
        x = np.linspace(0.0, 1.0, 200 * 200).reshape(200, 200)
        expected = fun(x), wend.grad(fun)(x)
        for _ in range(3):
            child = os.fork()
            if not child:
                code = 1
                try:
                    same = fun(x) == expected[0] and (wend.grad(fun)(x) == expected[1]).all()
                    new = wend.function(lambda x: wnp.cos(x).sum() + 1.0)  # compiled in the child
                    code = 0 if same and np.isclose(new(x), np.cos(x).sum() + 1.0) else 2
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), fun(x) == expected[0])
        """,
    )
    assert printed == "0 True\n" * 3


def test_threads_that_call_and_compile_at_once(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
        shared = wend.function(lambda x: wnp.sin(x).sum())
        grad = wend.grad(lambda x: (wnp.tanh(x) * x).sum())
        wrong, start = [], threading.Barrier(8)

        def work(number):
            start.wait()
            for k in range(1, 13):
                x = np.full(k * 10 + number, 0.5)
                if not np.isclose(shared(x), np.sin(x).sum()):
                    wrong.append("value")
                if grad(x).shape != x.shape:
                    wrong.append("gradient")
                own = wend.function(lambda x, k=k: x * float(k) + number)
                if not np.array_equal(own(x), x * float(k) + number):
                    wrong.append("own")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(wrong)
        """,
    )
    assert printed == "[]\n"


@on_both
def test_the_process_ends_while_threads_run(tmp_path: Path, backend: str) -> None:
    printed = run(
        tmp_path,
        """
        def fun(x, n):
            k = 0
            while k < n:
                x, k = wnp.sin(x) + 0.1, k + 1
            return x

        run = wend.function(fun)
        run(np.ones(10), 2)
        start_daemons(lambda: run(np.ones(10), 10_000))
        time.sleep(0.05)
        print("ends")
        """,
        backend,
    )
    assert printed == "ends\n"


@on_both
@pytest.mark.parametrize("returned", ["x", "(x, {'y': x})"])
def test_the_process_ends_while_threads_are_in_host_calls(
    tmp_path: Path, returned: str, backend: str
) -> None:
    for _ in range(sized(1, 3)):
        printed = run(
            tmp_path,
            f"""
            def host(x):
                return {returned}

            @wend.function
            def fun(x, n):
                specs = wend.TensorSpec((), float)
                specs = {returned.replace("x", "specs")}
                k = 0
                while k < n:
                    wend.py_function(host, specs, x)
                    k = k + 1
                return x

            fun(1.0, 1)
            fun(1.0, 1)
            start_daemons(lambda: fun(1.0, 1000))
            time.sleep(0.02)
            print("ends")
            """,
            backend,
        )
        assert printed == "ends\n"


@needs_on_exit
def test_host_calls_when_the_interpreter_has_ended(tmp_path: Path) -> None:
    """The process goes on for some seconds; loops of several lengths come to a call meanwhile."""
    run(
        tmp_path,
        """
        import ctypes

        @wend.function
        def fun(x, n):
            while x < 2.0:
                y, k = x, 0
                while k < n:
                    y, k = wnp.sin(y), k + 1
                x = wend.py_function(lambda x: x, wend.TensorSpec((), float), y)
            return x

        def work(n):
            started.wait()
            fun(1.0, n)

        started = threading.Barrier(4)
        fun(2.0, 1)
        for n in (5_000_000, 20_000_000, 80_000_000):
            threading.Thread(target=work, args=(n,), daemon=True).start()
        started.wait()
        time.sleep(0.02)
        ctypes.CDLL(None).on_exit(ctypes.CDLL(None).sleep, None)
        sys.exit(3)  # what `sleep` is given
        """,
        status=3,
    )


def test_exit_from_a_host_call(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        """
        def leave(x):
            print("leaves")
            sys.exit(0)

        @wend.function
        def fun(x):
            for _ in range(3):
                wend.py_function(leave, None, x)
            return x

        fun(1.0)
        """,
    )
    assert printed == "leaves\n"


def test_functions_that_go_while_the_interpreter_ends(tmp_path: Path) -> None:
    """Objects that outlive the modules: in cycles, in globals, in `atexit`."""
    printed = run(
        tmp_path,
        """
        import atexit

        class Holder:
            def __init__(self):
                self.me, self.fun = self, wend.function(lambda x: wnp.sin(x).sum())
                self.fun(np.ones(5))
                self.value, self.pull = wend.vjp(self.fun, np.ones(5))

            def __del__(self):
                pass

        held = [Holder() for _ in range(3)]
        variable = wend.Variable(np.ones(3))
        step = wend.function(lambda: variable.assign(variable * 2.0))
        step()
        atexit.register(lambda: print(step().sum()))
        """,
    )
    assert printed == "12.0\n"
