"""What variables hold after runs that store in them: memory of their own."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.backends.build import executable
from wend.backends.variable_stores import StoresAfterRun, StoresInRun
from wend.passes.pipeline import LazyOptimized

CALLS = 12  # the first ones do not enter compiled code directly


def executable_of(fun, *args):
    graph = wend.function(fun).get_concrete_function(*args).graph
    return executable("native", LazyOptimized(graph))


def test_what_stores():
    v = wend.Variable(np.zeros(3))
    assert isinstance(executable_of(lambda x: v.assign(x + 1.0), np.ones(3)), StoresAfterRun)

    def then_fails(x):
        v.assign(x)
        wend.assert_(x[0] > 0.0, "no")

    assert isinstance(executable_of(then_fails, np.ones(3)), StoresInRun)


@pytest.mark.parametrize("size", [3, 5000])
def test_a_variable_shares_memory_with_no_argument(size):
    v = wend.Variable(np.zeros(size))
    keep = wend.function(lambda x: v.assign(x), backend="native")
    x = np.zeros(size)
    for k in range(CALLS):
        x[:] = k
        keep(x)
        x[:] = -1.0
        assert (v.value == k).all()
        assert not v.value.flags.writeable


@pytest.mark.parametrize("size", [3, 5000])
def test_a_variable_shares_memory_with_no_result_that_can_be_written(size):
    v = wend.Variable(np.zeros(size))

    def add(x):
        v.assign(v + x)
        return v.value, v.value * 2.0, v.value

    run = wend.function(add, backend="native")
    for k in range(1, CALLS):
        for result in run(np.ones(size)):
            if result.flags.writeable:
                result[:] = -1.0
        assert (v.value == k).all()
        assert not v.value.flags.writeable


def test_variables_do_not_share_memory_with_each_other():
    v, w = wend.Variable(np.zeros(3)), wend.Variable(np.zeros(3))

    def both(x):
        y = x * 2.0
        v.assign(y)
        w.assign(y)

    run = wend.function(both, backend="native")
    for k in range(CALLS):
        run(np.full(3, float(k)))
        assert v.value.tolist() == w.value.tolist() == [2.0 * k] * 3


def test_arguments_written_in_place_beside_a_variable():
    v = wend.Variable(0.0)

    def fill(x, y):
        x[0] = y
        v.assign(x.sum())
        return y + 1.0

    run = wend.function(fill, backend="native")
    for k in range(CALLS):
        x = np.zeros(3)
        assert run(x, float(k)) == k + 1.0
        assert x[0] == v.value == k


def test_an_error_stores_nothing():
    v = wend.Variable(0)

    def element(x, k):
        y = x[k]
        v.assign(v + 1)
        return y

    run = wend.function(element, backend="native")
    for k in [0, 1, 2] * 4:
        assert run(np.arange(3.0), k) == k
        with pytest.raises(IndexError):
            run(np.arange(3.0), 7)
    assert v.value == 12


def test_a_variable_that_is_gone_is_an_error():
    variables = [wend.Variable(0.0)]
    run = wend.function(lambda x: variables[0].assign_add(x), backend="native")
    for _ in range(CALLS):
        run(1.0)
    variables[0] = wend.Variable(5.0)  # the guard fails, and the function is traced again
    for _ in range(CALLS):
        run(1.0)
    assert variables[0].value == 5.0 + CALLS


@pytest.mark.parametrize("x", [2.0, 2])
def test_numbers_keep_their_dtype(x):
    v = wend.Variable(x)
    run = wend.function(lambda y: v.assign(v * 1 + 0 * y), backend="native")
    for _ in range(CALLS):
        run(x)
        assert v.value.dtype == v.dtype == np.asarray(x).dtype
        assert type(v.value) is v.dtype.type
