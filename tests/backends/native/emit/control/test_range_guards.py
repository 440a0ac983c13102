"""Loops whose positions are tested once: values, errors and what was written are Python's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.backends.native.codegen.test_safepoints import interrupt

import wend
from wend.backends.native.backend import BACKEND
from wend.backends.native.jit.llvm import engine
from wend.passes.pipeline import OPTIMIZE, run_passes

BIG = 2**63 - 1


def up(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    for i in range(a, b):
        out[i + p] = x[i - q] + 0.5 * out[i + p]
    return out[0]


def down(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    for i in range(b, a, -1):
        out[p - i] = max(out[p - i], out[i - q] + x[3])
    return out[-1]


def by_threes(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    i, total = a, 0.0
    while i <= b:
        total += x[i - q]
        out[2 * i + p] = total
        i += 3
    return i


def by_minus_twos(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    i = b
    while a <= i:
        out[p + i] = x[q - 2 * i]
        i -= 2
    return i


def with_a_factor(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    for i in range(b):
        out[p * i + a] = x[i] + q
    return out[q]


def of_any_step(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    for i in range(a, b, p):
        out[i] = x[i + q]
    return out[0]


def until(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    i = a
    while i < b and x[i + p] < 0.8:
        out[i - q] = i
        i += 1
    return i


def looked_at_last(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    i = a
    while x[i + p] < 0.8 and i < b:
        out[i - q] = i
        i += 1
    return i


def broken_off(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    found = -1
    for i in range(a, b):
        if x[i + p] > 0.9:
            found = i
            break
        out[i + q] = x[i + p]
    return found


def under_a_condition(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    total = 0.0
    for i in range(a, b):
        if x[i] > 0.4:
            out[i + p] = total
        elif x[i] > 0.2:
            total += out[i - q]
    return total


def two_counters(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    k = p
    for i in range(a, b):
        out[k] = x[i] - out[i]
        k -= 2
    return k + q


def around(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    for i in range(a, b):
        out[(i + p) % (2 * b + 1)] = x[(i - q) % 5]
    return out[0]


def in_a_matrix(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    table = np.reshape(np.arange(24.0), (4, 6))
    total = 0.0
    for i in range(a, b):
        table[p, i] = table[i - q, p] + x[0]
        total += table[q, -i]
    out[0] = total
    return table


def aliased(x: Any, out: Any, a: Any, b: Any, p: Any, q: Any) -> Any:
    y = out[1:]
    z = out
    for i in range(a, b):
        z[i + p] = y[i - q] + x[0]
        out[i] += z[i + p]
    return y


PROGRAMS = [
    *(up, down, by_threes, by_minus_twos, with_a_factor, of_any_step, until, looked_at_last),
    *(broken_off, under_a_condition, two_counters, around, in_a_matrix, aliased),
]
Outcome = tuple[Any, ...]


def outcome(fun: Callable[..., Any], x: Any, out: Any, numbers: tuple[int, ...]) -> Outcome:
    """Call a function with copies of arrays; what it gives or raises, and the arrays then."""
    x, out = x.copy(), out.copy()
    try:
        value = np.asarray(fun(x, out, *numbers)).tolist()
    except (IndexError, ValueError, ZeroDivisionError) as error:
        value = type(error), str(error)
    return value, x.tolist(), out.tolist()


def cases(rng: np.random.Generator) -> Iterator[tuple[Any, Any, tuple[int, ...]]]:
    """Yield arrays and numbers; many of them have positions next to the ends."""
    for _ in range(60):
        n, m = rng.integers(0, 9, 2)
        x, out = rng.random(n + 4), rng.random(m + 1)
        a, b, p, q = map(int, rng.integers(-3, 7, 4))
        yield x, out, (a, b, p, q)
        if rng.random() < 0.4:
            yield rng.random(12), rng.random(12), (0, b, abs(p), 0)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::wend.RetraceWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_errors_and_writes_are_those_of_python(program: Callable[..., Any]) -> None:
    native = wend.function(program, backend="native")
    outcomes = set()
    for x, out, numbers in cases(np.random.default_rng(PROGRAMS.index(program))):
        expected = outcome(program, x, out, numbers)
        assert outcome(native, x, out, numbers) == expected, (x, out, numbers)
        outcomes.add(type(expected[0]))
    assert len(outcomes) > 1, "some calls fail and some do not"


def at(positions: Callable[[Any, Any], Any], step: int = 1) -> Callable[..., Any]:
    """Return a loop that reads `x` at positions made of its counter and a number."""

    def fun(x: Any, a: Any, b: Any, p: Any) -> Any:
        total, i = 0.0, a
        while i < b:
            total = total * 0.5 + x[positions(i, p)]
            i += step
        return total, i

    return fun


NEAR_OVERFLOW = [
    (lambda i, p: i + p, 1),
    (lambda i, p: i - p, 3),
    (lambda i, p: i * p, 1),
    (lambda i, p: i * p + 2 * i, 5),
    (lambda i, p: p - i * 2**62, 1),
]
EDGES = [0, 1, -1, 2, BIG, BIG - 1, BIG - 4, -BIG - 1, -BIG, 2**62, -(2**62), 2**61, 2**32, 2**31]


@pytest.mark.parametrize(("positions", "step"), NEAR_OVERFLOW)
def test_positions_that_overflow_wrap_as_on_the_reference(
    positions: Callable[[Any, Any], Any], step: int
) -> None:
    fun = at(positions, step)
    native = wend.function(fun, backend="native")
    reference = wend.function(fun, backend="numpy")
    x = np.random.default_rng(1).random(6)
    rng = np.random.default_rng(step)
    for a in EDGES:
        for p in (*rng.choice(EDGES, 4), -a, a):
            if p == -BIG - 1 and p == -a:
                continue
            for b in {wrapped(a + int(d)) for d in rng.integers(0, 12, 2)}:
                if not 0 < b - a < 12 or b + step > BIG:
                    continue
                numbers = (a, b, wrapped(int(p)))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    expected = result(reference, x, *numbers)
                assert result(native, x, *numbers) == expected, numbers


def wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def result(fun: Callable[..., Any], *args: Any) -> Any:
    try:
        return tuple(np.asarray(value).tolist() for value in fun(*args))
    except IndexError as error:
        return str(error)


def test_a_loop_whose_counter_overflows_goes_on_where_it_wraps_to() -> None:
    """The last value plus the step is less than the bound again, so there is no last trip."""

    @wend.function(backend="native")
    def fun(x: Any, i: Any, bound: Any) -> Any:
        total = 0.0
        while i <= bound:
            total += x[i - bound + 3]
            i += 2
        return total

    x = np.arange(1.0, 5.0)
    assert fun(x, 5, 8) == x[0] + x[2]
    with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 4"):
        fun(x, BIG - 3, BIG)


def smoothed(x: Any, out: Any) -> Any:
    for i in range(1, x.shape[0] - 1):
        out[i] = 0.25 * out[i - 1] + x[i + 1] - x[-i]
    return np.sum(out)


@pytest.mark.parametrize("n", [2, 3, 9089, 9093, 50_000])
def test_blocks_of_trips_join(n: int) -> None:
    x, out = np.random.default_rng(n).random((2, n))
    native, mine = wend.function(smoothed, backend="native"), out.copy()
    total = native(x, mine)
    expected = out.copy()
    smoothed(x, expected)
    np.testing.assert_array_equal(mine, expected)
    np.testing.assert_allclose(total, np.sum(expected), rtol=1e-12)


def test_an_error_after_many_trips_leaves_what_they_wrote() -> None:
    def fun(x: Any, out: Any, n: Any) -> None:
        for i in range(n):
            out[i] = x[i] + 1.0

    native = wend.function(fun, backend="native")
    x, out = np.arange(40_000.0), np.zeros(30_000)
    native(x[:5].copy(), out.copy(), 5)
    with pytest.raises(IndexError, match="index 30000 is out of bounds for axis 0 with size 30000"):
        native(x, out, 40_000)
    np.testing.assert_array_equal(out, x[:30_000] + 1.0)


def test_a_long_loop_in_blocks_is_interrupted() -> None:
    @wend.function(backend="native")
    def fun(x: Any, n: Any) -> Any:
        total = 0.0
        for i in range(n):
            total = total * 0.5 + x[i % 3]
        return total

    x = np.ones(3)
    assert fun(x, 3) == 1.75
    for _ in range(3):
        (note,) = interrupt(fun, x, 2**31)
        assert note.startswith("in while at test_range_guards.py:")
        assert fun(x, 2) == 1.5


def knapsack(weights: Any, values: Any, best: Any) -> Any:
    room = best.shape[0] - 1
    for k in range(weights.shape[0]):
        w = weights[k]
        for r in range(room, w - 1, -1):
            best[r] = max(best[r], best[r - w] + values[k])
    return best[room]


def test_llvm_vectorizes_a_loop_without_range_checks() -> None:
    args = np.arange(1, 21), np.linspace(0.5, 1.0, 20), np.zeros(40)
    graph = run_passes(wend.function(knapsack).get_concrete_function(*args).graph, OPTIMIZE)
    text = BACKEND.text(graph)
    assert text.count("\ninrange") == text.count("\nchecked") == 1
    vector = re.compile(r"fcmp ogt <\d+ x double>")
    assert vector.search(str(engine().optimized(text)))


def test_positions_known_to_be_in_range_need_no_guard() -> None:
    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(1, 8):
            total += x[i + 12] * x[-i] * x[i % 4]
        return total

    x = np.random.default_rng(2).random(20)
    function = wend.function(fun, backend="native")
    assert function(x) == fun(x)
    text = BACKEND.text(run_passes(function.get_concrete_function(x).graph, OPTIMIZE))
    assert "\nchecked" not in text
    assert "\nnegative" not in text


@pytest.mark.parametrize("n", [1, 2, 30])
def test_gradients(n: int) -> None:
    def fun(x: Any, w: Any) -> Any:
        out = x * 1.0
        for i in range(w, x.shape[0]):
            out[i] = np.sin(out[i - w]) * x[i] + x[w - i]
        return np.sum(out**2)

    x = np.random.default_rng(n).random(n + 2)
    for w in (0, 1, n, n + 5):
        slopes = []
        for backend in ("native", "numpy"):
            with wend.config(backend=backend):
                slopes.append(wend.grad(fun)(x, w))
        np.testing.assert_allclose(*slopes, rtol=1e-12)
