"""Smooth functions are smooth where their formulas branch: derivatives against mpmath."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.numpy import special

FUNCTIONS = {
    "logaddexp": (wnp.logaddexp, lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y))),
    "logaddexp2": (wnp.logaddexp2, lambda x, y: mpmath.log(2**x + 2**y, 2)),
    "hypot": (wnp.hypot, lambda x, y: mpmath.sqrt(x * x + y * y)),
    "logsumexp": (
        lambda x, y: special.logsumexp(wnp.stack([x, y])),
        lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    ),
    "log_expit": (
        lambda x, y: special.log_expit(x - y),
        lambda x, y: -mpmath.log(1 + mpmath.exp(y - x)),
    ),
    "norm": (
        lambda x, y: wnp.linalg.norm(wnp.stack([x, y])),
        lambda x, y: mpmath.sqrt(x * x + y * y),
    ),
}
POINTS = [(1.0, 1.0), (-2.0, -2.0), (1.0, -1.0), (3.0, 0.0), (0.0, -0.5), (0.3, 2.0)]


def forward(fun, k):
    """The derivative by the argument k, in forward mode."""

    def derivative(*args):
        tangents = tuple(float(j == k) for j in range(len(args)))
        return wend.jvp(fun, args, tangents)[1]

    return derivative


def reverse(fun, k):
    return wend.grad(fun, argnums=k)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_up_to_the_third(name, point):
    fun, exact = FUNCTIONS[name]
    for order in (1, 2, 3):
        for arguments in itertools.combinations_with_replacement((0, 1), order):
            counts = arguments.count(0), arguments.count(1)
            with mpmath.workdps(60):
                expected = float(mpmath.diff(exact, point, counts))
            for modes in ((reverse,) * order, (reverse, *(forward,) * (order - 1))):
                derivative = fun
                for k, mode in zip(arguments, modes, strict=True):
                    derivative = mode(derivative, k)
                found = derivative(*point)
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("x", [-np.inf, np.inf])
def test_equal_infinities_share(x):
    assert wnp.logaddexp(x, x) == x
    assert wend.grad(wnp.logaddexp)(x, x) == 0.5
    assert wend.grad(wend.grad(wnp.logaddexp))(x, x) == 0.0  # not NaN: it is a constant there


def test_the_hessian_of_a_logistic_loss_at_zero_weights():
    rows = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])

    def loss(w):
        return -special.log_expit(rows @ w).sum()

    np.testing.assert_allclose(wend.hessian(loss)(np.zeros(2)), rows.T @ rows / 4, rtol=1e-14)
