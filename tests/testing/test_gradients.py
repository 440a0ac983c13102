"""`wend.testing.check_grads`: passes what is right, and names what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import wend
import wend.numpy as wnp
import wend.testing
from wend.base.errors import NotDifferentiableError
from wend.ir.op import Partials
from wend.ops import elementwise
from wend.testing import check_grads

X = np.array([0.3, -0.4, 1.2])


def settle(x, y):
    while wnp.sum(x * x) > 0.1:
        x = 0.7 * x + 0.1 * wnp.sin(y * x)
    return {"x": x, "trips": (3, None), "y": wnp.exp(x[0]) * y}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_what_is_right_passes(order, modes):
    check_grads(settle, (X, 0.5), order, modes)


def test_pytrees_integers_dtypes():
    def fun(p, n):
        return wnp.sum(p["x"] ** n) * p["s"], p["i"]

    p = {"x": X.astype(np.float32), "s": np.float32(2), "i": np.arange(2)}
    check_grads(fun, (p, 3))
    check_grads(lambda z: (wnp.abs(z * z), wnp.conj(z) * z), (1.0 + 2.0j,))
    check_grads(wend.function(lambda x: x * x), (X,))


@contextmanager
def wrong_rule(op, rules) -> Iterator[None]:
    """While it lasts, an operation has a wrong derivative."""
    right = op.derivative
    object.__setattr__(op, "derivative", Partials(rules))
    try:
        yield
    finally:
        object.__setattr__(op, "derivative", right)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_rule_is_found(mode):
    fun = lambda x: wnp.sum(wnp.tanh(x))  # noqa: E731
    with (
        wrong_rule(elementwise.tanh, (lambda b, x, y: b.one_minus(y),)),
        pytest.raises(AssertionError, match=rf"by {mode}: the derivative .* measured"),
    ):
        check_grads(fun, (X,), 1, (mode,))
    check_grads(fun, (X,), 1, (mode,))


def test_a_rule_that_is_wrong_from_the_second_order_on_is_found():
    """A factor of the right value that hides what it depends on."""
    hidden = (lambda b, x, y: b.emit(elementwise.stop_gradient, b.cos(x)),)
    with wrong_rule(elementwise.sin, hidden):
        check_grads(wnp.sin, (0.5,), 1)
        with pytest.raises(AssertionError, match="by fwd, then fwd: the derivative"):
            check_grads(wnp.sin, (0.5,), 2)


def test_nan_is_an_error():
    with pytest.raises(AssertionError, match="nan"), np.errstate(all="ignore"):
        check_grads(lambda x: wnp.sqrt(x - x), (1.0,), 1)


def test_tolerances():
    check_grads(lambda x: wnp.abs(x), (1e-7,), 1, atol=10.0)
    with pytest.raises(AssertionError):
        check_grads(lambda x: wnp.abs(x), (1e-7,), 1, atol=0.0, rtol=1e-9)


def test_mistakes():
    with pytest.raises(ValueError, match="order must be 1 or more"):
        check_grads(wnp.sin, (1.0,), 0)
    with pytest.raises(ValueError, match="modes are 'fwd' and 'rev'"):
        check_grads(wnp.sin, (1.0,), 1, ("forward",))
    with pytest.raises(NotDifferentiableError, match="no argument is a float"):
        check_grads(lambda n: n * 1.0, (3,))
