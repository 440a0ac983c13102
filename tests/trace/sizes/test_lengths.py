"""The length of a list that loops have grown is known where nothing decides it in the run."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend


def shape(fun, *args) -> str:
    """The type of the one result."""
    (result,) = traced(fun, *args).results
    return str(result.type)


def once(x):
    out = []
    for _ in range(5):
        x = x * 2.0
        out.append(x)
    return np.array(out)


def from_some(x):
    out = [x, x]
    for k in range(2, 9, 3):
        out.append(x * k)
        out.append(x)
    out.append(x)
    return np.array(out)


def nested(x):
    out = []
    for i in range(3):
        out.append(x)
        for j in range(4):
            out.append(x * i * j)
    return np.array(out)


def downwards(x):
    out = []
    for k in range(6, 0, -2):
        out.append(x * k)
    return np.array(out)


def rows(x):
    out = []
    for row in x:
        out.append(row * 2.0)
    return np.array(out)


def until(x):
    out = []
    while x < 100.0:
        x = x * 2.0
        out.append(x)
    return np.array(out)


def by_break(x):
    out = []
    for _ in range(5):
        out.append(x)
        x = x * 2.0
        if x > 10.0:
            break
    return np.array(out)


def sometimes(x):
    out = []
    for k in range(5):
        if x > k:
            out.append(x)
    return np.array(out)


def popped(x):
    out = [x]
    for _ in range(5):
        out.append(x)
        out.append(x)
        out.pop()
    return np.array(out)


def by_data(x, n):
    out = []
    for _ in range(n):
        out.append(x)
    return np.array(out)


@pytest.mark.parametrize(("fun", "size"), [(once, 5), (from_some, 9), (nested, 15), (downwards, 3)])
def test_known(fun, size):
    assert shape(fun, 1.5) == f"f64[{size}]"
    np.testing.assert_array_equal(wend.function(fun)(1.5), fun(1.5))


@pytest.mark.parametrize("fun", [until, by_break, sometimes, popped])
def test_not_known(fun):
    assert not shape(fun, 1.5)[len("f64[") :].startswith(tuple("0123456789"))
    np.testing.assert_array_equal(wend.function(fun)(1.5), fun(1.5))


def test_as_many_as_there_are_rows():
    graph = traced(rows, wend.TensorSpec([None, 3], "float64"))
    assert graph.results[0].type == graph.params[0].type
    assert shape(rows, np.ones((4, 3))) == "f64[4,3]"
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(wend.function(rows)(x), x * 2.0)


def test_items_of_a_size_that_the_run_tells():
    fun = wend.function(rows, input_signature=[wend.TensorSpec([None, None])])
    for shape in ((3, 2), (0, 2)):
        np.testing.assert_array_equal(fun(np.ones(shape)), np.full(shape, 2.0))
    slope = wend.grad(lambda x: np.sum(fun(x) ** 2))(np.ones((2, 3)))
    np.testing.assert_array_equal(slope, np.full((2, 3), 8.0))


def test_as_many_as_the_data_say():
    fun = wend.function(by_data)
    assert [fun(1.0, n).shape for n in (0, 3)] == [(0,), (3,)]
    assert fun.trace_count == 1


def test_the_shape_is_there_for_python():
    def fun(x):
        stacked = once(x)
        return stacked.reshape(stacked.shape[0], 1) if len(stacked) == 5 else stacked

    assert shape(fun, 1.0) == "f64[5,1]"
