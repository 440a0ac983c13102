"""Captures by reference: one param for each array or variable, through every level of functions."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp

F64 = wend.TensorSpec([], "float64")


def test_one_param_for_each_through_all_levels():
    a, v = np.ones(3), wend.Variable(2.0)
    innermost = wend.function(lambda x: x * a + v)
    inner = wend.function(lambda x: innermost(x) + innermost(2 * x) * a)

    @wend.function
    def outer(x):
        total = inner(x) + a * v
        for _ in range(3):
            total = total + a if x > 0 else total * v
        return total

    concrete = outer.get_concrete_function(F64)
    assert len(concrete.graph.captures) == 2
    assert {id(x) for x in concrete.captured_inputs} == {id(a), id(v)}
    assert concrete.variables == (v,)
    before = concrete(1.0)
    a[:] = 3.0
    v.assign(5.0)
    np.testing.assert_array_equal(concrete(1.0), outer.python_function(1.0))
    assert not np.array_equal(before, concrete(1.0))


ZERO_DIM, SCALAR = np.array(300), np.int64(300)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_one_without_axes_is_an_array_as_in_python(backend):
    def kinds(x):
        out = np.zeros(2, np.int8)
        out[0] = ZERO_DIM  # which cuts it, as casts of arrays do; a scalar would have to fit
        for known in (ZERO_DIM, SCALAR):
            is_exact = 2.0 if type(known) is np.ndarray else 3.0
            x = x * is_exact + isinstance(known, np.ndarray) + known
        return x, out

    result, expected = wend.function(kinds, backend=backend)(1.0), kinds(1.0)
    assert result[0] == expected[0]
    np.testing.assert_array_equal(result[1], expected[1])


def test_equal_arrays_are_two_captures():
    a, b = np.ones(3), np.ones(3)
    concrete = wend.function(lambda x: x * a * b * a).get_concrete_function(F64)
    assert len(concrete.captured_inputs) == 2
    b[:] = 2.0
    assert concrete(1.0).tolist() == [2.0, 2.0, 2.0]


def test_a_name_that_is_bound_anew_traces_again():
    """T89: which variable a name stands for is Python's, as numbers are."""
    v, number = wend.Variable(2.0), 10.0
    fun = wend.function(lambda x: x * v + number)
    assert fun(1.0) == 12.0
    v.assign(5.0)
    assert fun(1.0) == 15.0
    v, number = wend.Variable(100.0), 20.0
    assert fun(1.0) == 120.0
    v.assign(6.0)
    assert fun(1.0) == 26.0


@pytest.mark.parametrize("kind", ["while", "cond", "scan", "nested"])
def test_regions_capture_what_the_function_captures(kind):
    v = wend.Variable(2.0)
    inner = wend.function(lambda x: x * v)

    @wend.function
    def fun(x):
        if kind == "while":
            while x < 20:
                x = inner(x)
        elif kind == "cond":
            x = wend.cond(x > 0, lambda: inner(x), lambda: x + v)
        elif kind == "scan":
            x = wend.scan(lambda c, _: (inner(c), None), x, None, length=3)[0]
        else:
            x = wend.cond(x > 0, lambda: wend.fori_loop(0, 3, lambda i, c: inner(c), x), lambda: x)
        return x

    expected = {"while": 32.0, "cond": 2.0, "scan": 8.0, "nested": 8.0}
    assert fun(1.0) == expected[kind]
    assert fun.get_concrete_function(1.0).captured_inputs == (v,)
    v.assign(3.0)
    assert fun(1.0) == {"while": 27.0, "cond": 3.0, "scan": 27.0, "nested": 27.0}[kind]
    assert fun.trace_count == 1


def test_a_value_of_an_outer_trace_is_passed_through_functions_between():
    def deep(x, depth):
        if not depth:
            return wend.function(lambda z: z + x)
        return wend.function(lambda z: deep(x, depth - 1)(z) * 2)

    outer = wend.function(lambda x: deep(x * 10, 4)(x))
    assert (outer(1.0), outer(2.0)) == (176.0, 352.0)
    assert wend.grad(outer)(1.0) == 176.0
    assert outer.get_concrete_function(1.0).captured_inputs == ()


def test_what_is_computed_of_plain_arrays_alone_is_computed_at_each_call():
    a = np.ones(3)
    fun = wend.function(lambda x: x * wnp.sum(a))
    assert fun(1.0) == 3.0
    a[:] = 2.0
    assert (fun(1.0), fun.trace_count) == (6.0, 1)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("number", [0.0, -0.0, 2.5, np.nan, 1 + 2j, np.int8(3), True])
def test_large_arrays_of_one_number_are_not_kept(backend, number):
    """They are made at each call, and are the caller's."""

    def fun(x):
        whole = np.full((80, 100), number)
        part = np.full((80, 100), number)
        part[1:, 3] = x
        return whole, whole.T, part, whole[0] * x

    compiled = wend.function(fun, backend=backend)
    for k in range(3):
        found, expected = compiled(float(k)), fun(float(k))
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(np.signbit(one.real), np.signbit(other.real))
            one[...] = 0
    kept = compiled.get_concrete_function(1.0).captured_inputs
    assert all(array.size < 8000 for array in kept)


def test_large_arrays_of_several_numbers_are_kept():
    def fun(x):
        found = np.zeros(2000)
        found[7] = 1.0
        read = x * found
        found[8] = 2.0  # the graph has read it
        return read, found

    compiled = wend.function(fun, backend="native")
    for one, other in zip(compiled(3.0), fun(3.0), strict=True):
        np.testing.assert_array_equal(one, other)
    (kept,) = compiled.get_concrete_function(3.0).captured_inputs
    assert kept.shape == (2000,)


def test_large_arrays_of_one_number_that_loops_change():
    def fun(count, x):
        total, terms = np.zeros(1000), np.ones(1000)
        for k in range(count):
            total = total + terms * x
            total[k] = k
        return total

    compiled = wend.function(fun, backend="native")
    for count in (0, 3, 5):
        found = compiled(np.int64(count), 2.0)
        np.testing.assert_array_equal(found, fun(count, 2.0))
    assert compiled.get_concrete_function(np.int64(2), 2.0).captured_inputs == ()
