"""Large results take their memory along, and it goes round."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import queue
import random
import resource
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.jit.llvm import engine
from wend.backends.native.rt import blocks
from wend.backends.native.rt.pool import FIRST_LARGE_CLASS

SIZE = 10_000  # numbers of 8 bytes: well above what is large


def native(fun: Callable[..., Any]) -> Any:
    return wend.function(fun, backend="native")


def repeated(fun: Any, *args: Any) -> Any:
    """The results of a call that is made without Python between."""
    for _ in range(3):
        fun(*args)
    return fun(*args)


def took_its_block(x: np.ndarray) -> bool:
    """Whether it is the memory that native code wrote it to."""
    return ctypes.c_int64.from_address(x.ctypes.data + blocks.CLASS).value >= FIRST_LARGE_CLASS


def kept() -> int:
    count = ctypes.CFUNCTYPE(ctypes.c_int64)(engine().shared_address("wend.block.kept"))
    return int(count())


def stepped(x: Any) -> Any:
    for _ in range(3):
        x = wnp.sin(x) + 0.5
    return x


X = np.linspace(0.0, 1.0, SIZE)
RESULTS: dict[str, Callable[[Any], Any]] = {
    "of a nest": lambda x: x * 2.0 + 1.0,
    "of one number": lambda x: wnp.full((SIZE,), 2.5) * x[0],
    "of a product": lambda x: wnp.reshape(x, (100, 100)) @ wnp.reshape(x, (100, 100)),
    "of a loop": stepped,
    "of a branch": lambda x: wend.cond(x[0] < 5.0, lambda: x * 2.0, lambda: x * 3.0),
    "of a host call": lambda x: wnp.fmod(x * 9.0, 2.0),
    "reshaped": lambda x: wnp.reshape(x + 1.0, (2, -1)),
    "of other dtypes": lambda x: x > 0.5,
    "changed in place": lambda x: changed(x + 1.0),
}


def changed(x: Any) -> Any:
    x[1] = 7.0
    return x


@pytest.mark.parametrize("what", RESULTS)
def test_a_large_result_is_not_copied(what: str) -> None:
    x = np.tile(X, 3) if what == "of other dtypes" else X
    fun = native(RESULTS[what])
    expected = fun(x)
    found = repeated(fun, x)
    assert took_its_block(found)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, np.asarray(RESULTS[what](x)), rtol=1e-12)


def test_a_small_one_is_numpys() -> None:
    fun = native(lambda x: x + 1.0)
    first = repeated(fun, X[:500])
    assert first.flags.owndata
    second = fun(X[:500])
    first[:] = 0.0
    np.testing.assert_array_equal(second, X[:500] + 1.0)


def test_what_others_have_is_copied() -> None:
    constant = np.arange(float(SIZE))
    fun = native(lambda x: (x, x + 1.0, wnp.array(constant), x))
    for _ in range(4):
        first, second, third, fourth = fun(X)
        addresses = {x.ctypes.data for x in (first, second, third, fourth, X, constant)}
        assert len(addresses) == 6
        first[:], second[:], third[:] = 1.0, 2.0, 3.0
        np.testing.assert_array_equal(fourth, X)
        np.testing.assert_array_equal(fun(X)[2], np.arange(float(SIZE)))
    assert X[-1] == 1.0


def test_one_array_that_is_two_results() -> None:
    @native
    def fun(x: Any) -> Any:
        y = x * 2.0
        return y, y, {"again": wnp.reshape(y, (10, -1))}

    a, b, c = repeated(fun, X)
    a[:] = 0.0
    b[:] = 1.0
    np.testing.assert_array_equal(c["again"].reshape(-1), X * 2.0)


def test_memory_goes_round() -> None:
    fun = native(lambda x: x + 1.0)
    repeated(fun, X)
    gc.collect()  # cycles that other tests have left hold memory of ours
    many = 2 * blocks.MAX_CACHED_BLOCKS
    places = [fun(X).ctypes.data for _ in range(2 * many)]
    assert len(set(places)) <= many  # how many are apart depends on what other tests have left
    z = fun(X)
    other = fun(z)
    assert other.ctypes.data != z.ctypes.data
    np.testing.assert_array_equal(z, X + 1.0)
    np.testing.assert_array_equal(other, z + 1.0)


def test_what_is_kept_has_a_bound() -> None:
    fun = native(lambda x: x + 1.0)
    for size in (20_000, 1_000_000, 3_000_000):
        x = np.zeros(size)
        repeated(fun, x)
        found = [fun(x) for _ in range(80 if size < 10**6 else 12)]
        del found
        gc.collect()
        assert kept() <= blocks.MAX_CACHED_BYTES
    assert kept() > 0
    huge = np.zeros(blocks.MAX_CACHED_BYTES // 8 + 1)
    before = kept()
    repeated(fun, huge)
    assert kept() <= before


def test_arrays_are_as_numpys_are() -> None:
    fun = native(lambda x: x + 1.0)
    y = repeated(fun, X)
    flags = y.flags
    assert flags.owndata
    assert flags.writeable
    assert flags.aligned
    assert flags.c_contiguous
    assert y.base is None
    assert y.ctypes.data % 64 == 0
    for other in (copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y))):
        np.testing.assert_array_equal(other, X + 1.0)
    del other
    view = y[5:]
    del y
    np.testing.assert_array_equal(view, X[5:] + 1.0)
    for size in (3 * SIZE, SIZE // 2, 3, 0, SIZE):
        z = fun(X)
        z.resize(size, refcheck=False)
        np.testing.assert_array_equal(z[: min(size, SIZE)], X[: min(size, SIZE)] + 1.0)
        z[:] = 1.0
        del z
    np.testing.assert_array_equal(fun(X), X + 1.0)


def test_what_the_backward_run_reads_stays_when_a_result_is_changed() -> None:
    def fun(x: Any) -> Any:
        for _ in range(4):
            x = wnp.exp(-x)
        return x

    with wend.config(backend="native"):
        expected = wend.vjp(fun, X)[1](np.ones(SIZE))[0]
        pulls = []
        for k in range(6):
            y, pull = wend.vjp(native(fun), X)
            y[:] = float(k)
            pulls.append(pull)
        for pull in pulls:
            np.testing.assert_allclose(pull(np.ones(SIZE))[0], expected, rtol=1e-13)


def test_pairs_give_their_arrays_too() -> None:
    """A forward run hands out lists, which takes the long way."""

    @native
    def fun(x: Any, n: Any) -> Any:
        return wend.fori_loop(0, n, lambda i, x: wnp.tanh(x) * 1.1, x) * 2.0

    with wend.config(backend="native"):
        for _ in range(4):
            y, pull = wend.vjp(fun, X, 5)
            assert took_its_block(y)
            (found, _) = pull(np.ones(SIZE))
        assert took_its_block(found)


def test_failing_calls_leave_all_in_order() -> None:
    @native
    def fun(x: Any, k: Any) -> Any:
        y = x * 2.0
        return y, x[k] + y

    repeated(fun, X, 1)
    for _ in range(5):
        with pytest.raises(IndexError):
            fun(X, SIZE)
        first, second = fun(X, 2)
        np.testing.assert_array_equal(first, X * 2.0)
        np.testing.assert_array_equal(second, X[2] + X * 2.0)


def test_patterns_are_looked_at_where_they_are_asked_for() -> None:
    with wend.config(verify_memory=True, backend="native"):
        found = repeated(wend.function(lambda x: x + 1.0), X)
    assert not took_its_block(found)
    np.testing.assert_array_equal(found, X + 1.0)


def test_any_order_of_calls_and_of_what_is_freed() -> None:
    rng = random.Random(5)
    one = native(lambda x, k: x + k)
    two = native(lambda x, k: (x * k, wnp.concatenate([x, x * k])))
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(2000):
        size = rng.choice([300, 508, 512, 700, 2000, 2049, 2560, 5000, 5001, 40_000])
        x, k = X[:1].repeat(size) + rng.randrange(9), float(rng.randrange(100))
        if rng.random() < 0.5:
            held.append((one(x, k), x + k))
        else:
            a, b = two(x, k)
            held += [(a, x * k), (b, np.concatenate([x, x * k]))]
        while len(held) > rng.randrange(1, 30):
            found, expected = held.pop(rng.randrange(len(held)))
            np.testing.assert_array_equal(found, expected)


def test_many_calls_take_no_memory() -> None:
    fun = native(lambda x: (x + 1.0, x * 2.0))
    grad = wend.grad(lambda x: wnp.sum(wend.fori_loop(0, 3, lambda i, y: wnp.sin(y), x)))

    def run(count: int) -> int:
        for _ in range(count):
            fun(X), grad(X)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with wend.config(backend="native"):
        run(300)
        before = run(100)
        assert run(3000) - before < (4096 if sys.platform != "darwin" else 4096 * 1024)


def test_threads_hand_arrays_to_each_other() -> None:
    """Some are freed by a thread while others run native code without the interpreter's lock."""
    fun = native(lambda x, k: wnp.sin(x) * 0.0 + k)
    x = np.zeros(30_000)
    repeated(fun, x, 1.0)
    passed: queue.Queue[tuple[np.ndarray, float]] = queue.Queue()
    wrong: list[float] = []

    def work(number: int) -> None:
        for k in range(200):
            value = float(1000 * number + k)
            passed.put((fun(x, value), value))
            found, expected = passed.get()
            if not (found == expected).all():
                wrong.append(expected)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
