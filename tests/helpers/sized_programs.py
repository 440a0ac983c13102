"""Real programs over a number of rows that nobody knows before the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wend
import wend.numpy as wnp


@dataclass(frozen=True)
class Sized:
    """A program, and what makes its arguments for a number of rows; the first is differentiated.

    `sizes` are the numbers of rows that it is run with.
    """

    run: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    sizes: tuple[int, ...] = (7, 0, 1, 4096)

    @property
    def name(self) -> str:
        return self.run.__name__

    def signature(self) -> list[wend.TensorSpec]:
        """The arguments with None for each size that is another for other rows."""
        found = []
        for x, y in zip(self.arguments(7), self.arguments(11), strict=True):
            pairs = zip(np.shape(x), np.shape(y), strict=True)
            found.append(wend.TensorSpec([a if a == b else None for a, b in pairs], x.dtype))
        return found


def numbers(*shape: int) -> np.ndarray:
    """Numbers that depend on the shape alone."""
    return np.random.default_rng(shape).normal(size=shape)


STEPS = np.int64(3)  # traced, so that a loop over them is one node
SMALL = (7, 0, 1, 40)  # for what has rows times rows


def network(x, w, v):
    hidden = wnp.tanh(x @ w + 0.1)
    return wnp.sum(wnp.sum(hidden * v, axis=1) ** 2)


def recurrent(x, h, w):
    for t in range(x.shape[0]):
        h = wnp.tanh(x[t] + h @ w)
    return wnp.sum(h * h)


def long_short_term(x, c, h, w):
    for t in range(x.shape[0]):
        z = wnp.concatenate([x[t], h], axis=1) @ w
        i, f, o = (1 / (1 + wnp.exp(-z[:, 2 * k : 2 * k + 2])) for k in range(3))
        c = f * c + i * wnp.tanh(z[:, 6:])
        h = o * wnp.tanh(c)
    return wnp.sum(h * h)


def attention(q, k, v):
    scores = wnp.einsum("bqd,bkd->bqk", q, k) / np.sqrt(3.0)
    shares = wnp.exp(scores - wnp.max(scores, axis=-1, keepdims=True))
    shares = shares / wnp.sum(shares, axis=-1, keepdims=True)
    return wnp.sum(wnp.sin(wnp.einsum("bqk,bkd->bqd", shares, v)))


def self_attention(x, w):
    scores = (x @ w) @ x.T
    shares = wnp.exp(scores - wnp.max(scores, axis=-1, keepdims=True))
    return wnp.sum(wnp.sin((shares / wnp.sum(shares, axis=-1, keepdims=True)) @ x))


def clusters(x, centres, steps):
    for _ in range(steps):
        far = wnp.sum((x[:, None, :] - centres[None, :, :]) ** 2, axis=2)
        near = wnp.argmin(far, axis=1)
        own = (near[:, None] == wnp.arange(len(centres))) * 1.0
        centres = (own.T @ x + centres) / (wnp.sum(own, axis=0)[:, None] + 1)
    return wnp.sum(centres * centres)


def newton(a):
    x = a
    while wnp.any(wnp.abs(x * x - a) > 1e-9):
        x = 0.5 * (x + a / x)
    return wnp.sum(x)


def systems(m, y):
    a = m @ wnp.swapaxes(m, 1, 2) + np.eye(2)
    return wnp.sum(wnp.linalg.solve(a, y[..., None]) ** 2)


def ranked(x):
    rows = wnp.sort(x, axis=0)
    order = wnp.argsort(x[:, 0])
    steps = x[order][1:] - x[order][:-1]
    return wnp.sum(rows * wnp.arange(len(x))[:, None]) + wnp.sum(steps**2)


def rolled(x, steps):
    for _ in range(steps):
        x = 0.5 * wnp.roll(x, 1) + 0.5 * wnp.concatenate([x[1:], x[:1]]) * x
    return wnp.sum(x * wnp.arange(len(x)))


def padded(x, steps):
    for _ in range(steps):
        wide = wnp.pad(x, 1)
        x = 0.25 * (wide[2:] + wide[:-2]) + 0.5 * wide[1:-1]
    return wnp.sum(x * x)


def diffusion(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return wnp.sum(u * u)


def masked(x):
    large = x > 0.3
    part = x[large]
    y = x * 1.0
    y[y < 0] *= 0.5
    return wnp.sum(part * x[large]) + wnp.sum(wnp.where(large, x, y**2))


def row_by_row(x):
    total = 0.0
    for row in x:
        for number in row:
            total = total * 0.5 + wnp.sin(number)
    return total


def pairs(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            total = total + wnp.sin(x[i] - x[j])
    return total


def growing(x):
    _, x = wend.while_loop(
        lambda c: c[0] < 4,
        lambda c: (c[0] + 1, wnp.concatenate([c[1], c[1] * 0.5])),
        (0, x),
        shape_invariants=((), (None,)),
    )
    return wnp.sum(x * x)


def reductions(x):
    by_row = wnp.mean(x, axis=1) ** 2 + wnp.var(x, axis=1) + wnp.prod(x, axis=1)
    return wnp.sum(by_row + wnp.max(x, axis=1)) + wnp.sum(wnp.sum(x, axis=0) ** 2)


def table(x, y):
    return wnp.sum(wnp.tanh(x[:, None] * y) / (1 + x[:, None] ** 2))


def forms(x, w):
    return wnp.sum(wnp.einsum("ni,ij,nj->n", x, w, x) ** 2)


def filled(x):
    squares, both = wnp.zeros(len(x)), wnp.ones((len(x), 2))
    for i in range(len(x)):
        squares[i] = x[i] ** 2
    both[:, 0] = squares
    return wnp.sum(both * x[:, None])


def made(x, steps):
    a = wnp.eye(len(x)) + wnp.outer(x, x) * 0.1
    b = wnp.linspace(0.0, 1.0, len(x))
    for _ in range(steps):
        b = a @ b
        a = a * wnp.eye(len(x)) + 0.01
    return wnp.sum(b)


def reshaped(x, steps):
    y = wnp.reshape(x, (len(x) * 2, 2))
    for _ in range(steps):
        y = wnp.reshape(wnp.ravel(wnp.sin(y)), (len(x) * 2, 2)) + wnp.repeat(x[:, :2], 2, axis=0)
    return wnp.sum(wnp.reshape(y, (-1, 4)) * x)


def summed(x):
    last, kept = wend.scan(lambda c, row: (c * 0.5 + row, wnp.sin(c)), wnp.zeros(3), x)
    return wnp.sum(kept * x) + wnp.sum(last)


def either(x):
    if wnp.sum(x) > 0:
        y = wnp.roll(x, 1)
    else:
        y = wnp.concatenate([x[1:], x[:1]]) * x
    return wnp.sum(y * x)


PROGRAMS = [
    Sized(network, lambda n: (numbers(n, 3), numbers(3, 4), numbers(4))),
    # The batch and the length are both unknown.
    Sized(recurrent, lambda n: (numbers(4 + n % 3, n, 3), numbers(n, 3), numbers(3, 3))),
    Sized(
        long_short_term,
        lambda n: (numbers(3 + n % 3, n, 1), numbers(n, 2), numbers(n, 2) / 2, numbers(3, 8)),
    ),
    Sized(attention, lambda n: (numbers(n, 4, 3), numbers(n, 2, 3), numbers(n, 2, 3))),
    Sized(self_attention, lambda n: (numbers(n, 3), numbers(3, 3)), (7, 1, 40)),
    Sized(clusters, lambda n: (numbers(n, 2), numbers(3, 2), STEPS)),
    Sized(newton, lambda n: (np.abs(numbers(n)) + 0.5,)),
    Sized(systems, lambda n: (numbers(n, 2, 2), numbers(n, 2))),
    Sized(ranked, lambda n: (numbers(n, 2),)),
    Sized(rolled, lambda n: (numbers(n), STEPS)),
    Sized(padded, lambda n: (numbers(n), STEPS)),
    Sized(diffusion, lambda n: (numbers(n), STEPS)),
    Sized(masked, lambda n: (numbers(n),)),
    Sized(row_by_row, lambda n: (numbers(n, 2),)),
    Sized(pairs, lambda n: (numbers(n),), SMALL),
    Sized(growing, lambda n: (numbers(n),)),
    Sized(reductions, lambda n: (numbers(n, 3),)),
    Sized(table, lambda n: (numbers(n), numbers(n)), SMALL),
    Sized(forms, lambda n: (numbers(n, 3), numbers(3, 3))),
    Sized(filled, lambda n: (numbers(n),)),
    Sized(made, lambda n: (numbers(n), STEPS), SMALL),
    Sized(reshaped, lambda n: (numbers(n, 4), STEPS)),
    Sized(summed, lambda n: (numbers(n, 3),)),
    Sized(either, lambda n: (numbers(n),)),
]
