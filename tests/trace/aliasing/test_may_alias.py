"""Arrays that reach a function twice: as two arguments, or as an argument and from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import AliasError

W = np.array([1.0, 2.0, 3.0])
BACKENDS = ["native", "numpy"]
SHARING = {
    "itself": lambda w: w,
    "a part": lambda w: w[1:],
    "reversed": lambda w: w[::-1],
    "a column": lambda w: w.reshape(3, 1)[:, 0],
}


class Holder:
    def __init__(self, w: Any) -> None:
        self.w = w


def of_global():
    w = np.array([1.0, 2.0, 3.0])
    holder = Holder(w)

    def read_after(a, x):
        a[0] = 7.0
        return (w * x).sum()

    def read_in_the_loop(a, x):
        for i in range(len(a)):
            a[i] = 7.0
            x = x + w[i]
        return x

    def read_in_a_branch(a, x):
        a[0] = 7.0
        y = x * np.ones(3)
        if x > 1:
            y = y * w
        return y

    def attribute(a, x):
        a[-1] = 7.0
        return (holder.w * x).sum()

    def returned(a, x):
        a += x
        return w

    def in_a_helper(a, x):
        def helper():
            return (w * x).sum()

        a[0] = 7.0
        return helper()

    return w, (read_after, read_in_the_loop, read_in_a_branch, attribute, returned, in_a_helper)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("number", range(6))
def test_an_array_of_outside_that_is_an_argument_is_refused_where_it_would_show(
    number: int, backend: str
) -> None:
    w, functions = of_global()
    fun = functions[number]
    captured = wend.function(fun, backend=backend)
    inner = wend.function(lambda a, x: captured(a, x), backend=backend)
    for _ in range(3):
        for each in (captured, inner):
            a = np.ones(3)
            expected_a = a.copy()
            expected = fun(expected_a, 2.0)
            np.testing.assert_array_equal(each(a, 2.0), expected)
            np.testing.assert_array_equal(a, expected_a)
            for share in SHARING.values():
                if len(share(w)) == 3:
                    with pytest.raises(AliasError, match=r"the array f64\[3\] of outside"):
                        each(share(w), 2.0)
        np.testing.assert_array_equal(w, [1, 2, 3])  # nothing was written
    if number != 1:
        with pytest.raises(AliasError):
            captured(w[1:], 2.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_that_is_a_view_of_outside(backend: str) -> None:
    base = np.arange(6.0)
    view = base[2:5]
    fun = wend.function(lambda a, x: a.__setitem__(0, x) or (view * x).sum(), backend=backend)
    for _ in range(3):
        with pytest.raises(AliasError):
            fun(base[:3], 2.0)
        base[:] = np.arange(6.0)
        assert fun(base[:2], 2.0) == 18.0  # beside the view
        assert base[0] == 2.0


def read_before(a, x):
    s = (W * x).sum()
    a[0] = 7.0
    return s


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_array_that_is_read_before_may_be_an_argument(backend: str) -> None:
    fun = wend.function(read_before, backend=backend)
    before = W.copy()
    try:
        for share in SHARING.values():
            for _ in range(3):
                W[:] = before
                assert fun(share(W), 2.0) == 12.0
                assert (W == 7.0).sum() == 1
    finally:
        W[:] = before


# Arguments of functions that are called in a trace
def changes_first(a, b):
    a[1] = 7.0
    return b.sum()


@pytest.mark.parametrize(
    ("split", "overlap"),
    [
        (lambda a: (a, a), True),
        (lambda a: (a, a[1:]), True),
        (lambda a: (a[1:], a), True),
        (lambda a: (a[::2], a[2:]), True),
        (lambda a: (a.reshape(2, 2)[0], a), True),
        (lambda a: (a.reshape(2, 2).T, a.reshape(2, 2)), True),
        (lambda a: (a[:2], a[2:]), False),
        (lambda a: (a[::2], a[1::2]), False),
        (lambda a: (a, a * 1.0), False),
        (lambda a: (a * 1.0, a), False),
    ],
)
def test_parts_of_one_array_as_arguments_in_a_trace(
    split: Callable[[Any], Any], overlap: bool
) -> None:
    inner = wend.function(changes_first)

    def outer(a):
        first, second = split(a)
        if first.ndim == 2:
            first[1] = 0.0
        return inner(first, second), a.sum()

    def plain(a):
        first, second = split(a)
        return changes_first(first, second), a.sum()

    captured = wend.function(outer)
    for _ in range(3):
        a = np.arange(4.0)
        if overlap:
            with pytest.raises(AliasError, match="are one array, or parts of one"):
                captured(a)
        else:
            expected_a = a.copy()
            assert captured(a) == plain(expected_a)
            np.testing.assert_array_equal(a, expected_a)


def test_what_may_be_an_argument_as_another_in_a_trace() -> None:
    inner = wend.function(changes_first)

    @wend.function
    def outer(a, b, x):
        c = a if x > 1 else b
        return inner(a, c)

    with pytest.raises(AliasError):
        outer(np.arange(4.0), np.ones(4), 2.0)


# Results
def same(a):
    return a


def parts(a):
    return a, a[1:], a.T, a.reshape(3, 1), a


def one_array_twice(a):
    y = a * 2.0
    return y, y, y[1:]


def changed(a):
    a[0] = 7.0
    return a, a


def chosen(a):
    return a if a[0] > 0.5 else a[::-1]


def outside(a):
    return W, W[1:]


def leaves(result: Any) -> list[Any]:
    return [x for part in result for x in leaves(part)] if type(result) is tuple else [result]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fun", [same, parts, one_array_twice, changed, chosen, outside])
def test_results_are_new_arrays(fun: Callable[..., Any], backend: str) -> None:
    """At every stage of a call, for every transform that gives the value."""
    captured = wend.function(fun, backend=backend)
    calls = [captured] * 4
    if fun is not changed:  # derivatives refuse changes of arguments
        calls += [
            lambda a: captured.get_concrete_function(a)(a),
            lambda a: captured.get_concrete_function(a).forward(a)[0],
            lambda a: wend.vjp(captured, a)[0],
            lambda a: wend.jvp(captured, (a,), (a,)),
            lambda a: wend.linearize(captured, a)[0],
            wend.function(lambda a: captured(a), backend=backend),
        ]
    for call in calls:
        a = np.arange(1.0, 4.0)
        found = leaves(call(a))
        for k, array in enumerate(found):
            assert array.flags.writeable
            assert not any(np.shares_memory(array, x) for x in (a, W, *found[:k]))


def test_results_are_new_arrays_in_a_trace() -> None:
    copied = wend.function(same)

    @wend.function
    def outer(a):
        y = copied(a)
        y[0] = 50.0
        return a.sum(), y.sum()

    for _ in range(3):
        assert outer(np.arange(3.0)) == (3.0, 53.0)
