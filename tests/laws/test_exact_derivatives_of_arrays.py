"""Derivatives of functions of whole arrays against mpmath: orders 1 to 3, at ties and zeros.

A derivative along random directions is nested in three ways: reverse over reverse, forward over
reverse, reverse over forward.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.arrays import quiet
from wend.numpy import special

BITS, STEP = 2000, 300
W = np.array([1.0, -2.0, 0.5])
Exact = Callable[[Sequence[Any]], Any]


def det(size: int) -> Exact:
    """Leibniz' formula."""

    def compute(v: Sequence[Any]) -> Any:
        total = mp.mpf(0)
        for order in itertools.permutations(range(size)):
            swaps = sum(order[j] > order[i] for i in range(size) for j in range(i))
            total += (-1) ** swaps * mp.fprod(v[i * size + j] for i, j in enumerate(order))
        return total

    return compute


def log_of_sum(v: Sequence[Any]) -> Any:
    return mp.log(mp.fsum(mp.exp(x) for x in v))


def weighted(values: Sequence[Any]) -> Any:
    return mp.fsum(mp.mpf(float(w)) * x for w, x in zip(W, values, strict=True))


def softmax(v: Sequence[Any]) -> Any:
    return weighted([mp.exp(x - log_of_sum(v)) for x in v])


def norm(order: float) -> Exact:
    return lambda v: mp.fsum(abs(x) ** mp.mpf(order) for x in v) ** (1 / mp.mpf(order))


def matrices(n: int) -> list[Any]:
    """Singular matrices of every rank, and regular ones."""
    ranks = [np.diag([*range(2, k + 2), *[0] * (n - k)]) for k in range(n + 1)]
    others = [np.ones((n, n)), np.triu(np.ones((n, n)), 1), np.diag([1e-200] * n)]
    return [x.ravel() for x in (*ranks, *others, np.arange(n * n).reshape(n, n) % 5 - 2)]


def square(n: int) -> Callable[[Any], Any]:
    return lambda x: wnp.linalg.det(x.reshape(n, n))


TIED = [(1, 1, 1), (-2, -2, -2), (1, 2, 3)]
ZEROS = [(0, 1, 0), (1, 0, 2)]
SUMS = [(0, 0, 0), *TIED, *ZEROS, (700, 700, 700), (-800, -800, 5), (40, -40, 0), (1e-8, 1e-8, 0)]
ANYWHERE = [(0, 0, 0), *TIED, *ZEROS]
LOGS = [(0.0, 0.5), (0, 1), (0, 2), (1, 1), (0, 1e-8), (-1, 2)]

ROWS: dict[str, tuple[Callable[[Any], Any], Exact, Sequence[Any]]] = {
    **{f"det {n}": (square(n), det(n), matrices(n)) for n in (1, 2, 3, 4)},
    "poly": (
        lambda x: wnp.polyval(wnp.poly(x.reshape(3, 3)), 2.0),
        lambda v: det(3)([2 * (k % 4 == 0) - x for k, x in enumerate(v)]),
        [*(x for x in matrices(3) if x[0] != 1e-200), np.full(9, 0.7), np.eye(3).ravel()],
    ),
    "slogdet": (
        lambda x: wnp.linalg.slogdet(x.reshape(2, 2))[1],
        lambda v: mp.log(abs(det(2)(v))),
        [(1, 0, 0, 1), (2, 1, 1, 2), (0, 1, 1, 0)],
    ),
    "logsumexp": (special.logsumexp, log_of_sum, SUMS),
    "softmax": (lambda x: wnp.sum(special.softmax(x) * W), softmax, SUMS),
    "log_softmax": (
        lambda x: wnp.sum(special.log_softmax(x) * W),
        lambda v: weighted([x - log_of_sum(v) for x in v]),
        SUMS,
    ),
    **{
        f"norm {p}": (lambda x, p=p: wnp.linalg.norm(x, p), norm(p), TIED + ZEROS * (p > 2))
        for p in (0.5, 1, 1.5, 2.5, 3, 4, 5, 6, -1, -2)
    },
    "norm": (wnp.linalg.norm, norm(2), [*TIED, *ZEROS]),
    "hypot": (lambda x: wnp.hypot(wnp.hypot(x[0], x[1]), x[2]), norm(2), [*TIED, *ZEROS]),
    "complex abs": (
        lambda x: wnp.abs(x[0] + 1j * x[1]),
        lambda v: norm(2)(v[:2]),
        [(1, 1), (-2, -2), (0, 1), (1, 0), (1e-5, 1e-5)],
    ),
    "std": (
        wnp.std,
        lambda v: mp.sqrt(mp.fsum((x - mp.fsum(v) / 3) ** 2 for x in v) / 3),
        [(1, 2, 3), (0, 1, 0)],
    ),
    "prod": (wnp.prod, mp.fprod, ANYWHERE),
    "cumprod": (
        lambda x: wnp.sum(wnp.cumprod(x) * W),
        lambda v: v[0] - 2 * v[0] * v[1] + v[0] * v[1] * v[2] / 2,
        ANYWHERE,
    ),
    "polyval": (
        lambda x: wnp.polyval(x, x[0]),
        lambda v: v[0] ** 3 + v[1] * v[0] + v[2],
        ANYWHERE,
    ),
    "vander": (
        lambda x: wnp.sum(wnp.vander(x, 4)),
        lambda v: mp.fsum(x**k for x in v for k in range(4)),
        ANYWHERE,
    ),
    "xlogy": (lambda x: special.xlogy(x[0], x[1]), lambda v: v[0] * mp.log(v[1]), LOGS),
    "xlog1py": (
        lambda x: special.xlog1py(x[0], x[1]),
        lambda v: v[0] * mp.log(1 + v[1]),
        [*LOGS, (0, 0), (0, -0.5), (1, 0)],
    ),
    "sinc": (
        lambda x: wnp.sum(wnp.sinc(x)),
        lambda v: mp.fsum(mp.sincpi(x) for x in v),
        [(0, 1e-5), (1e-10, 0.3), (1, 2), (1e-3, -1e-3)],
    ),
}


def exact(fun: Exact, point: np.ndarray, directions: Sequence[np.ndarray]) -> float:
    """A mixed derivative along directions by central differences."""
    with mp.workprec(BITS):
        small = max(min((abs(x) for x in point if x), default=1.0), 1e-280)
        h = mp.ldexp(mp.mpf(min(small, 1.0)), -STEP)
        total = mp.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(directions)):
            moved = [mp.mpf(float(x)) for x in point]
            for sign, direction in zip(signs, directions, strict=True):
                moved = [
                    x + sign * h * mp.mpf(float(d)) for x, d in zip(moved, direction, strict=True)
                ]
            total += mp.fprod(signs) * fun(moved)
        return float(mp.re(total / (2 * h) ** len(directions)))


def reverse(fun: Callable[[Any], Any], direction: np.ndarray) -> Callable[[Any], Any]:
    return lambda x: wnp.sum(wend.grad(fun)(x) * direction)


def forward(fun: Callable[[Any], Any], direction: np.ndarray) -> Callable[[Any], Any]:
    return lambda x: wend.jvp(fun, (x,), (direction,))[1]


# The innermost comes first.
MODES = {
    1: [(reverse,), (forward,)],
    2: [(reverse, reverse), (reverse, forward), (forward, reverse)],
    3: [(reverse,) * 3, (reverse, forward, forward), (forward, reverse, reverse)],
}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("order", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_along_directions(name: str, order: int) -> None:
    fun, known, points = ROWS[name]
    rng = np.random.default_rng(order)
    for point in (np.array(point, float) for point in points):
        directions = [rng.integers(-3, 4, point.shape).astype(float) for _ in range(order)]
        expected = exact(known, point, directions)
        size = max(1.0, float(np.max(np.abs(point))) ** max(len(point) ** 0.5 - order, 0))
        for modes in MODES[order]:
            derivative = fun
            for step, direction in zip(modes, directions, strict=True):
                derivative = step(derivative, direction)
            with wend.config(backend="numpy"):
                result = quiet(lambda: derivative(point))  # noqa: B023
            text = f"{[step.__name__ for step in modes]} at {point}: {result}, not {expected}"
            assert abs(result - expected) <= 1e-10 * abs(expected) + 1e-12 * size, text
