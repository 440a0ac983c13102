"""Integers that Python needs, and that only the run knows: their values are part of a path."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError


def counts(x):
    n = int(x.max()) + 1
    out = [0] * n
    for k in x:
        out[k] += 1
    return out


def means_by_class(y):
    classes = np.unique(y)
    return {k: float(np.sum(y == classes[k])) for k in range(len(classes))}


def item_of_a_mixed_list(y):
    names = [1.0, None, (2.0, 3.0)]
    return names[int(y.sum()) % 3]


def in_a_loop(y):
    k, x = int(y[0]), 1.0
    parts = [2.0, None, 3.0, None]
    while x < 10.0:
        x = x * parts[2 * (k % 2)]
    return x


def grown(y):
    out, x = [], float(y.sum())
    while x > 1.0:
        out.append(x)
        x = x / 2.0
    return len(out) * [sum(out)], [v + 1.0 for v in out]


def filtered(y):
    return [k for k, v in enumerate(y[:3]) if v > 0]


def loop_by_python(y):
    table, total = [[1.0], [2.0, 3.0], [4.0]], 0.0
    for k in range(int(y[0]) % 3 + 1):
        total = total + sum(table[k])
    return total


PROGRAMS = [
    *(counts, means_by_class, item_of_a_mixed_list, in_a_loop, grown, filtered, loop_by_python),
]
ARRAYS = [[0, 1, 1, 2], [3, 0, 0, 1], [0, 1, 1, 2], [1, 1, 1, 1], [5, 2, 0, 2]]


def _numbers(value):
    return wend.tree.map(lambda x: float(x) if x is not None else None, value)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", PROGRAMS)
def test_each_value_gives_what_python_gives(fun, backend):
    traced = wend.function(fun, backend=backend)
    for array in map(np.array, ARRAYS):
        assert _numbers(traced(array)) == _numbers(fun(array))
    count = traced.trace_count
    for array in map(np.array, ARRAYS):
        assert _numbers(traced(array)) == _numbers(fun(array))
    assert traced.trace_count == count


def weighted(x, y):
    total = 0.0
    for weight in [1.0, 2.0, 3.0, 4.0][: int(y.sum())]:
        total = total + weight * x * x
    return total


@pytest.mark.parametrize("y", [[0, 1], [1, 2], [0, 0], [1, 1]])
def test_derivatives_of_any_order(y):
    y = np.array(y)
    factor = weighted(1.0, y)
    assert wend.grad(weighted)(3.0, y) == 6.0 * factor
    assert wend.grad(wend.grad(weighted))(3.0, y) == 2.0 * factor
    assert wend.value_and_grad(weighted)(3.0, y) == (9.0 * factor, 6.0 * factor)
    assert wend.jacfwd(weighted)(3.0, y) == 6.0 * factor


def test_one_derivative_serves_several_values():
    slope = wend.grad(weighted)
    values = [slope(1.0, np.array([k, 0])) for k in (1, 2, 1, 4, 2)]
    assert values == [2.0, 6.0, 2.0, 20.0, 6.0]


def test_explain_tells_the_integers():
    traced = wend.function(counts)
    traced(np.array([0, 2]))
    text = traced.explain()
    assert "it returns the integer that Python needs at test_path_traces_of_integers.py:14" in text
    assert "the integer that Python needs at test_path_traces_of_integers.py:14 is 3" in text


def test_the_argument_is_changed_once():
    @wend.function
    def half(x):
        zeros = int(x.sum()) * [0.0]
        x[0] = x[0] + 1.0
        return [zero + x[0] for zero in zeros]

    array = np.array([2.0, 0.0])
    assert half(array) == [3.0, 3.0]
    assert array.tolist() == [3.0, 0.0]


def test_lists_of_the_caller_are_changed_once():
    @wend.function
    def push(out, x):
        out.append(x[0])
        out.extend([0.0] * int(x.sum()))

    out = []
    push(out, np.array([2.0, 0.0]))
    assert out == [2.0, 0.0, 0.0]


def printed(x):
    print("once")
    return [0.0] * int(x.sum())


def after_a_change(x):
    x[0] = 5.0
    return [0.0] * int(x.sum())


@pytest.mark.parametrize(
    ("fun", "argument"),
    [(printed, np.ones(2)), (after_a_change, np.ones(2))],
)
def test_what_is_refused(fun, argument, capsys):
    with pytest.raises((ConcreteValueError, TypeError)) as caught:
        wend.function(fun)(argument)
    assert "is needed" in str(caught.value) or "repeat count" in str(caught.value)


@pytest.mark.parametrize("kind", [np.int64, np.array])
def test_an_argument_of_no_axes(kind):
    @wend.function
    def zeros(n):
        return [0.0 for _ in range(n)]

    assert [len(zeros(kind(n))) for n in (3, 2, 3)] == [3, 2, 3]


def test_functions_called_by_others_do_not_ask():
    inner = wend.function(counts)

    def outer(x):
        return len(inner(x))

    with pytest.raises((ConcreteValueError, TypeError)):
        wend.function(outer)(np.array([0, 1]))


def test_too_many_integers_are_refused():
    def names(x):
        table = [None, 1.0]
        return [table[int(v)] for v in x]

    with pytest.raises(ConcreteValueError):
        wend.function(names)(np.zeros(20))


def test_what_lists_of_unknown_length_refuse():
    @wend.function
    def array(x):
        out = []
        while x > 1.0:
            out.append(x)
            x = x / 2.0
        return len(set(out))

    with pytest.raises(ConcreteValueError, match="needs its length"):
        array(5.0)
