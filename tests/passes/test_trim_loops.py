"""Trips whose rows nobody reads: how many run, and what the others leave as it is."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import numpy as np
import pytest

import wend
from tests.passes.test_push_out import REQUIRED, run
from wend.ir.types import TOKEN
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import trip_count
from wend.passes.pipeline import OPTIMIZE, run_passes

XS = np.random.default_rng(24).uniform(0.5, 1.5, (20, 2))
_numbers = count()

# Headers, with the positions that their trips write, in order
HEADERS = {
    "for i in range(20):": range(20),
    "for i in range(19, -1, -1):": range(19, -1, -1),
    "for i in range(3, 17):": range(3, 17),
    "for i in range(0, 20, 2):": range(0, 20, 2),
    "for i in range(18, 2, -3):": range(18, 2, -3),
    "i = -1\n    while i < 17:\n        i += 1": range(18),
}
# What is read, with its rows
READS = {
    "out[-6:]": range(14, 20),
    "out[-7]": range(13, 14),
    "out[-3:-1]": range(17, 19),
    "out[4, 1]": range(4, 5),
    "out[2] * out[5, 0]": range(2, 6),
    "out[3:12:4] + out[8]": range(3, 12),
}


def function(text: str) -> Callable[..., Any]:
    """Return the function `f` that a text defines."""
    file, space = f"<trimmed {next(_numbers)}>", dict[str, Any](np=np)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), space)
    return cast("Callable[..., Any]", space["f"])


def filling(header: str, read: str, step: str = "out[i] = np.sin(xs[i]) * xs[i]") -> str:
    lines = f"def f(xs):\n    out = xs * 0.5; c = 0.0\n    {header}\n        {step}\n"
    return f"{lines}    return np.sum(({read}) ** 2)\n"


def trips(f: Callable[..., Any], *args: Any) -> list[int]:
    """Return the trip counts of the loops that run."""
    graph = run_passes(wend.function(f).get_concrete_function(*args).graph, OPTIMIZE)
    loops = [WhileParts.of(node) for node in graph.walk() if node.op is while_]
    return [cast("int", trip_count(w)) for w in loops]


def check(f: Callable[..., Any], xs: Any) -> None:
    """Compare a function with Python, and its derivatives with those that no pass has changed."""
    np.testing.assert_array_equal(wend.function(f)(xs), f(xs))
    slope = wend.grad(f)
    for derivative in slope, wend.grad(lambda xs: np.sum(np.sin(slope(xs)))), wend.jacfwd(f):
        concrete = wend.function(derivative).get_concrete_function(xs)
        inputs = [None if x.type == TOKEN else xs for x in concrete.graph.params]
        inputs[len(inputs) - len(concrete.captured_inputs) :] = concrete.captured_inputs
        with np.errstate(all="ignore"):
            (expected,), *_ = run(concrete.graph, REQUIRED, inputs, "numpy")
            (result,), *_ = run(concrete.graph, OPTIMIZE, inputs, "numpy")
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(wend.function(derivative)(xs), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("header", HEADERS)
def test_only_trips_whose_rows_are_read_run(header: str, read: str) -> None:
    f = function(filling(header, read))
    needed = [t for t, row in enumerate(HEADERS[header]) if row in READS[read]]
    all_trips = len(HEADERS[header])
    expected = needed[-1] + 1 - needed[0] if needed else all_trips
    assert trips(f, XS) == ([expected] if expected > 1 else [])  # one trip is its body
    np.testing.assert_array_equal(wend.function(f)(XS), f(XS))
    if [*HEADERS].index(header) == [*READS].index(read):
        check(f, XS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("step", "read"),
    [
        ("out[i] = np.sin(xs[i]) + out[0]", "out[-6:]"),  # reads what it writes
        ("out[i] = np.sin(xs[i]); c = c + xs[i, 0]", "out[2] + c"),  # something else is read
        ("out[i] = np.sin(xs[i])", "out"),
        ("out[i] = np.sin(xs[i])", "out[::-1]"),
        ("out[i] = np.sin(xs[i])", "out[int(xs[0, 0])]"),  # a row that only the run knows
        ("out[i % 4] = np.sin(xs[i])", "out[3]"),  # written more than once
        ("out[int(xs[i, 0] * 3.0)] = np.sin(xs[i])", "out[3]"),
        ("out[i] = np.sin(xs[i])\n        assert xs[i, 0] > 0.0", "out[2]"),
    ],
)
def test_trips_that_something_reads_run(step: str, read: str) -> None:
    f = function(filling("for i in range(20):", read, step))
    assert 20 in trips(f, XS)
    check(f, XS)


def test_an_error_of_a_trip_that_nothing_reads_is_raised() -> None:
    f = function(filling("for i in range(20):", "out[2]", "out[i] = xs[i + 1]"))
    for derived in f, wend.grad(f):
        with pytest.raises(IndexError, match="20"):
            wend.function(derived)(XS)


@pytest.mark.parametrize("step", ["out[i] = np.sqrt(xs[i])", "out.append(np.sqrt(xs[i]))"])
def test_derivatives_of_rows_that_nothing_reads_stay_nan(step: str) -> None:
    """A zero times an infinite derivative is NaN, also in a trip that the value does not need."""
    text = filling("for i in range(20):", "np.array(out)[-6:]", step)
    f = function(text.replace("xs * 0.5", "[]") if "append" in step else text)
    xs = np.where(np.arange(20)[:, None] < 3, 0.0, XS)
    assert trips(f, xs) == [6]
    for strict in False, True:
        with wend.config(strict=strict), np.errstate(all="ignore"):
            gradient = wend.grad(f)(xs)
        assert np.isnan(gradient[:3]).all()
        assert not gradient[3:14].any()
        np.testing.assert_allclose(gradient[14:], 1.0)


def test_two_arrays_keep_their_own_rows() -> None:
    def f(xs: Any) -> Any:
        a, b = np.zeros(20), np.ones(21)
        for i in range(20):
            a[i] = np.sin(xs[i, 0])
            b[i + 1] = np.cos(xs[i, 1]) * i
        return np.sum(a[2:5] ** 2) + b[7] ** 2  # in trips 2 to 4, and 6

    assert sum(trips(f, XS)) < 8
    check(f, XS)


def test_reports_tell_how_many_trips_run() -> None:
    f = wend.function(function(filling("for i in range(20):", "out[-6:]")))
    f(XS)
    assert "6 times of 20: the others are not read" in f.explain()
