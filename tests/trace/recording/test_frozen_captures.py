"""`capture_by_value=True`: what a function reads from outside is what it was when traced."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from wend.base.errors import TypeMismatchError
from wend.eager.dispatch import Staged


def by_value(fun):
    return wend.function(fun, capture_by_value=True)


def test_later_assignments_and_changes_are_not_seen():
    v, weights = wend.Variable(2.0), np.ones(3)

    def fun(x):
        return x * v + wnp.sum(weights * x)

    frozen, shared = by_value(fun), wend.function(fun)
    assert frozen(1.0) == shared(1.0) == 5.0
    v.assign(5.0)
    weights[:] = 2.0
    assert frozen(1.0) == 5.0
    assert shared(1.0) == 11.0
    concrete = frozen.get_concrete_function(1.0)
    assert concrete.captured_inputs == ()
    assert concrete.variables == ()
    assert concrete.graph.captures == ()
    assert frozen.trace_count == shared.trace_count == 1


def test_another_trace_reads_anew():
    v = wend.Variable(2.0)
    frozen = by_value(lambda x: x * v)
    assert frozen(1.0) == 2.0
    v.assign(3.0)
    assert frozen(np.float32(1.0)) == 3.0
    assert frozen(1.0) == 2.0


def test_functions_that_it_calls_freeze_too():
    v, array = wend.Variable(2.0), np.array([1.0, 2.0])
    innermost = wend.function(lambda x: x * v + wnp.take(array, int(x) // 4))
    inner = wend.function(lambda x: innermost(x) + wnp.take(array, int(x) // 3))
    innermost(1.0)  # one is traced already, the other is not
    frozen = by_value(lambda x: inner(x) * v)
    assert frozen(3.0) == 18.0
    v.assign(7.0)
    array[:] = 100.0
    assert frozen(3.0) == 18.0
    assert frozen.get_concrete_function(3.0).captured_inputs == ()
    assert inner(3.0) == 221.0, "by itself it captures by reference"


@pytest.mark.parametrize("kind", ["while", "for", "if", "cond", "scan", "loop in a branch"])
def test_regions_read_constants(kind):
    v, array = wend.Variable(2.0), np.array([1.0, 2.0, 3.0])

    def fun(x):
        if kind == "while":
            while x < 20:
                x = x * v + array[0]
        elif kind == "for":
            for i in range(3):
                x = x + v * array[i]
        elif kind == "if":
            x = x * v if x > 0 else x + array[0]
        elif kind == "cond":
            x = wend.cond(x > 0, lambda: x * v, lambda: x + array[0])
        elif kind == "scan":
            x = wend.scan(lambda c, a: (c + a * v, None), x, array)[0]
        elif x > 0:
            while x < 20:
                x = x * v
        return x

    frozen = by_value(fun)
    before = frozen(1.0)
    assert before == fun(1.0)
    v.assign(30.0)
    array[:] = 50.0
    assert frozen(1.0) == before
    assert frozen(1.0) != fun(1.0)


def test_an_array_that_python_changes_between_two_uses_is_read_twice():
    array = np.zeros(2)

    @wend.do_not_capture
    def change():
        array[0] += 1.0

    @by_value
    def fun(x):
        first = x + array
        change()
        return first, x + array

    first, second = fun(np.zeros(2))
    assert first.tolist() == [0.0, 0.0]
    assert second.tolist() == [1.0, 0.0]


def test_an_array_that_is_read_often_is_one_constant():
    array = np.arange(100.0)
    frozen = by_value(lambda x: wnp.sum(x * array) / array - array)
    assert frozen.get_concrete_function(1.0).graph.count("constant") == 1


def test_signed_zero_and_nan_are_kept():
    array = np.array([0.0, -0.0, np.nan])
    frozen = by_value(lambda x: wnp.copysign(x, array) + array * 0)
    assert str(frozen(1.0).tolist()) == "[1.0, -1.0, nan]"


def test_gradients_are_those_of_arguments_only():
    v = wend.Variable(3.0)
    frozen = by_value(lambda x: x * v * v)
    with wend.GradientTape(persistent=True) as tape:
        x, d = tape.watch(2.0), tape.watch(5.0)
        y = frozen(x)
        z = by_value(lambda x: x * d)(x)
    assert y == 18.0
    assert tape.gradient(y, x) == 9.0
    assert tape.gradient(y, v) is None
    assert z == 10.0
    assert tape.gradient(z, x) == 5.0
    assert tape.gradient(z, d) is None
    v.assign(100.0)
    assert wend.grad(frozen)(2.0) == 100.0**2  # traced for the gradient, so it reads anew
    derivative = wend.grad(frozen)
    assert derivative(2.0) == 10000.0
    v.assign(1.0)
    assert derivative(2.0) == 10000.0


def test_a_tape_inside_gives_none():
    v = wend.Variable(3.0)

    @by_value
    def fun(x):
        with wend.GradientTape() as tape:
            y = tape.watch(x) * v
        assert tape.gradient(y, v) is None
        return y

    assert fun(2.0) == 6.0


def test_what_belongs_to_a_trace_around_stays_a_capture():
    @wend.function
    def outer(x):
        y = x * 2.0
        return by_value(lambda z: z + y)(x)

    assert (outer(1.0), outer(5.0)) == (3.0, 15.0)


def test_methods_freeze():
    class Model:
        def __init__(self):
            self.v = wend.Variable(2.0)

        @wend.function(capture_by_value=True)
        def __call__(self, x):
            return self.v * x

    a, b = Model(), Model()
    b.v.assign(3.0)
    assert (a(1.0), b(1.0)) == (2.0, 3.0)
    a.v.assign(10.0)
    assert (a(1.0), b(1.0)) == (2.0, 3.0)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=4), st.integers(0, 3))
def test_it_is_what_the_function_gave_when_traced(contents, trips):
    array, v = np.array(contents), wend.Variable(contents[0])

    def fun(x):
        for _ in range(trips):
            x = wnp.sin(x * v) + wnp.sum(array)
        return x

    frozen = by_value(fun)
    expected = frozen(0.5)
    np.testing.assert_allclose(expected, wend.function(fun)(0.5), rtol=1e-12)
    array += 1.0
    v.assign_add(1.0)
    assert frozen(0.5) == expected


# Assignment
w = wend.Variable(1.0, name="w")
setter = wend.function(lambda x: w.assign(x).value)


def assigned_in_the_function():
    by_value(lambda x: w.assign(x).value)(2.0)


def assigned_in_a_loop():
    @by_value
    def fun(x):
        for _ in range(3):
            w.assign_add(x)
        return x

    fun(2.0)


def assigned_in_a_function_that_it_calls():
    by_value(lambda x: setter(x))(2.0)


def assigned_by_the_function_around_it():
    @wend.function
    def outer(x):
        w.assign(x)
        return by_value(lambda y: y * w)(x)

    outer(2.0)


def assigned_by_the_loop_around_it():
    @wend.function
    def outer(x):
        for _ in range(3):
            w.assign_add(x)
            x = by_value(lambda y: y * w)(x)
        return x

    outer(2.0)


REFUSED = [
    assigned_in_the_function,
    assigned_in_a_loop,
    assigned_in_a_function_that_it_calls,
    assigned_by_the_function_around_it,
    assigned_by_the_loop_around_it,
]


def test_assignments_are_refused_by_name(golden):
    before_write = []
    for mistake in REFUSED:
        with pytest.raises(TypeMismatchError) as caught:
            mistake()
        assert w == 1.0
        text = re.sub(r"(\.py):\d+", r"\1:LINE", str(caught.value))
        before_write.append(f"# {mistake.__name__.replace('_', ' ')}\n{text}\n")
    golden.check("errors/frozen_captures.txt", "\n".join(before_write))


def test_a_variable_that_the_function_around_only_reads_is_frozen():
    @wend.function
    def outer(x):
        return w * by_value(lambda y: y * w)(x)

    assert outer(2.0) == 2.0
    w.assign(3.0)
    try:
        assert outer(2.0) == 6.0
    finally:
        w.assign(1.0)


def test_nothing_of_a_trace_is_left_in_constants():
    frozen = by_value(lambda x: x * w)
    graph = frozen.get_concrete_function(1.0).graph
    assert not any(isinstance(v, Staged) for node in graph.nodes for v in node.attrs.values())
