"""Operators that a user's class defines are captured calls; programs are in tests/semantics."""

import numpy as np
import pytest

import wend


class Clamped:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        if not isinstance(other, float):
            return NotImplemented
        return Clamped(self.x + other if self.x < 1 else 3 * self.x)

    def __getitem__(self, power):
        return self.x**power if isinstance(self.x, float) else 0.0

    def __lt__(self, other):
        return self.x < other if other > 0 else self.x > other

    def __neg__(self):
        if self.x < 0:
            raise ValueError(f"{self.x} is negative")
        return Clamped(-self.x)


def _sum(x):
    total = Clamped(x)
    for _ in range(3):
        total = total + x
    return total[2] if total < 100.0 else -total[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("x", [0.25, 0.75, 8.0])
def test_operators_have_gradients(backend, x):
    value, gradient = wend.value_and_grad(wend.function(_sum, backend=backend))(x)
    assert value == pytest.approx(_sum(x))
    h = 1e-6
    assert gradient == pytest.approx((_sum(x + h) - _sum(x - h)) / (2 * h), rel=1e-5)


def test_an_operator_raises_as_in_python():
    negate = wend.function(lambda x: (-Clamped(x)).x)
    assert negate(2.0) == -2.0
    with pytest.raises(ValueError, match=r"^-2.0 is negative\b"):
        negate(-2.0)


def test_operands_that_do_not_fit_raise_as_in_python():
    @wend.function
    def f(x):
        return Clamped(x) + np.int64(1)

    @wend.function
    def g(x):
        return x * Clamped(x)

    with pytest.raises(
        TypeError, match=r"unsupported operand type\(s\) for \+: 'Clamped' and 'int"
    ):
        f(1.0)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*: 'float' and 'Cl"):
        g(1.0)


def test_the_source_shows_operators():
    def f(x, y):
        return -x + y[0] * 2 if x < 1 else ~y

    assert "-x + " in wend.source(f)
    assert "x < 1" in wend.source(f)


def test_an_operator_replaced_on_its_class_is_seen():
    class A:
        def __add__(self, other):
            return other

    a = A()
    f = wend.function(lambda x: a + x)
    assert f(2.0) == 2.0
    A.__add__ = lambda self, other: 10 * other
    assert f(2.0) == 20.0
