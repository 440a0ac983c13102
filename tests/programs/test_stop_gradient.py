"""`stop_gradient`: the value goes on, no derivative does."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import gradient, names, pushes


def test_at_once_and_recorded():
    x = np.array([1.0, 2.0])
    assert wend.stop_gradient(x) is x
    assert wend.stop_gradient(3) == 3
    np.testing.assert_array_equal(wend.function(lambda v: wend.stop_gradient(v))(x), x)
    assert wend.function(lambda n: wend.stop_gradient(n))(3) == 3


def test_every_order():
    fun = lambda x: x * wend.stop_gradient(x) * x  # noqa: E731
    assert wend.grad(fun)(3.0) == 18.0  # 2·x·c with c = x held
    assert wend.grad(wend.grad(fun))(3.0) == 6.0  # of 2·x·c: c is held at this order too
    assert wend.grad(lambda x: wend.stop_gradient(wend.grad(fun)(x)))(3.0) == 0.0


def test_a_held_gradient_is_a_number():
    """One step of descent with the gradient held: the step itself does not depend on x."""

    def stepped(x):
        return x - 0.1 * wend.stop_gradient(wend.grad(lambda v: v**3)(x))

    assert wend.grad(stepped)(2.0) == 1.0
    assert wend.grad(lambda x: x - 0.1 * wend.grad(lambda v: v**3)(x))(2.0) == pytest.approx(-0.2)


def test_in_loops():
    def fun(x):
        return wend.fori_loop(0, 3, lambda i, v: v * wend.stop_gradient(v), x)

    # v ↦ v·c: the slope is the product of the held values x, x², x⁴
    assert wend.grad(fun)(2.0) == 2.0 * 4.0 * 16.0
    assert wend.grad(wend.grad(fun))(2.0) == 0.0  # a product of what is held

    def captured(x):
        n = 0
        while n < 3:
            x = x * wend.stop_gradient(x)
            n += 1
        return x

    assert wend.grad(captured)(2.0) == 128.0


def test_a_carry_that_is_only_held_is_not_recorded():
    def fun(x):
        def body(i, c):
            v, w = c
            return wnp.sin(v), w + wend.stop_gradient(wnp.exp(v))

        return wend.fori_loop(0, 3, body, (x, x))[1]

    graph = gradient(fun, 0.3)
    assert pushes(graph) == []
    assert wend.grad(fun)(0.3) == 1.0


def test_a_whole_loop_is_held():
    def fun(x):
        root = wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)
        return wend.stop_gradient(root) * x

    assert wend.grad(fun)(2.0) == 16.0
    assert names(gradient(fun, 2.0)).count("while") == 1


def test_in_branches():
    def fun(x):
        return wend.cond(x > 0, lambda: wend.stop_gradient(x) * x, lambda: x * x)

    assert wend.grad(fun)(3.0) == 3.0
    assert wend.grad(fun)(-3.0) == -6.0


def test_in_checkpoints_and_rules():
    fun = wend.checkpoint(lambda x: x * wend.stop_gradient(x))
    assert wend.grad(fun)(3.0) == 3.0
    ruled = wend.custom_vjp(lambda x: x)
    ruled.defvjp(lambda x: (x, x), lambda x, ct: (ct * wend.stop_gradient(x) * x,))
    assert wend.grad(ruled)(3.0) == 9.0
    assert wend.grad(wend.grad(ruled))(3.0) == 3.0


def test_integers_and_arrays():
    found = wend.grad(lambda v: wnp.sum(v * wend.stop_gradient(v[::-1])))(np.array([1.0, 2.0, 5.0]))
    np.testing.assert_array_equal(found, [5.0, 2.0, 1.0])
    assert wend.grad(lambda x: x * wend.stop_gradient(3))(2.0) == 3.0
