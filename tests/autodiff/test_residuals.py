"""What is kept for a backward pass, and that choosing it takes no longer than it should."""

from __future__ import annotations

import time

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import gradient, loops, pushes


def chain(n, free):
    """A body of n products in a row, of the carry or of an invariant."""

    def fun(x, a):
        def body(i, v):
            c = a if free else v
            for _ in range(n):
                c = c * c * 0.5 + 0.4
            return v * c * 0.9

        return wend.fori_loop(0, 2, body, x)

    return fun


@pytest.mark.parametrize("free", [True, False])
def test_long_chains(free):
    """Neither a stack of Python frames for each link, nor twice the work for each (x·x)."""
    start = time.process_time()
    slopes = wend.grad(chain(300, free), (0, 1))(0.3, 0.5)
    assert time.process_time() - start < 10
    h = 1e-30j
    plain = [_plain(300, free, 0.3 + h, 0.5), _plain(300, free, 0.3, 0.5 + h)]
    np.testing.assert_allclose(slopes, np.imag(plain) / 1e-30, rtol=1e-9, atol=1e-12)


def _plain(n, free, x, a):
    for _ in range(2):
        c = a if free else x
        for _ in range(n):
            c = c * c * 0.5 + 0.4
        x = x * c * 0.9
    return x


def records(fun, *args):
    """How many records each list of a run holds."""
    residuals = wend.vjp(fun, *args)[1].residuals
    return sorted(len(r.items()) for r in residuals if hasattr(r, "items"))


def test_one_record_a_trip():
    """A carry that only the body reads is not recorded at the exit."""
    assert records(lambda x: wend.fori_loop(0, 5, lambda i, v: wnp.sin(v), x), 0.3) == [5]
    assert records(lambda x: wend.fori_loop(0, 0, lambda i, v: wnp.sin(v), x), 0.3) == [0]


def test_the_exit_is_recorded_where_it_is_read():
    """tanh(v·c): the derivative reads tanh's result, which is the next carry."""

    def fun(x, c):
        return wnp.sum(wend.fori_loop(0, 5, lambda i, v: wnp.tanh(v * c), x))

    assert len(pushes(gradient(fun, 0.3, 0.7, argnums=(0, 1)))) == 1


def test_counting_down_is_counting():
    """A counter that goes down is not recorded either."""

    def fun(x):
        def body(s):
            return s[0] - 2, wnp.sin(s[1]) * s[0]

        return wend.while_loop(lambda s: s[0] > 0, body, (9, x))[1]

    graph = gradient(fun, 0.3)
    assert [str(push.operands[1].type) for push in pushes(graph)] == ["f64[]"]
    k, x = 9, 0.3 + 1e-30j
    while k > 0:
        k, x = k - 2, np.sin(x) * k
    np.testing.assert_allclose(wend.grad(fun)(0.3), np.imag(x) / 1e-30, rtol=1e-12)


def test_a_list_that_is_there_is_not_recorded_again():
    """T61: what a body reads from a list by position, its gradient reads there too."""
    xs = np.linspace(0.1, 0.9, 5)

    def fun(c, xs):
        return wend.scan(lambda c, x: (wnp.sin(c) * x, None), c, xs)[0]

    graph = gradient(fun, 0.3, xs, argnums=(0, 1))
    assert len(pushes(graph)) == 1  # the carry; not the rows
    assert len(loops(graph)) == 2
