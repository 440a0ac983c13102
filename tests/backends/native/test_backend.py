"""The native backend against the numpy backend: value, gradient, gradient of the gradient."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.arrays import POWERS_ARE_ROOTS
from tests.helpers.graphs import traced
from tests.helpers.random_programs import programs, staged
from tests.helpers.threads import in_threads

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND
from wend.ir.graph import Graph
from wend.ir.types import tensor
from wend.ops import elementwise
from wend.ops.build import Build

F64, I64, BOOL = tensor("f8"), tensor("i8"), tensor("?")


def newton(a: Any) -> Any:
    def improve(c: Any) -> Any:
        x, _ = c
        y = 0.5 * (x + a / x)
        return y, wnp.abs(y - x)

    return wend.while_loop(lambda c: c[1] > 1e-12, improve, (1.0 + 0.0 * a, 1.0 + 0.0 * a))[0]


def chains(x: Any, a: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return wnp.tanh(wnp.exp(-x * a) + wnp.log(1.5 + wnp.sin(x) * wnp.cos(x)))

    return wend.fori_loop(0, 9, step, x)


def fibonacci(a: Any, b: Any) -> Any:
    return wend.fori_loop(0, 12, lambda i, c: (c[1], c[0] * 0.5 + c[1]), (a, b))[0]


def branches(x: Any) -> Any:
    def step(x: Any) -> Any:
        return wend.cond(
            x < 2.0, lambda x: x * x + 1.0, lambda x: wnp.exp(0.1 * x) * wnp.sin(x) + 9.0, x
        )

    return wend.while_loop(lambda x: x < 8.0, step, x)


def triangle(x: Any, n: Any) -> Any:
    """Inner loops of 0, 1, 2, … trips."""

    def outer(c: Any) -> Any:
        i, x = c
        inner = wend.while_loop(
            lambda d: d[0] < i, lambda d: (d[0] + 1, wnp.sin(d[1]) * d[1] + 0.1), (0, x)
        )
        return i + 1, inner[1] + wnp.cos(x)

    return wend.while_loop(lambda c: c[0] < n, outer, (0, x))[1]


def loop_in_branch(x: Any) -> Any:
    def looping(x: Any) -> Any:
        return wend.while_loop(lambda x: x < 20.0, lambda x: x * x + 0.5, x)

    def step(i: Any, x: Any) -> Any:
        return wend.cond(x < 3.0, looping, lambda x: wnp.log(x) + 0.2, x)

    return wend.fori_loop(0, 5, step, x)


def descent(a: Any) -> Any:
    """A gradient inside a loop, of a loop."""

    def cost(x: Any) -> Any:
        y = wend.fori_loop(0, 4, lambda i, y: 0.5 * (y + a / y), x)
        return (y - 1.2) ** 2 + 0.1 * x

    return wend.fori_loop(0, 6, lambda i, x: x - 0.1 * wend.grad(cost)(x), 1.0 + 0.0 * a)


def flags(x: Any) -> Any:
    def step(c: Any) -> Any:
        x, up, count = c
        y = wend.cond(up, lambda x: x * 1.7, lambda x: x / 3.0, x)
        return y, wnp.logical_xor(y > 4.0, up), count + 1

    x, up, count = wend.while_loop(lambda c: c[2] < 9, step, (x, True, 0))
    return x + wnp.where(up, 1.0, 2.0) * count


def rounding(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        y = wnp.maximum(x, 1.3) * wnp.abs(x - 2.2) + wnp.minimum(x * x, 3.0)
        return y - wnp.floor(y) + wnp.sqrt(y) + wnp.remainder(x, 0.7)

    return wend.fori_loop(0, 6, step, x)


CASES = {
    "square until 8": (lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x), (1.7,)),
    "zero trips": (lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x), (9.0,)),
    "newton": (newton, (2.5,)),
    "chains": (chains, (0.4, 0.9)),
    "fibonacci": (fibonacci, (1.0, 1.5)),
    "branches": (branches, (0.3,)),
    "triangle": (lambda x: triangle(x, 6), (0.8,)),
    "triangle, no trips": (lambda x: triangle(x, 0), (0.8,)),
    "loop in branch": (loop_in_branch, (1.1,)),
    "descent": (descent, (1.4,)),
    "flags": (flags, (1.1,)),
    "rounding": (rounding, (1.9,)),
    **{
        f"c c a, {trips} times": (
            lambda c, a, trips=trips: wend.fori_loop(0, trips, lambda i, c: c * c * a, c),
            (1.1, 0.7),
        )
        for trips in range(4)
    },
}


def run_both(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    found = []
    for backend in ("numpy", "native"):
        with wend.config(backend=backend):
            found.append(fun(*args))
    return found[0], found[1]


def agree(fun: Callable[..., Any], args: tuple[Any, ...], digits: float = 1e-12) -> None:
    expected, found = run_both(wend.function(fun), args)
    for a, b in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
        assert type(a) is type(b)
        np.testing.assert_allclose(b, a, rtol=digits, atol=digits)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_orders(name: str) -> None:
    fun, args = CASES[name]
    agree(fun, args)
    first = wend.grad(fun, tuple(range(len(args))))
    agree(first, args)
    agree(wend.grad(lambda *args: sum(first(*args))), args, 1e-11)


def test_third_order() -> None:
    agree(wend.grad(wend.grad(wend.grad(chains))), (0.4, 0.9), 1e-10)
    agree(wend.grad(wend.grad(wend.grad(lambda x: triangle(x, 4)))), (0.8,), 1e-10)


@given(programs(depth=3, scalars_only=True))
def test_random_programs(program: Any) -> None:
    """Straight lines, loops and branches in one another."""

    def fun(x: Any, y: Any) -> Any:
        return staged(program)(x, y, np.zeros(3))

    for order in (fun, wend.grad(fun), wend.grad(lambda x, y: wend.grad(fun)(x, y), 1)):
        agree(order, (0.3, 1.1), 1e-11)


# What single operations mean
EDGES = [0, 1, -1, 2, -7, 13, 64, 63, np.iinfo(np.int64).min, np.iinfo(np.int64).max]
REALS = [0.0, -0.0, 1.5, -2.5, 0.5, 7.25, -7.25, 1e300, -1e-310, np.inf, -np.inf, np.nan, 1e19]


def operation(op: Any, *types: Any, **attrs: Any) -> Graph:
    b = Build("operation")
    params = [b.param(type) for type in types]
    return b.finish([b.emit(op, *params, **attrs)])


def check_operation(op: Any, types: tuple[Any, ...], samples: Any, **attrs: Any) -> None:
    run = BACKEND.compile(operation(op, *types, **attrs))
    for sample in samples:
        given = [type.dtype.type(x) for type, x in zip(types, sample, strict=True)]
        with np.errstate(all="ignore"):
            expected = op.kernel(*given, **attrs)
        (found,) = run(given)
        assert type(found) is type(expected)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0, err_msg=str(given))
            assert np.signbit(found) == np.signbit(expected) or np.isnan(expected), given
        else:
            assert found == expected, given


def pairs(values: Any) -> list[Any]:
    return [(x, y) for x in values for y in values]


INTEGER_OPS = (
    *("add", "sub", "mul", "floor_divide", "remainder", "maximum", "minimum", "bit_and"),
    *("bit_or", "bit_xor", "shift_left", "shift_right", "eq", "ne", "lt", "le", "gt", "ge"),
)
REAL_OPS = (
    *("add", "sub", "mul", "div", "floor_divide", "remainder", "eq", "ne", "lt", "le", "gt", "ge"),
    "atan2",
)
ONE_REAL = (
    *("neg", "reciprocal", "abs", "sign", "sqrt", "floor", "ceil", "trunc", "rint", "isnan"),
    *("isinf", "isfinite", "stop_gradient"),
)
BOOL_OPS = (
    *("maximum", "minimum", "bit_and", "bit_or", "bit_xor"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
)


@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integers(name: str) -> None:
    check_operation(getattr(elementwise, name), (I64, I64), pairs(EDGES))


@pytest.mark.parametrize("name", ["neg", "abs", "sign", "bit_not", "stop_gradient"])
def test_one_integer(name: str) -> None:
    check_operation(getattr(elementwise, name), (I64,), [(x,) for x in EDGES])


@pytest.mark.parametrize("name", REAL_OPS)
def test_reals(name: str) -> None:
    check_operation(getattr(elementwise, name), (F64, F64), pairs(REALS))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes(name: str) -> None:
    # Which zero of two wins is the processor's choice in NumPy too.
    samples = [(x, y) for x, y in pairs(REALS) if x != 0 or y != 0]
    check_operation(getattr(elementwise, name), (F64, F64), samples)


@pytest.mark.parametrize("name", ONE_REAL)
def test_one_real(name: str) -> None:
    check_operation(getattr(elementwise, name), (F64,), [(x,) for x in REALS])


@pytest.mark.parametrize("name", BOOL_OPS)
def test_bools(name: str) -> None:
    check_operation(getattr(elementwise, name), (BOOL, BOOL), pairs([False, True]))


@pytest.mark.parametrize("name", ["bit_not", "stop_gradient"])
def test_one_bool(name: str) -> None:
    check_operation(getattr(elementwise, name), (BOOL,), [(False,), (True,)])


FUNCTIONS = (
    *("sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh"),
    *("sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "cbrt"),
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check_operation(getattr(elementwise, name), (F64,), [(x,) for x in REALS])
    check_operation(getattr(elementwise, name), (F64,), [(x,) for x in np.linspace(-3.0, 3.0, 61)])


def test_power() -> None:
    samples = pairs([*REALS, 2.0, 3.0])
    if not POWERS_ARE_ROOTS:
        samples = [(x, y) for x, y in samples if y != 0.5]
    check_operation(elementwise.pow, (F64, F64), samples)


def test_c_functions_stay_what_they_are() -> None:
    """LLVM knows `exp2` of a small integer as `ldexp`, `pow` of 10 as `exp10`, …"""

    def fun(x: Any) -> Any:
        flag = wnp.where(x > 1.0, 1.0, 0.0)
        return wnp.exp2(flag) + 2.0**flag + 10.0**x + x**3.0 + wnp.log2(8.0 * x)

    agree(fun, (1.5,))


@pytest.mark.parametrize("source", [F64, I64, BOOL])
@pytest.mark.parametrize("target", [F64, I64, tensor("u8"), BOOL])
def test_conversion(source: Any, target: Any) -> None:
    samples = {"f": REALS, "i": EDGES, "b": [False, True]}[source.dtype.kind]
    check_operation(elementwise.cast, (source,), [(x,) for x in samples], dtype=target.dtype)


@given(st.booleans(), st.floats(), st.floats())
def test_select(flag: bool, x: float, y: float) -> None:
    check_operation(elementwise.select, (BOOL, F64, F64), [(flag, x, y)])


def test_is_loaded_only_when_asked_for() -> None:
    code = "import sys, wend; assert 'wend.backends.native.jit.llvm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


NUMBERS = [0.3, -0.0, 1.5, float("nan"), -2.25]


def test_branches_of_numbers_are_a_table() -> None:
    """An item of a list of Python's numbers is read, not looked for in branches."""

    def fun(x: Any, i: Any) -> Any:
        return wend.switch(i, [lambda v=v: v for v in NUMBERS]) * x

    assert "switch" not in BACKEND.text(traced(fun, 1.0, 2, optimize=True))
    for index in range(len(NUMBERS)):
        agree(fun, (1.0, index), 0)
        agree(wend.grad(fun), (1.0, index), 0)


# Calls
def loop(x: Any) -> Any:
    return wend.while_loop(lambda v: v < 20.0, lambda v: v + 0.1 * wnp.sin(v) + 0.2, x)


def test_a_chain_of_any_length_is_written_in_loops_of_bounded_depth() -> None:
    def chain(x: Any) -> Any:
        y = x
        for k in wend.unroll(range(700)):
            y = y * (1.0 + k * 1e-4) + x
        return y

    x = np.linspace(-1.0, 1.0, 5)
    native, oracle = (wend.function(chain, backend=name) for name in ("native", "numpy"))
    np.testing.assert_array_equal(native(x), oracle(x))
    np.testing.assert_array_equal(native(x[:0]), x[:0])


def test_results_are_numpy_scalars() -> None:
    fun = wend.function(lambda x, n, b: (x + 1.0, n + 1, np.logical_not(b)), backend="native")
    found = fun(np.array(1.0), np.int64(2), True)
    assert [type(value) for value in found] == [np.float64, np.int64, np.bool_]
    assert found == (2.0, 3, False)


def test_many_calls_keep_memory_constant() -> None:
    code = """
import resource, wend, wend.numpy as wnp
fun = wend.function(
    lambda x: wend.while_loop(lambda v: v < 3.0, lambda v: v + 0.1 * wnp.sin(v) + 0.2, x),
    backend="native")
concrete = wend.grad(fun).get_concrete_function(0.1)
run = concrete.compiled.executable("native")
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(1000): run([0.1])
before = peak()
for _ in range(100_000): run([0.1])
assert peak() - before < 2000, (before, peak())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_gradient_in_a_loop_keeps_memory_constant() -> None:
    """The records of an inner loop are given back when the outer one goes on."""

    def cost(x: Any) -> Any:
        return wend.fori_loop(0, 100, lambda i, y: 0.5 * (y + 2.0 / y), x)

    fun = wend.function(
        lambda x, n: wend.fori_loop(0, n, lambda i, x: x - 0.1 * wend.grad(cost)(x), x),
        backend="native",
    )
    run = fun.get_concrete_function(1.0, 5).compiled.executable("native")
    run([1.0, 20_000])
    assert all(space.arena_bytes() < 100_000 for space in run._workspaces.all())  # type: ignore[attr-defined]


def test_two_threads_at_once() -> None:
    gradient = wend.value_and_grad(wend.function(loop, backend="native"))
    starts = np.linspace(0.1, 5.0, 40)
    expected = [gradient(x) for x in starts]
    found = in_threads(4, lambda _: [[gradient(x) for x in starts] for _ in range(30)])
    assert all(run == expected for runs in found for run in runs)


def test_threads_that_compile_at_once() -> None:
    def work(number: int) -> Any:
        fun = wend.function(lambda x: loop(x) * number, backend="native")
        return wend.grad(fun)(1.0)

    one = wend.grad(wend.function(loop, backend="numpy"))(1.0)
    np.testing.assert_allclose(in_threads(8, work), one * np.arange(8), rtol=1e-12)


def test_no_memory_is_an_error() -> None:
    code = """
import resource, wend
fun = wend.function(
    lambda x: wend.while_loop(lambda v: v < 1e9, lambda v: v + 1.0 + 1.0 / v, x), backend="native")
run = wend.grad(fun)
run(9.9e8)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (1 << 27)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    run(1.0)
except MemoryError as error:
    assert "records" in str(error), error
else:
    raise AssertionError("there was memory")
assert run(9.99e8) == run(9.99e8)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("sizes", [(2**40,), (2**61,), (2**62 + 1,), (2**33, 2**31)])
def test_arrays_that_are_too_large_for_any_memory_are_an_error(sizes: tuple[int, ...]) -> None:
    fun = wend.function(lambda x, *sizes: wnp.ones(sizes) * x, backend="native")
    assert fun(2.0, *(np.int64(1) for _ in sizes)) == 2.0
    with pytest.raises(MemoryError, match=r"test_backend\.py:\d+: no memory for an array"):
        fun(2.0, *map(np.int64, sizes))
    assert fun(2.0, *map(np.int64, (*sizes[1:], 0))).size == 0


@pytest.mark.parametrize("sizes", [(-3,), (2, -1), (-2, -3)])
@pytest.mark.parametrize("made", [wnp.ones, lambda s: wnp.broadcast_to(wnp.ones(()), s)])
def test_negative_sizes_are_refused_as_by_numpy(sizes: tuple[int, ...], made: Any) -> None:
    given = tuple(map(np.int64, sizes))
    for result in (lambda s: made(s) * 2.0, lambda s: wnp.sum(made(s) * 2.0)):
        with pytest.raises(ValueError, match=r"non-negative|negative dimensions"):
            wend.function(lambda *s, result=result: result(s), backend="native")(*given)


@pytest.mark.filterwarnings("ignore::wend.RetraceWarning")
@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="it tells how much memory is used"
)
def test_functions_that_are_thrown_away_give_their_memory_back():
    def used():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def throw_away(count):
        for k in range(count):
            wend.function(lambda x, k=k: x * k, backend="native")(1.0)

    throw_away(200)  # what caches of a fixed size hold is there then
    before = used()
    throw_away(100)
    assert used() - before < 100 * 30_000  # the passes of a module alone hold 55 KiB
