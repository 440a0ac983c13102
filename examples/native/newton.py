"""A loop and a step with variables, for the programs in C, C++ and Fortran beside this file.

wend build newton.py:root --signature f64 --gradient --out .
cc newton.c root.o -lm -o newton && ./newton
"""

import numpy as np

import wend


def root(a):
    """Return the square root of a, by Newton's method."""
    if not a > 0.0:
        raise ValueError(f"the root of {a:.3f}")
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


count = wend.Variable(0, name="count")
mean = wend.Variable(np.zeros(3), name="mean")


def learn(rows):
    """Take rows into a running mean, and return how far it has moved."""
    before = mean + 0.0
    for row in rows:
        count.assign_add(1)
        mean.assign_add((row - mean) / count)
    print("rows:", count)
    return np.sqrt(np.sum((mean - before) ** 2))
