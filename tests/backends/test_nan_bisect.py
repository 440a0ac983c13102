"""Where a NaN or an inf comes from, on each backend."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import NotFiniteError

pytestmark = pytest.mark.parametrize("backend", ["numpy", "native"])


@pytest.fixture(autouse=True)
def _on(backend):
    with wend.config(backend=backend, nans=True):
        yield


@wend.function
def logs(x):
    y, n = x, 0
    while n < 10:
        y = wnp.log(y)
        n = n + 1
    return y * 2.0


FORMS = {
    "value": lambda x: logs(x),
    "grad": lambda x: wend.grad(logs)(x),
    "second": lambda x: wend.grad(wend.grad(logs))(x),
    "vjp": lambda x: wend.vjp(logs, x)[1](1.0),
    "jvp": lambda x: wend.jvp(logs, (x,), (1.0,)),
    "hessian": lambda x: wend.hessian(logs)(x),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_line_and_the_trip_are_told(form):
    line = logs.__wrapped__.__code__.co_firstlineno
    with pytest.raises(NotFiniteError) as caught:
        FORMS[form](5.0)
    text = str(caught.value)
    assert f"NaN, which first came from log at test_nan_bisect.py:{line + 4}." in text
    assert f"trip 4 of the loop at test_nan_bisect.py:{line + 3}" in text
    assert "-0.742579" in text


def test_it_can_be_switched_off_and_on():
    with wend.config(nans=False):
        assert np.isnan(logs(5.0))
    with pytest.raises(FloatingPointError):
        logs(5.0)
    with wend.config(nans=False):
        assert np.isnan(logs(5.0))


def test_trips_of_nested_loops():
    @wend.function
    def fun(x, n):
        for i in range(n):
            for j in range(n):
                if i == 1 and j == 0:
                    x = wnp.sqrt(-x)
        return x

    with pytest.raises(NotFiniteError, match=r"from sqrt.*\n.*\n  in trip 1 of .*, in trip 2 of "):
        fun(np.ones(3), 3)


def test_trips_that_are_counted_are_those_of_the_loop_around_too():
    @wend.function
    def fun(x):
        total, k, i = 0.0, 0, 0
        while i < 3:
            while k < 10 * i:
                k = k + 1
                total = total + wnp.log(x - k)
            i = i + 1
        return total

    line = fun.__wrapped__.__code__.co_firstlineno
    with pytest.raises(NotFiniteError) as caught:
        fun(4.5)
    text = f"in trip 5 of the loop at test_nan_bisect.py:{line + 4}, in trip 2 of the loop"
    assert text in str(caught.value)


def test_an_inf_is_told_and_so_is_where_a_nan_has_its_inf_from():
    with pytest.raises(NotFiniteError, match="has inf, which first came from exp"):
        wend.function(lambda x: wnp.exp(x) + 1.0)(1000.0)
    with pytest.raises(NotFiniteError, match=r"(?s)from sub.*the inf came from exp"):
        wend.function(lambda x: wnp.exp(x) - wnp.exp(2.0 * x))(1000.0)


def test_what_was_there_from_the_start_goes_through():
    double = wend.function(lambda x: x * 2.0)
    assert np.isnan(double(np.nan))
    assert np.isinf(double(np.inf))
    smallest = wend.function(lambda x: wnp.minimum(np.inf, x) + np.inf)
    assert np.isinf(smallest(1.0))


def test_what_no_result_depends_on_goes_through():
    guarded = wend.function(lambda x: wnp.where(x > 0.0, wnp.log(x), 0.0))
    np.testing.assert_array_equal(guarded(np.zeros(3)), np.zeros(3))
    value, pull = wend.vjp(guarded, np.zeros(30))  # keeps 1 / 0 for the backward pass
    np.testing.assert_array_equal(value, np.zeros(30))
    with pytest.raises(NotFiniteError, match="mul"):
        pull(np.ones(30))


def test_effects_happen_once(capsys):
    seen = wend.Variable(0)

    @wend.function
    def fun(x):
        print("ran")
        seen.assign_add(1)
        return wnp.log(x)

    with pytest.raises(NotFiniteError, match="log"):
        fun(-1.0)
    assert capsys.readouterr().out == "ran\n"
    assert seen.value == 1
    assert fun(1.0) == 0.0
    assert seen.value == 2


def hosted(x):
    def drawn(a):
        return np.log(a)

    with np.errstate(invalid="ignore"):
        for _ in range(3):
            x = wend.py_function(drawn, x, x) - 1.0
        return x


@pytest.mark.parametrize("derive", [lambda f: f, wend.value_and_grad])
def test_what_python_gives_in_a_loop_is_told(derive):
    line = hosted.__code__.co_firstlineno
    with pytest.raises(NotFiniteError) as caught, np.errstate(invalid="ignore"):
        derive(wend.function(hosted))(5.0)
    text = str(caught.value)
    assert "NaN, which first came from py_function" in text
    assert f"at test_nan_bisect.py:{line + 6}.\n  its operand was -1.495218" in text
    assert f"trip 3 of the loop at test_nan_bisect.py:{line + 5}" in text


def test_the_pull_of_a_call_of_python_is_told():
    def root(x):
        return wend.py_function(wnp.sqrt, x, x)

    with pytest.raises(NotFiniteError, match="inf, which first came from py_pull"):
        wend.grad(root)(0.0)


def test_lists_of_records_are_no_origin():
    def total(x):
        out = []
        for k in range(5):
            out.append(wnp.log(x - k))
        return wnp.stack(out).sum()

    with pytest.raises(NotFiniteError, match="log"):
        wend.value_and_grad(total)(2.5)


def test_tapes():
    with wend.GradientTape() as tape:
        x = wend.Variable(5.0)
        y = wend.function(lambda v: wnp.sqrt(v - 5.0))(x)
    with pytest.raises(NotFiniteError, match="inf"):
        tape.gradient(y, x)


def test_complex_numbers():
    with pytest.raises(NotFiniteError, match="div"):
        wend.function(lambda z: (z - z) / (z - z))(1.0 + 2.0j)


def test_threads_do_not_mix():
    found = []

    def call(x):
        try:
            with wend.config(nans=True):
                found.append(logs(x))
        except NotFiniteError as error:
            found.append(str(error).split("\n")[2])

    threads = [threading.Thread(target=call, args=(x,)) for x in (5.0, 2.0, 5.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 2
