"""`grad`, `value_and_grad`: their interface. What they compute is in `tests/programs`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.traces import at_trace

import wend
import wend.numpy as wnp
from wend.base.errors import NotDifferentiableError


# argnums
@pytest.mark.parametrize("options", [{}, {"eager": True}])
def test_a_list_that_is_passed_twice_has_two_gradients(options):
    def loss(v, w, m):
        return sum(a * b * b for a, b in zip(v, w, strict=True)) + m["a"][0]

    xs = [2.0, 3.0]
    with wend.config(**options):
        gradients = wend.grad(loss, argnums=(0, 1))(xs, xs, {"a": xs})
    assert gradients == ([4.0, 9.0], [8.0, 18.0])
    assert xs == [2.0, 3.0]


def test_argnums():
    def fun(x, y, z):
        return x * y * y * wnp.sum(z)

    z = np.ones(2)
    assert wend.grad(fun)(2.0, 3.0, z) == 18.0
    assert wend.grad(fun, 1)(2.0, 3.0, z) == 24.0
    assert wend.grad(fun, -2)(2.0, 3.0, z) == 24.0
    dy, dx = wend.grad(fun, (1, 0))(2.0, 3.0, z)
    assert (dx, dy) == (18.0, 24.0)
    (dz,) = wend.grad(fun, [2])(2.0, 3.0, z)
    np.testing.assert_array_equal(dz, [18, 18])
    assert wend.grad(fun, ())(2.0, 3.0, z) == ()


def test_value_and_grad():
    value, (dx, dy) = wend.value_and_grad(lambda x, y: x * y, (0, 1))(2.0, 3.0)
    assert (value, dx, dy) == (6.0, 3.0, 2.0)
    assert type(value) is type(dx) is np.float64


def test_keyword_arguments():
    def fun(x, k=2.0, *, s=1.0):
        return x * x * k * s

    assert wend.grad(fun)(3.0) == 12.0
    assert wend.grad(fun)(3.0, k=4.0) == 24.0
    assert wend.grad(fun)(3.0, 4.0, s=0.5) == 12.0
    assert wend.grad(fun, 1)(3.0, 4.0) == 9.0


# Structures
def test_pytrees():
    def fun(p):
        return wnp.sum(p["w"] * p["w"]) * p["s"][0] * p["n"] + p["unused"]

    p = {"w": np.arange(3.0), "s": (2.0, None), "n": 3, "unused": np.float32(1), "i": np.arange(2)}
    found = wend.grad(fun)(p)
    np.testing.assert_array_equal(found["w"], [0, 12, 24])
    assert found["s"] == (15.0, None)
    assert found["n"] is None  # integers have no derivative
    assert found["i"] is None
    assert (found["unused"], found["unused"].dtype) == (1.0, np.float32)


def test_python_integer_becomes_a_float():
    assert wend.grad(lambda x: x * x)(3) == 6.0
    value, slope = wend.value_and_grad(lambda x: x**2)(3)
    assert (value, slope) == (9.0, 6.0)
    assert wend.grad(lambda x: x * np.float32(2))(3).dtype == np.float64
    assert wend.grad(wend.grad(lambda x: x * x * x))(2) == 12.0


@pytest.mark.parametrize("bad", [True, np.int64(3), np.arange(3), np.array([True])])
def test_integers_are_refused(bad):
    with pytest.raises(NotDifferentiableError, match="argument 0"):
        wend.grad(lambda x: wnp.sum(x * 1.0))(bad)


def test_unconnected_is_zero():
    y = np.ones((2, 3), np.float32)
    dx, dy = wend.grad(lambda x, y: x * 2.0, (0, 1))(1.0, y)
    assert dx == 2.0
    np.testing.assert_array_equal(dy, np.zeros((2, 3)))
    assert dy.dtype == np.float32
    assert wend.grad(lambda x: 3.0)(1.0) == 0.0
    assert wend.grad(lambda x: wend.stop_gradient(x) * 2.0)(1.0) == 0.0
    assert wend.grad(lambda x: wnp.floor(x) * 1.0)(1.5) == 0.0
    dy[...] = 5.0  # it is the caller's


def test_has_aux():
    def fun(x):
        return x * x, {"x": x, "n": 3, "none": None}

    slope, aux = wend.grad(fun, has_aux=True)(2.0)
    assert (slope, aux) == (4.0, {"x": 2.0, "n": 3, "none": None})
    (value, aux), slope = wend.value_and_grad(fun, has_aux=True)(2.0)
    assert (value, slope, aux["x"]) == (4.0, 4.0, 2.0)
    value, pullback, aux = wend.vjp(fun, 2.0, has_aux=True)
    assert (value, aux["n"], pullback(1.0)) == (4.0, 3, (4.0,))


def test_dtype_follows_the_argument():
    for dtype in (np.float32, np.float64):
        found = wend.grad(lambda x: wnp.sum(wnp.sin(x)))(np.ones(2, dtype))
        assert found.dtype == dtype
        found = wend.grad(lambda x: wnp.sum(x.astype("float64")))(np.ones(2, dtype))
        assert found.dtype == dtype


# Inside traces
def descend(gradient):
    return lambda x: wend.fori_loop(0, 5, lambda i, x: x - 0.1 * gradient(x), x)


def test_gradients_in_a_loop():
    """Gradient descent in a loop, and its own derivative."""
    by_grad = descend(wend.grad(lambda y: y * y * y))
    by_vjp = descend(lambda x: wend.vjp(lambda y: y * y * y, x)[1](1.0)[0])
    plain = descend(lambda x: 3.0 * x * x)
    for fun in (by_grad, by_vjp):
        assert fun(0.5) == pytest.approx(plain(0.5), rel=1e-12)
        assert wend.grad(fun)(0.5) == pytest.approx(wend.grad(plain)(0.5), rel=1e-12)
        second = wend.grad(wend.grad(fun))(0.5)
        assert second == pytest.approx(wend.grad(wend.grad(plain))(0.5), rel=1e-12)


def test_gradient_of_a_loop_in_a_body():
    """grad of a while inside the body of a while."""

    def inner(y):
        return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, y)

    def fun(x):
        return wend.while_loop(lambda v: v < 100.0, lambda v: v + wend.grad(inner)(v), x)

    def plain(x):
        while x < 100:
            slope, v = 1.0, x
            while v < 8:
                slope, v = slope * 2 * v, v * v
            x = x + slope
        return x

    x, h = 2.1, 1e-6
    assert fun(x) == plain(x)
    assert wend.grad(fun)(x) == pytest.approx((plain(x + h) - plain(x - h)) / (2 * h), rel=1e-6)


def test_closures_over_traced_values():
    def outer(x):
        y = x * 2.0
        return wend.grad(lambda z: z * z * y)(x) + wend.vjp(lambda z: z * y, x)[1](1.0)[0]

    # d/dz (z² y) + y at z = x: 4x² + 2x
    assert wend.function(outer)(3.0) == 42.0
    assert wend.grad(outer)(3.0) == 26.0
    assert wend.grad(wend.grad(outer))(3.0) == 8.0


def test_gradient_of_a_decorated_function_traces_it_once_per_signature():
    python = []
    note = at_trace(python)

    @wend.function
    def fun(x):
        note(x)
        return x * x

    slope = wend.grad(fun)
    assert [slope(1.0), slope(2.0), slope(3.0)] == [2.0, 4.0, 6.0]
    assert len(python) == slope.trace_count == 1


def test_call_of_calls():
    inner = wend.function(lambda x, y: (x * y, wnp.sin(x)))
    middle = wend.function(lambda x: inner(x, x)[0] * inner(x, 2.0)[1])
    fun = wend.function(lambda x: middle(x) + middle(x * 2.0))
    found = orders(fun, 0.7)
    expected = orders(lambda x: x * x * wnp.sin(x) + 4 * x * x * wnp.sin(2 * x), 0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def orders(fun, at, count=4):
    found = []
    for _ in range(count):
        found.append(fun(at))
        fun = wend.grad(fun)
    return found


def test_t100_orders_of_cos():
    s, c = np.sin(1.0), np.cos(1.0)
    np.testing.assert_allclose(orders(wnp.cos, 1.0, 6), [c, -s, -c, s, c, -s])


# Complex numbers (D19)
def test_complex():
    z = 1.0 + 2.0j
    assert wend.grad(lambda z: wnp.real(z))(z) == 1.0
    assert wend.grad(lambda z: wnp.imag(z))(z) == -1.0j
    np.testing.assert_allclose(wend.grad(lambda z: wnp.abs(z) ** 2)(z), 2 - 4j)
    np.testing.assert_allclose(wend.grad(lambda z: wnp.real(z * z))(z), 2 * z)
    _, pullback = wend.vjp(lambda z: z * z, z)
    np.testing.assert_allclose(pullback(1.0 + 0j), (2 * z,))
    np.testing.assert_allclose(pullback(1j), (2j * z,))


def test_complex_in_a_loop():
    def fun(z):
        return wnp.real(wend.fori_loop(0, 3, lambda i, v: v * v + z, 0.0 * z))

    def plain(x, y):
        z = complex(x, y)
        v = 0.0
        for _ in range(3):
            v = v * v + z
        return v.real

    found, h = wend.grad(fun)(0.3 + 0.4j), 1e-6
    dx = (plain(0.3 + h, 0.4) - plain(0.3 - h, 0.4)) / (2 * h)
    dy = (plain(0.3, 0.4 + h) - plain(0.3, 0.4 - h)) / (2 * h)
    np.testing.assert_allclose(found, dx - 1j * dy, rtol=1e-8)
    assert found.dtype == np.complex128


def test_a_weak_carry_meets_a_complex():
    def fun(z):
        return wnp.abs(wend.fori_loop(0, 3, lambda i, v: v * z + 1, 0))

    # v = z² + z + 1
    found, z, h = wend.grad(fun)(0.3 + 0.4j), 0.3 + 0.4j, 1e-6
    plain = [abs((z + d) ** 2 + (z + d) + 1) for d in (h, -h, h * 1j, -h * 1j)]
    np.testing.assert_allclose(
        found, (plain[0] - plain[1]) / (2 * h) - 1j * (plain[2] - plain[3]) / (2 * h), rtol=1e-8
    )
