"""How outer values come into recordings."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.graphs import loops, traced
from tests.helpers.traces import at_trace

import wend
import wend.numpy as wnp
from wend.base.errors import LeakedValueError
from wend.ops.control import WhileParts
from wend.trace.recording.recording import Recording, current


def test_nothing_is_recorded_outside_a_trace():
    assert current() is None
    seen = []
    note = at_trace(seen)
    wend.function(lambda x: (note(current()), x)[1])(1.0)
    assert isinstance(seen[0], Recording)
    assert current() is None


def test_a_failing_trace_is_closed():
    with pytest.raises(ZeroDivisionError):
        wend.function(lambda x: wend.fori_loop(0, 3, lambda i, c: c / (1 // 0), x))(1.0)
    assert current() is None


def test_an_outer_value_is_one_invariant_however_often_it_is_used():
    def fun(x):
        y = wnp.sin(x)
        return wend.while_loop(lambda v: v < y, lambda v: v * y + y, x)

    (loop,) = loops(traced(fun, 1.0))
    w = WhileParts.of(loop)
    assert len(w.invariants) == len(w.before_invariants) == len(w.after_invariants) == 1


def test_an_array_is_one_capture_however_deep_and_often_it_is_used():
    a, b = np.ones(2), np.ones(2)

    def fun(x):
        def body(i, v):
            return wend.cond(v[0] > 0.0, lambda: v * a + b, lambda: v - a)

        return wend.fori_loop(0, 3, body, x) + a

    concrete = wend.function(fun).get_concrete_function(np.ones(2))
    assert [id(array) for array in concrete.captured_inputs] == [id(a), id(b)]
    assert len(concrete.graph.captures) == 2


def test_numbers_are_constants():
    concrete = wend.function(lambda x: x * np.float32(2) + 3).get_concrete_function(
        np.ones(2, "f4")
    )
    assert concrete.captured_inputs == ()


def test_arrays_of_other_dtypes_are_refused():
    words = np.array(["a", "b"])
    with pytest.raises(TypeError, match="expected an array of numbers"):
        wend.function(lambda x: wnp.add(x, words))(1.0)


def test_values_of_a_closed_trace_are_refused_everywhere():
    kept = []
    keep = at_trace(kept)
    wend.function(lambda x: (keep(x * 2.0), x)[1])(1.0)
    (leaked,) = kept
    for use in (
        lambda: leaked + 1,
        lambda: wnp.sin(leaked),
        lambda: np.sin(leaked),
        lambda: wend.function(lambda x: x + leaked)(1.0),
        lambda: wend.fori_loop(0, 2, lambda i, c: c + leaked, 0.0),
        lambda: wend.fori_loop(0, 2, lambda i, c: c, leaked),
        lambda: wend.function(lambda x: x)(leaked),
        lambda: wend.cond(leaked > 0, lambda: 1, lambda: 2),
        lambda: wend.grad(lambda x: x * leaked)(1.0),
        lambda: wend.vjp(lambda x: x * leaked, 1.0),
    ):
        with pytest.raises(LeakedValueError, match="used outside the trace"):
            use()
    assert current() is None


def test_order_of_effects_and_captures_of_a_function():
    """Params first, then the world, then captures."""
    a = np.ones(2)

    def fun(x):
        wend.print("x")
        return x + a

    graph = wend.function(fun).get_concrete_function(np.ones(2)).graph
    assert [str(param.type) for param in graph.params] == ["f64[2]", "token", "f64[2]"]
    assert [str(result.type) for result in graph.results] == ["f64[2]", "token"]
