"""Methods that people write, in plain Python: to second order against what is measured."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.testing import check_grads

RNG = np.random.default_rng(0)
NOISE, UNIFORM = RNG.standard_normal(12), RNG.uniform(size=12)
LOOK = RNG.standard_normal(6)


def pendulum(state, length):
    return wnp.array([state[1], -9.81 / length * np.sin(state[0])])


def euler(state, length):
    for _ in range(8):
        state = state + 0.05 * pendulum(state, length)
    return state


def runge_kutta(state, length):
    h = 0.05
    for _ in range(5):
        k1 = pendulum(state, length)
        k2 = pendulum(state + h / 2 * k1, length)
        k3 = pendulum(state + h / 2 * k2, length)
        k4 = pendulum(state + h * k3, length)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def adaptive(state, length):
    """Heun with the error of Euler as a guide; steps are refused, doubled and cut to the end."""
    t, h = 0.0, 0.3
    while t < 0.5:
        if t + h > 0.5:
            h = 0.5 - t
        k1 = pendulum(state, length)
        k2 = pendulum(state + h * k1, length)
        error = h / 2 * np.sum((k2 - k1) ** 2)
        if error < 0.05:
            t, state = t + h, state + h / 2 * (k1 + k2)
            h = 1.5 * h
        else:
            h = 0.5 * h
    return state


def fixed_point(theta):
    x, last = 0.0 * theta, theta
    while np.max(np.abs(x - last)) > 1e-13:
        x, last = 0.4 * np.tanh(x) + theta, x
    return x


def recurrent_net(w, u, h):
    total = 0.0
    for x in LOOK:
        h = np.tanh(w @ h + u * x)
        total = total + np.sum(h * h)
    return total


def kalman(q, r):
    """The log-likelihood of a random walk that is seen with noise."""
    mean, var, total = 0.0, 1.0, 0.0
    for seen in LOOK:
        var = var + q
        innovation, spread = seen - mean, var + r
        total = total - 0.5 * (np.log(spread) + innovation**2 / spread)
        gain = var / spread
        mean, var = mean + gain * innovation, (1 - gain) * var
    return total


def descent(target, rate):
    """Gradient descent inside of what is differentiated."""
    slope = wend.grad(lambda x: np.sum((x - target) ** 4) + np.sum(np.cos(x)))
    x = 0.0 * target
    for _ in range(6):
        x = x - rate * slope(x)
    return x


def markov_chain(logits, start):
    p = np.exp(logits)
    p = p / np.sum(p, axis=1, keepdims=True)
    for _ in range(5):
        start = start @ p
    return start


def power_iteration(a):
    v, moved = np.ones(3), 1.0
    while moved > 1e-12:
        w = a @ v
        w = w / np.linalg.norm(w)
        moved = np.max(np.abs(w - v))
        v = w
    return v @ a @ v


def conjugate_gradients(a, b):
    a = (a + a.T) / 2  # it needs a symmetric one, also where `a` is moved
    x, r = 0.0 * b, b
    p, rr = r, r @ r
    while rr > 1e-16:
        ap = a @ p
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        last, rr = rr, r @ r
        p = r + rr / last * p
    return x


def metropolis(scale, width):
    """A chain with noise that is given: which moves are taken stays while parameters move."""
    x, total = 0.3 * scale, 0.0
    for noise, u in zip(NOISE, UNIFORM, strict=True):
        new = x + width * noise
        if np.log(u) < (x * x - new * new) / (2 * scale):
            x = new
        total = total + x * x
    return total


def triangular(x, a):
    for i in range(4):
        for j in range(i + 1):
            x = np.sin(x) * a + 0.1 * (i - j)
    return x


def collatz_weighted(x):
    n = 27
    weight = x
    while n != 1:
        if n % 2 == 0:
            n, weight = n // 2, weight * 0.98
        else:
            n, weight = 3 * n + 1, np.sin(weight) + 0.01 * x
    return weight


A = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.0]])
STATE = np.array([0.6, -0.2])
METHODS = [
    (euler, (STATE, 1.2)),
    (runge_kutta, (STATE, 1.2)),
    (adaptive, (STATE, 1.2)),
    (fixed_point, (np.array([0.3, -0.8]),)),
    (recurrent_net, (A[:2, :2] / 4, np.array([0.3, -0.4]), STATE)),
    (kalman, (0.3, 0.7)),
    (descent, (np.array([0.4, -0.3]), 0.05)),
    (markov_chain, (A, np.array([0.2, 0.3, 0.5]))),
    (power_iteration, (A,)),
    (conjugate_gradients, (A, np.array([1.0, -2.0, 0.5]))),
    (metropolis, (1.1, 0.8)),
    (triangular, (0.4, 1.3)),
    (collatz_weighted, (0.8,)),
]
NAMES = [fun.__name__ for fun, _ in METHODS]


@pytest.mark.parametrize(("fun", "args"), METHODS, ids=NAMES)
def test_value(fun, args):
    """As Python computes it; the inner gradient of `descent` is a wend function there too."""
    found, expected = wend.function(fun)(*args), fun(*args)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize(("fun", "args"), METHODS, ids=NAMES)
def test_derivatives(fun, args, eager):
    compiled = wend.function(fun)
    with wend.config(eager=eager):
        check_grads(compiled, args, order=2)
