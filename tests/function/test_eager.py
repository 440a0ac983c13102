"""`config(eager=True)`: Python runs at every call, with the results of the compiled function."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import ConcreteValueError, NotDifferentiableError, TypeMismatchError


@pytest.fixture(autouse=True)
def eager():
    with wend.config(eager=True):
        yield


def test_python_runs_at_every_call(capsys):
    seen = []

    @wend.function
    def fun(x):
        print("now", x)
        seen.append(type(x))
        while x < 100.0:
            x = x * x
        return x

    assert (fun(np.float64(2.0)), fun(np.float64(3.0))) == (256.0, 6561.0)
    assert (seen, fun.trace_count) == ([np.float64] * 2, 0)
    assert capsys.readouterr().out == "now 2.0\nnow 3.0\n"
    wend.grad(fun)(2.0)
    assert capsys.readouterr().out == "now 2.0\n"


def test_results_are_those_of_compiled_functions():
    fun = wend.function(lambda x, n: (x, x * 2.0, [n, None], wnp.sum(x)))
    x = np.ones(3)
    same, _, (n, none), total = fun(x, 3)
    assert same is not x
    assert (type(n), none, type(total)) == (np.int64, None, np.float64)
    same[0] = 5.0
    assert x[0] == 1.0
    assert type(wend.function(lambda: 2.0)()) is np.float64
    with pytest.raises(TypeMismatchError, match="returns object"):
        wend.function(lambda: object())()


def test_input_signatures_hold():
    fun = wend.function(lambda x: x, input_signature=[wend.TensorSpec([2], "float32")])
    assert fun([1, 2]).dtype == np.float32
    with pytest.raises(TypeMismatchError):
        fun(np.ones(3))


def test_gradients_follow_python():
    def fun(x):
        values = []
        n = int(x[0])
        for k in range(n):
            values.append(x[k % len(x)] * k)
        return wnp.sum(wnp.stack(values)) if values else 0.0

    np.testing.assert_array_equal(wend.grad(fun)(np.array([4.0, 1.0])), [2, 4])
    np.testing.assert_array_equal(wend.grad(fun)(np.array([0.5, 1.0])), [0, 0])


def test_grad_is_the_compiled_one():
    def fun(p, k=2.0, *, s=1.0):
        return (wnp.sum(p["w"] * p["w"]) * k * s * p["n"], {"aux": p["w"]})

    p = {"w": np.arange(3.0), "n": 3, "unused": np.float32(1)}
    (value, aux), grads = wend.value_and_grad(fun, has_aux=True)(p, s=0.5)
    assert (value, grads["n"], grads["unused"]) == (15.0, None, 0.0)
    assert grads["unused"].dtype == np.float32
    np.testing.assert_array_equal(grads["w"], [0, 6, 12])
    np.testing.assert_array_equal(aux["aux"], p["w"])
    assert wend.grad(lambda x, y: x * y * y, (1, 0))(2.0, 3.0) == (12.0, 9.0)
    assert wend.grad(lambda x: x * x)(3) == 6.0


@pytest.mark.parametrize(
    ("fun", "x", "message"),
    [
        (lambda x: x * x, np.arange(3), "argument 0"),
        (lambda x: x * x, np.ones(3), "not a real scalar"),
        (lambda x: (x, x), 1.0, "not a scalar"),
        (lambda x: x > 0, 1.0, "not a real scalar"),
    ],
)
def test_mistakes_are_told_as_when_compiled(fun, x, message):
    with pytest.raises(NotDifferentiableError, match=message) as eager:
        wend.grad(fun)(x)
    with wend.config(eager=False), pytest.raises(NotDifferentiableError) as compiled:
        wend.grad(fun)(x)
    assert str(eager.value) == str(compiled.value)


def test_vjp():
    value, pullback, aux = wend.vjp(lambda x, n: ((x * n, 2.0 * x), x), np.ones(2), 3, has_aux=True)
    assert (type(value[0]), type(aux)) == (np.ndarray, np.ndarray)
    for _ in range(2):
        dx, dn = pullback((np.ones(2), np.zeros(2)))
        np.testing.assert_array_equal(dx, [3, 3])
        assert dn is None
    with pytest.raises(ValueError, match="pullback"):
        pullback(1.0)
    with pytest.raises(TypeError, match="pullback"):
        pullback((np.ones(2, np.float32), np.ones(2)))
    with pytest.raises(ValueError, match="pullback"):
        pullback((np.ones(3), np.ones(2)))


def test_a_pullback_stays_outside_traces():
    _, pullback = wend.vjp(lambda x: x * x * x, 2.0)

    def push(ct):
        return wend.jvp(lambda ct: pullback(ct)[0], (ct,), (1.0,))

    for use in (push, lambda x: wend.fori_loop(0, 2, lambda i, v: pullback(v)[0], x)):
        with pytest.raises(NotImplementedError, match=r"call wend\.vjp inside the traced function"):
            use(1.0)
    assert wend.grad(lambda ct: pullback(ct)[0])(1.0) == 12.0


def test_jvp():
    """Forward mode traces in eager mode too; also of an eager gradient, and under one."""

    def fun(x):
        while x < 8.0:
            x = x * x
        return x

    assert wend.jvp(fun, (2.0,), (1.0,)) == (16.0, 32.0)
    assert wend.jvp(wend.grad(fun), (2.0,), (1.0,)) == (32.0, 48.0)
    assert wend.grad(lambda x: wend.jvp(fun, (x,), (1.0,))[1])(2.0) == 48.0
    assert wend.hessian(fun)(2.0) == wend.jacfwd(wend.jacfwd(fun))(2.0) == 48.0
    assert wend.linearize(fun, 2.0)[1](0.5) == 16.0


def test_any_order():
    def fun(x):
        while x < 8.0:
            x = x * x
        return x

    grad = fun
    for expected in (32.0, 48.0, 48.0, 24.0):  # of x⁴ at 2: 4x³, 12x², 24x, 24
        grad = wend.grad(grad)
        assert grad(2.0) == expected


def test_functions_call_functions():
    inner = wend.function(lambda x: x * x)
    outer = wend.function(lambda x: inner(x) + inner(2.0 * x))
    assert (outer(1.0), wend.grad(outer)(1.0)) == (5.0, 10.0)
    looped = wend.function(lambda x: wend.fori_loop(0, 2, lambda i, v: inner(v), x))
    assert (looped(2.0), wend.grad(looped)(2.0)) == (16.0, 32.0)


def test_advice_where_a_number_is_taken_out():
    import math

    with pytest.raises(ConcreteValueError, match=r"wend\.numpy"):
        wend.grad(lambda x: math.sin(x))(1.0)
    assert wend.grad(lambda x: x * math.floor(x))(2.5) == 2.0


def test_a_failing_function_leaves_no_recording():
    def fun(x):
        raise KeyError(x)

    for call in (wend.grad(fun), lambda x: wend.vjp(fun, x), wend.function(fun)):
        with pytest.raises(KeyError):
            call(1.0)
    assert type(wend.function(lambda x: x * x)(2.0)) is np.float64
    from wend.eager.dispatch import recorder

    assert recorder.get() is None


def test_from_the_environment():
    import subprocess
    import sys

    code = "import wend; print(wend.function(lambda x: (print('ran'), x)[1])(1.0))"
    found = subprocess.run(
        [sys.executable, "-c", f"{code}; {code}"],
        env={**__import__("os").environ, "WEND_EAGER": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == ["ran", "1.0"] * 2
