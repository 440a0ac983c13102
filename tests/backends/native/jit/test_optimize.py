"""Large functions compile in a time that grows with them, and compute what small ones do."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.jit.llvm import engine
from wend.backends.native.jit.optimize import MAX_INLINED_CALLS, MAX_INLINED_CALLS_OUTSIDE_LOOPS
from wend.backends.native.math.vector_variants import CALLED_SUFFIX
from wend.backends.native.module import write
from wend.passes.pipeline import OPTIMIZE, run_passes


def chain(count: int):
    def program(x):
        for k in wend.unroll(range(count)):
            x = wnp.sin(x) * 0.5 + 0.1 * k
        return wnp.sum(x)

    return program


def sums(count: int):
    """A loop for each step, for a running sum is no part of another loop."""

    def program(x):
        for k in wend.unroll(range(count)):
            x = wnp.cumsum(x) * 0.04 + 0.1 * k
        return wnp.sum(x)

    return program


def text_of(fun, x) -> str:
    graph = wend.function(fun).get_concrete_function(x).graph
    return write(run_passes(graph, OPTIMIZE)).text


def functions(text: str) -> list[str]:
    return [f.name for f in engine().optimized(text).functions if not f.is_declaration]


MANY = 128  # loops; their function is cut into parts
VECTOR = np.linspace(0.0, 1.0, 50)
PROGRAMS = {"numbers": (chain, 0.3), "arrays": (chain, VECTOR), "sums": (sums, VECTOR)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("make", "x"), PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("count", [3, MANY + 2])
def test_it_computes_what_numpy_does(make, x, count: int) -> None:
    native = wend.value_and_grad(make(count))
    with wend.config(backend="native"):
        value, slope = native(x)
    with wend.config(backend="numpy"):
        expected, expected_slope = native(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-12)


def test_many_calls_are_calls() -> None:
    few, many = (text_of(chain(count), 0.3) for count in (3, MAX_INLINED_CALLS + 1))
    assert functions(few) == ["wend_run"]
    assert [name for name in functions(many) if "sin" in name]


@pytest.mark.parametrize("is_loop", [False, True])
@pytest.mark.parametrize("name", ["sin", "tanh"])  # with branches, and without
def test_calls_outside_loops_are_calls_if_they_are_more_than_a_few(
    name: str, is_loop: bool
) -> None:
    def program(x):
        for _ in range(9) if is_loop else wend.unroll(range(1)):
            for k in wend.unroll(range(MAX_INLINED_CALLS_OUTSIDE_LOOPS + 1)):
                x = getattr(wnp, name)(x) * 0.5 + 0.1 * k
        return x

    called = [found for found in functions(text_of(program, 0.3)) if name in found]
    assert bool(called) != is_loop


def test_what_has_no_branches_stays_in_its_loops() -> None:
    text = text_of(chain(MANY), VECTOR)
    assert not re.search(r"call [^\n]*@wend\.sin\(double", str(engine().optimized(text)))


FUNCTIONS = (
    *("exp", "exp2", "expm1", "tanh", "log1p", "sinh", "cosh", "arcsin", "arccos", "arctan"),
    *("arcsinh", "arctanh", "cbrt"),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_calls_in_loops_have_the_bits_of_few(name: str, dtype: str) -> None:
    def calls(count: int):
        def program(x):
            total = x
            for k in wend.unroll(range(count)):
                total = total + getattr(wnp, name)(x + dtype_of(k / 64))
            return total

        return program

    dtype_of = np.dtype(dtype).type
    x = np.linspace(-0.9, 0.2, 37).astype(dtype)
    count = MAX_INLINED_CALLS + 1
    text = text_of(calls(count), x)
    sites = re.findall(r"call [^\n]*@(wend\.[\w.]+)\(<", str(engine().optimized(text)))
    assert sum(CALLED_SUFFIX in site for site in sites) in (0, count)
    found = wend.function(calls(count), backend="native")(x)
    one = wend.function(lambda x: getattr(wnp, name)(x), backend="native")
    expected = x
    for k in range(count):
        expected = expected + one(x + dtype_of(k / 64))
    np.testing.assert_array_equal(found, expected)


def test_many_calls_in_loops_are_calls_of_vectors() -> None:
    def program(x):
        for k in wend.unroll(range(MAX_INLINED_CALLS + 1)):
            x = wnp.tanh(x) + 0.1 * k
        return x

    text = str(engine().optimized(text_of(program, VECTOR)))
    assert re.search(r"call [^\n]*<\d+ x double> @wend\.tanh", text)


@pytest.mark.slow  # seconds, which a busy machine changes
@pytest.mark.parametrize(("make", "x"), PROGRAMS.values(), ids=PROGRAMS)
def test_compiling_is_about_linear(make, x) -> None:
    def seconds(text: str) -> float:
        began = time.process_time()
        engine().machine.emit_object(engine().optimized(text))
        return time.process_time() - began

    small, large = (seconds(text_of(wend.grad(make(k * MANY)), x)) for k in (1, 2))
    assert large <= 3.5 * small
