"""The bytes that a program moves, which are to grow as the number of its trips."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import wend

SIZES = 100, 400
# Of four times as many trips; quadratic work grows sixteenfold.
MAX_GROWTH = 5.0
BYTES_ALLOWED = 4096  # whatever the size: constants, the last block of a pool

FORMS: dict[str, Callable] = {
    "value": lambda f: f,
    "gradient": wend.grad,
    "jvp": lambda f: lambda x: wend.jvp(f, (x,), (x,))[1],
    "second_order": lambda f: wend.grad(lambda x: (wend.grad(f)(x) ** 2).sum()),
    "checkpoint": lambda f: wend.grad(wend.checkpoint(f)),
}


def bytes_moved(fun, n):
    """Return the bytes that native code allocates or overwrites as a whole in a call."""
    x = np.linspace(-1.0, 1.0, n)
    with wend.config(backend="native"), wend.profile() as p:
        fun(x)
    return sum(line.bytes for line in p.lines())


def check_growth(fun, sizes=SIZES):
    """Check that four times as many trips move about four times as many bytes."""
    small, large = (bytes_moved(fun, n) for n in sizes)
    assert small <= large <= MAX_GROWTH * small + BYTES_ALLOWED
