"""The conventions of docs/conventions.md: where there is no derivative, or several."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp

norm = wnp.linalg.norm
ROWS = [
    ("max", wnp.max, np.array([1.0, 3.0, 3.0]), [0, 0.5, 0.5]),
    ("min", wnp.min, np.array([1.0, 1.0, 3.0]), [0.5, 0.5, 0]),
    ("maximum", lambda x: wnp.maximum(x, 1.0), 1.0, 0.5),
    ("minimum", lambda x: wnp.minimum(x, 1.0), 1.0, 0.5),
    ("clip at an edge", lambda x: wnp.clip(x, 0.0, 1.0), 1.0, 0.5),
    (
        "sort",
        lambda x: wnp.sort(x) @ np.array([1.0, 2.0, 3.0]),
        np.array([3.0, 1.0, 1.0]),
        [3, 1, 2],
    ),
    ("abs", wnp.abs, 0.0, 0),
    ("std of one element", wnp.std, np.array([2.0]), [0]),
    ("sign", wnp.sign, 0.0, 0),
    ("norm", norm, np.zeros(2), [0, 0]),
    ("norm of order 1", lambda x: norm(x, 1), np.zeros(2), [0, 0]),
    ("norm of order 3", lambda x: norm(x, 3), np.zeros(2), [0, 0]),
    ("largest norm", lambda x: norm(x, np.inf), np.zeros(2), [0, 0]),
    ("x ** 0", lambda x: x**0, 0.0, 0),
    ("x ** 1", lambda x: x**1, 0.0, 1),
    ("0 ** y", lambda y: 0.0**y, 2.0, 0),
    ("0 ** 0", lambda y: 0.0**y, 0.0, 0),
    ("prod of zeros", wnp.prod, np.array([0.0, 2.0, 0.0]), [0, 0, 0]),
    ("prod with a zero", wnp.prod, np.array([0.0, 2.0, 3.0]), [6, 0, 0]),
    ("cumprod", lambda x: wnp.sum(wnp.cumprod(x)), np.array([2.0, 0.0, 3.0]), [1, 8, 0]),
    ("det", wnp.linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]]), [[4, -2], [-2, 1]]),
    ("floor", lambda x: wnp.floor(x) * 1.0, 0.5, 0),
    ("an order", lambda x: wnp.sum(wnp.argsort(x) * 1.0), np.array([3.0, 1.0]), [0, 0]),
]


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize(("fun", "x", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_first_order(fun, x, expected, eager):
    with wend.config(eager=eager):
        np.testing.assert_allclose(wend.grad(fun)(x), expected, atol=1e-15)
        np.testing.assert_allclose(wend.jacfwd(fun)(x), expected, atol=1e-15)


def test_powers_at_zero_at_higher_orders():
    for n in (2, 2.0):
        assert wend.hessian(lambda x, n=n: x**n)(0.0) == 2.0
        assert wend.grad(wend.hessian(lambda x, n=n: x**n))(0.0) == 0.0
    both = wend.hessian(lambda x, y: x**y, (0, 1))(0.0, 2.0)
    assert both == ((2.0, 0.0), (0.0, 0.0))


def test_where_of_what_is_not_chosen():
    def fun(x):
        return wnp.where(x > 0, wnp.log(x), 0.0)

    with np.errstate(all="ignore"):
        assert np.isnan(wend.grad(fun)(0.0))
        assert wend.jvp(fun, (0.0,), (1.0,))[1] == 0.0  # what is not chosen is not multiplied
    assert wend.grad(lambda x: wend.cond(x > 0, wnp.log, lambda x: 0.0, x))(0.0) == 0.0


def test_what_is_not_defined():
    with np.errstate(all="ignore"):
        assert np.isnan(wend.grad(wnp.std)(np.ones(3))).all()
