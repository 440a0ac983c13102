"""Values that depend on outside arrays alone, which Python may ask for."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError

W = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "ask",
    [
        lambda w: float(w[0].item()),
        lambda w: [0.0, 1.0, 5.0][w[1].astype(int)],
        lambda w: len([0] * int(w.sum().item())),
        lambda w: 2.0 if (w > 1.5).any() and not w[0] > 1.5 else 1.0,
        lambda w: np.zeros(w.astype(int)).size,
        lambda w: {2.0: 7.0}[w[1]],
        lambda w: sum(w.tolist()),
    ],
)
def test_python_gets_the_number_under_a_guard(ask):
    w = W.copy()
    fun = wend.function(lambda x: x * ask(w))
    assert (fun(2.0), fun(2.0), fun.trace_count) == (2.0 * ask(w), 2.0 * ask(w), 1)
    w[1] = 2.0
    assert (fun(2.0), fun.trace_count) == (2.0 * ask(w), 1)


def test_inside_regions_invariants_are_known_and_carries_are_not():
    w = W.copy()

    @wend.function
    def invariant(x):
        while x < 10.0:
            x = x * (2.0 if w[0] > 0 else 3.0)
        return x

    assert (invariant(1.0), str(invariant.get_concrete_function(1.0).graph).count("if(")) == (16, 0)
    w[0] = -1.0
    assert invariant(1.0) == 27.0

    @wend.function
    def carried(x):
        y = w
        for _ in range(2):
            y = y * 2.0
            x = x if y[0] > 100.0 else -x
        return x

    assert carried(1.0) == 1.0
    assert "if(" in str(carried.get_concrete_function(1.0).graph)


def test_what_an_argument_decides_stays_unknown():
    fun = wend.function(lambda x: [1.0, 2.0][(W * x).sum().astype(int)] if x > 0 else {}[W[0] * x])
    with pytest.raises(ConcreteValueError):
        fun(-1.0)
    with pytest.raises(IndexError):
        fun(1.0)


def test_functions_that_capture_by_value_keep_their_constants():
    w = W.copy()
    fun = wend.function(lambda x: x * w, capture_by_value=True)
    before = fun(1.0)
    w[0] = 5.0
    np.testing.assert_array_equal(fun(1.0), before)


def test_inner_functions_know_them_too():
    w = W.copy()
    inner = wend.function(lambda x: x if w[0] > 0 else -x)
    outer = wend.function(lambda x: inner(x) + w[1])
    assert outer(1.0) == 3.0
    w[0] = -1.0
    assert outer(1.0) == 1.0
