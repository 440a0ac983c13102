"""Calls of Python that derivatives do not follow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wend
from wend.base.errors import TypeMismatchError


@pytest.fixture(params=["numpy", "native"], autouse=True)
def backend(request):
    with wend.config(backend=request.param):
        yield request.param


def floored(x):
    return wend.numpy_function(math.floor, wend.TensorSpec([]), x) * x


def test_its_result_is_a_constant_of_every_order_and_mode():
    assert floored(2.5) == wend.function(floored)(2.5) == 5.0
    assert wend.grad(floored)(2.5) == 2.0
    assert wend.jvp(floored, (2.5,), (1.0,)) == (5.0, 2.0)
    assert wend.grad(wend.grad(floored))(2.5) == 0.0
    with wend.GradientTape() as tape:
        x = wend.Variable(2.5)
        y = floored(x)
    assert tape.gradient(y, x) == 2.0


def test_it_runs_once_per_call_in_order_also_if_nothing_reads_it():
    seen = []

    def note(tag, values):
        seen.append((tag, float(values["x"])))
        return values["x"]

    @wend.function
    def fun(x):
        for _ in range(2):
            wend.numpy_function(note, x, "trip", {"x": x})
            x = x + 1.0
        return x

    assert wend.grad(fun)(1.0) == 1.0
    assert seen == [("trip", 1.0), ("trip", 2.0)]


def test_it_refuses_what_py_function_refuses():
    with pytest.raises(TypeMismatchError, match="takes a function"):
        wend.numpy_function(1.0, None)
    with pytest.raises(TypeMismatchError):
        wend.function(lambda x: wend.numpy_function(lambda v: np.ones(3), x, x))(1.0)
