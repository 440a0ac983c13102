"""When it is worth a warning that a function is traced."""

from __future__ import annotations

import gc
import re
import sys
import time
import warnings

import numpy as np
import pytest

import wend
from wend.function import retraces
from wend.function.retraces import clear_redefinitions


@pytest.fixture(autouse=True)
def _nothing_was_made():
    clear_redefinitions()


def told(work):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        work()
    assert {(w.category, w.filename) for w in found} <= {(wend.RetraceWarning, __file__)}
    return [re.sub(r"test_retraces.py:\d+", "here", str(w.message)) for w in found]


def test_functions_that_are_made_in_a_loop():
    def work():
        for k in range(20):
            wend.function(lambda x, k=k: x * k)(1.0)

    (text,) = told(work)
    assert text == (
        "<lambda> at here was made 5 times, and traced each time, for 5 calls: the traces are "
        "lost with the function.\n  To fix it: make the wend.function once, outside of the loop or "
        "function that calls it, and keep it; for a method, keep the instance."
    )
    assert told(work) == []  # once for the code


def test_functions_that_are_made_in_a_function():
    def step(x, n):
        @wend.function
        def times(x):
            return x * n

        return times(x) + times(x + 1)

    (text,) = told(lambda: [step(1.0, n) for n in range(9)])
    assert text.startswith("times at here was made 5 times, and traced each time, for 9 calls")


def test_functions_that_share_their_traces():
    def step(x, rate):
        @wend.function
        def times(x):
            return x * rate

        return times(x)

    assert told(lambda: [step(1.0, float(n)) for n in range(9)]) == []


def test_functions_that_live_side_by_side():
    def work():
        kept = [wend.function(lambda x, k=k: x * k) for k in range(20)]
        for fun in kept:
            fun(1.0)

    assert told(work) == []


def test_functions_that_are_used_before_they_go():
    def work():
        for k in range(8):
            fun = wend.function(lambda x, k=k: x * k)
            for _ in range(4):
                fun(1.0)

    assert told(work) == []


class Layer:
    def __init__(self, k):
        self.k = k

    @wend.function
    def __call__(self, x):
        return self.k * x


def test_methods_of_instances():
    assert told(lambda: [layer(1.0) for layer in [Layer(k) for k in range(8)]]) == []
    gc.collect()
    (text,) = told(lambda: [Layer(k)(1.0) for k in range(12)])
    assert text.startswith("__call__ at here was made 5 times")


def test_derivatives_of_new_functions_are_the_way_they_are_used():
    assert told(lambda: [wend.grad(lambda x, k=k: x * k)(1.0) for k in range(12)]) == []


def test_functions_made_in_a_trace():
    @wend.function
    def outer(x):
        return wend.function(lambda y: y * 2)(x)

    shapes = [np.ones((2,) * k) for k in range(4)] + [np.float32(1), 1, 1.0]
    texts = told(lambda: [outer(x) for x in shapes])
    assert all(text.startswith("outer was traced 5 times") for text in texts)


def test_how_much_is_known_of_code_is_bounded(monkeypatch):
    monkeypatch.setattr(retraces, "_MAX_TRACKED_CODES", 3)
    for k in range(8):
        names = {}
        exec("\n" * k + "def fun(x): return x", names)
        wend.function(names["fun"])(1.0)
    assert len(retraces._redefinitions) == 3


class Held:
    """An object that a function reads."""

    def __init__(self, factor):
        self.factor = factor


HELD = [Held(float(k)) for k in range(1600)]
MANY = {
    "texts": (lambda x, s: x * len(s), lambda k: (1.0, f"text {k}")),
    "objects": (lambda x, held: x * held.factor, lambda k: (1.0, HELD[k])),
    "structures": (
        lambda x, s: x + len(s),
        lambda k: (1.0, [1.0] * (k % 40) + [[2.0] * (k // 40)]),
    ),
    "shapes": (lambda x: x * 2.0, lambda k: (np.ones(k + 2),)),
}


def of_many(name, **options):
    fun, arguments = MANY[name]
    names = ("s",) if name == "texts" else ()
    return wend.function(fun, static_argnames=names, **options), arguments


def python_calls(work):
    """How many functions of Python are called."""
    count = 0

    def profile(frame, event, _):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.sampled
@pytest.mark.parametrize("name", MANY)
def test_a_trace_costs_no_more_after_hundreds(name):
    f, arguments = of_many(name, reduce_retracing=False, backend="numpy")
    counts = {}

    def work():
        for k in range(280):
            counts[k] = python_calls(lambda k=k: f(*arguments(k)))

    assert len(told(work)) == 1
    early, late = (sorted(counts[j] for j in range(k, k + 20))[10] for k in (80, 240))
    assert late < 1.5 * early + 500


@pytest.mark.slow
@pytest.mark.parametrize("name", ["texts", "objects"])
def test_1600_traces_end_in_one_warning(name):
    f, arguments = of_many(name)
    start = time.process_time()
    assert len(told(lambda: [f(*arguments(k)) for k in range(1600)])) == 1
    assert time.process_time() - start < 60
    assert f"{1600}. " in f.explain()
