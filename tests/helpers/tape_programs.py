"""Loops whose backward loops read tapes, and loops that grow and read lists of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

MATRIX = np.linspace(-0.5, 0.5, 9).reshape(3, 3)


def until(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def counted(a: Any) -> Any:
    x = a
    for _ in range(7):
        x = x * x - a
    return x


def with_break(a: Any) -> Any:
    x = a
    for _ in range(50):
        d = (x * x - a) / (2 * x)
        x = x - d
        if abs(d) < 1e-12:
            break
    return x


def with_branch(a: Any) -> Any:
    x = a
    while x < 100.0:
        if x > 5.0:
            x = x * x
        else:
            x = x * a + 1.0
    return x


def of_arrays(a: Any) -> Any:
    h = np.zeros(3) + a
    for _ in range(20):
        h = np.tanh(MATRIX @ h + a)
    return h.sum()


LOOPS = (until, counted, with_break, with_branch, of_arrays)


def pushed_twice(x: Any, n: Any) -> Any:
    out: list[Any] = []
    for k in range(n):
        out.append(x)
        out.append(k * x)
    return total(out, n)


def pushed_sometimes(x: Any, n: Any) -> Any:
    out: list[Any] = []
    for k in range(n):
        if k * x > 2.0:
            out.append(k * x)
    return total(out, n)


def not_empty_before(x: Any, n: Any) -> Any:
    out = [x]
    for k in range(n):
        out.append(k * x)
    return total(out, n)


def counted_from_one(x: Any, n: Any) -> Any:
    out: list[Any] = []
    k = 1
    while k < n:
        out.append(k * x)
        k += 1
    return total(out, k)


def total(out: list[Any], n: Any) -> Any:
    s = 0.0
    while n > 0:
        s += out[n - 1]
        n -= 1
    return s


PROGRAMS_WITH_LISTS = (pushed_twice, pushed_sometimes, not_empty_before, counted_from_one)
