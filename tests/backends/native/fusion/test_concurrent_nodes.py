"""Nodes that run at once: which ones, the bits of one after the other, errors and signals."""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.build import passes_of
from wend.backends.native.backend import BACKEND
from wend.backends.native.jit.llvm import engine
from wend.backends.native.rt import python_callbacks
from wend.backends.native.run import threads
from wend.numpy import special
from wend.passes.pipeline import run_passes

SIZE = 120  # a product of such matrices takes long, and BLAS computes it on the calling thread
RANDOM = np.random.default_rng(5)
A, B = (RANDOM.normal(size=(SIZE, SIZE)) for _ in range(2))


def products(a: Any, b: Any) -> Any:
    return a @ b, b @ a


def of_views(a: Any, b: Any) -> Any:
    return a.T @ b, b[::-1] @ a.T, np.swapaxes(a, 0, 1) @ b.T


def in_levels(a: Any, b: Any) -> Any:
    c, d = a @ b, b @ a
    e, f = np.tanh(c) @ d, d @ (c + 1.0)
    return e - f, c


def systems(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b), np.linalg.solve(b, a).sum(), np.linalg.det(a + b)


def decompositions(a: Any, b: Any) -> Any:
    return np.linalg.svd(a)[1], np.linalg.eigh(b + b.T)[0], np.linalg.qr(a)[1]


def host_calls(a: Any, b: Any) -> Any:
    """Python runs what is in the loops, and SciPy releases its lock."""
    x, y = np.abs(a[:8]) + 1.0, np.abs(b[:8]) + 2.0
    for _ in range(120):
        x = special.polygamma(1, x) + 1.0
    for _ in range(120):
        y = special.polygamma(2, y) + 5.0
    return x, y


def loops(a: Any, b: Any) -> Any:
    x, y, n = a[0, 0], b[:3, 0], 0
    for _ in range(40_000):
        x = np.sin(x) + 0.5
    for _ in range(20_000):
        y, n = np.cos(y) * 0.5, n + 1
    return x, y, n


def loop_and_product(a: Any, b: Any) -> Any:
    x = a[0, 0]
    for k in range(40_000):
        x = np.sin(x) + k
    return x * (a @ b)


def inside_a_loop(a: Any, b: Any) -> Any:
    for _ in range(5):
        a, b = np.tanh(a @ b), np.tanh(b @ a)
    return a - b


def accumulated(a: Any, b: Any) -> Any:
    total = np.zeros((SIZE, SIZE))
    for _ in range(3):
        total = total + a @ b
        total = total + b @ a
        a, b = a * 0.5, b * 0.5
    return total


def gradient(a: Any, b: Any) -> Any:
    return wend.grad(lambda a, b: (np.tanh(a @ b) * (b @ a)).sum(), argnums=(0, 1))(a, b)


PROGRAMS = [
    *(products, of_views, in_levels, systems, decompositions, host_calls),
    *(loops, loop_and_product, inside_a_loop),
]


def text(fun: Callable[..., Any], *args: Any, count: int = 2) -> str:
    with wend.config(threads=count):
        graph = wend.function(fun).get_concrete_function(*args).graph
        return BACKEND.text(run_passes(graph, passes_of("native")))


def calls(fun: Callable[..., Any], *args: Any, count: int = 2) -> int:
    """How many groups of nodes run at once."""
    return text(fun, *args, count=count).count("call void @wend.tasks")


def on_threads(fun: Callable[..., Any], *args: Any) -> list[Any]:
    """The results on one, two and three threads, of functions compiled anew, called twice."""
    results = []
    for count in (1, 2, 3):
        with wend.config(threads=count):
            f = wend.function(fun, backend="native")
            f(*args)
            results.append(f(*args))
    return results


def bits(results: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in wend.tree.leaves(results)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", [*PROGRAMS, accumulated, gradient])
def test_bits_of_one_after_the_other(program: Callable[..., Any]) -> None:
    one, two, three = on_threads(program, A, B)
    assert bits(one) == bits(two) == bits(three)
    if program is not gradient:
        for x, y in zip(wend.tree.leaves(two), wend.tree.leaves(program(A, B)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("program", [*PROGRAMS, gradient])
def test_long_nodes_run_at_once(program: Callable[..., Any]) -> None:
    assert calls(program, A, B) == (2 if program in (in_levels, gradient) else 1)
    assert not calls(program, A, B, count=1)


def test_what_gains_nothing_has_the_code_of_one_thread() -> None:
    def small(a: Any) -> Any:
        for _ in range(500):
            a = np.sin(a) + a
        return a @ a, a @ (a + 1.0)

    def chain(a: Any, b: Any) -> Any:
        return (a @ b) @ a @ b

    tiny = np.ones((4, 4))
    assert text(small, tiny) == text(small, tiny, count=1)
    assert not calls(chain, A, B)
    assert not calls(accumulated, A, B)


def test_products_that_blas_shares_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left alone, but where BLAS has one thread."""
    large = np.zeros((300, 300))
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("wend.backends.native.rt.linalg.blas.processors", lambda: 2)
    assert not calls(products, large, large)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert calls(products, large, large) == 1


def test_explain_names_them() -> None:
    with wend.config(threads=2):
        f = wend.function(loop_and_product, backend="native")
        f(A, B)
        (line,) = [line for line in str(f.explain()).splitlines() if "at once" in line]
    assert "the loop at " in line
    assert "dot_general at " in line


@pytest.mark.parametrize("count", [1, 2, 3])
def test_error_of_the_first_node_that_fails(count: int) -> None:
    """And what has failed does not stay."""

    def both(a: Any, b: Any, c: Any) -> Any:
        x = np.linalg.solve(a, c)
        return x, np.linalg.cholesky(b)

    definite, singular = A @ A.T + np.eye(SIZE), np.zeros((SIZE, SIZE))
    with wend.config(threads=count):
        f = wend.function(both, backend="native")
        for _ in range(3):
            f(definite, definite, B)
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                f(singular, -definite, B)
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                f(singular, definite, B)
            with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
                f(definite, -definite, B)


def test_what_may_fail_in_between_keeps_its_place() -> None:
    def between(a: Any, b: Any, small: Any) -> Any:
        x = np.linalg.solve(a, b)
        y = np.linalg.cholesky(small)
        return x, y, np.linalg.solve(b, a)

    assert not calls(between, A, B, np.eye(2))
    f = wend.function(between, backend="native")
    with wend.config(threads=2), pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        f(A, np.zeros_like(B), -np.eye(2))


@pytest.mark.parametrize("first", [True, False])
def test_signals_end_what_runs_at_once(first: bool) -> None:
    """Whichever of them goes on: the caller computes one and waits for the other."""
    trips = (10**12, 40_000) if first else (40_000, 10**12)

    def endless(x: Any, y: Any) -> Any:
        for _ in range(trips[0]):
            x = np.sin(x) + 0.5
        for _ in range(trips[1]):
            y = np.cos(y) * 0.5
        return x, y

    with wend.config(threads=2):
        f = wend.function(endless, backend="native")
        assert calls(endless, 1.0, 2.0) == 1
        timer = threading.Timer(0.2, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            f(1.0, 2.0)
        timer.join()
        same = wend.function(products, backend="native")(A, B)
        assert bits(same) == bits(on_threads(products, A, B)[0])


def test_contents_of_arguments_at_an_error() -> None:
    """What is written to an argument before the error is there after it, and no more."""

    def write(out: Any, a: Any, b: Any) -> Any:
        out[0] = 1.0
        x, y = np.linalg.solve(a, b), np.linalg.solve(b, a)
        out[1] = 2.0
        z, w = np.linalg.solve(b + a, a), np.linalg.solve(b - a, b)
        return x + y, z + w

    for a, b in ((A, np.zeros_like(B)), (A, A)):
        contents = []
        for count in (1, 2):
            with wend.config(threads=count):
                out = np.zeros(3)
                with pytest.raises(np.linalg.LinAlgError):
                    wend.function(write, backend="native")(out, a, b)
                contents.append([*out])
        assert contents[0] == contents[1] == [1.0, 0.0 if b is not A else 2.0, 0.0]


def test_results_are_not_copied() -> None:
    """Each comes with its memory, in exchange for a block, so none gathers anywhere."""
    assert "memcpy" not in text(products, A, B)

    def looped(a: Any, b: Any, n: Any) -> Any:
        for _ in range(n):
            a, b = np.tanh(a @ b), np.tanh(b @ a)
        return a - b

    with wend.config(threads=2):
        f = wend.function(looped, backend="native")
        held = []
        for trips in (2, 4, 40):
            f(A, B, trips)
            (run,) = f.get_concrete_function(A, B, trips).compiled.executables()
            held.append(run.held_memory()["arrays"])
        assert held[1] == held[2]  # the first call has its result from the system


def test_a_fork_runs_one_after_the_other() -> None:
    with wend.config(threads=2):
        f = wend.function(products, backend="native")
        expected = bits(f(A, B))
        child = os.fork()
        if child == 0:
            os._exit(0 if bits(f(A, B)) == expected else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_calls_from_several_threads() -> None:
    with wend.config(threads=2):
        f = wend.function(products, backend="native")
        expected = bits(f(A, B))
        different: list[Any] = []

        def call() -> None:
            for _ in range(10):
                if bits(f(A, B)) != expected:
                    different.append(None)

        callers = [threading.Thread(target=call) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert not different


def test_memory_is_that_of_each_function() -> None:
    with wend.config(verify_memory=True):
        for program in (in_levels, loops, systems):
            on_threads(program, A, B)


@pytest.mark.parametrize("count", [2, 3])
def test_tasks_overlap(count: int) -> None:
    """Each waits until all others run, on threads of their own."""
    threads.start(count)
    barrier = threading.Barrier(count, timeout=60)
    numbers: list[int] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    def task(context: Any, first: int, size: int, thread: int) -> None:
        barrier.wait()
        numbers.extend(range(first, first + size))

    limit = ctypes.c_int64(python_callbacks.NO_LIMIT)
    words = ctypes.create_string_buffer(python_callbacks.BYTES)
    python_callbacks.prepare(words, 0, None)
    types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 2
    run = ctypes.CFUNCTYPE(None, *types)(engine().shared_address("wend.tasks"))
    run(task, None, count, 1, count, ctypes.addressof(limit), ctypes.addressof(words))
    assert sorted(numbers) == [*range(count)]


def sum_between(a: Any, b: Any, c: Any) -> Any:
    c = np.tanh(c @ c)
    a = np.tanh(a @ a)
    a = np.tanh(a @ a)
    total = c.sum()
    return a, np.tanh(b @ c), total


def elements_between(a: Any, b: Any, c: Any) -> Any:
    x = a @ b
    y = np.tanh(c)
    z = b @ c
    return x, z, (y * y).sum()


@pytest.mark.parametrize("fun", [sum_between, elements_between])
def test_sums_have_the_bits_of_one_thread(fun: Any) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(112, 112)) / 10.0 for _ in range(3)]
    results = []
    for count in (1, 2, 3):
        with wend.config(threads=count):
            results.append(wend.function(fun, backend="native")(*arrays))
    for others in results[1:]:
        for x, y in zip(others, results[0], strict=True):
            np.testing.assert_array_equal(x, y)
