"""Shapes of control flow whose loops, branches and calls have the trips of two levels."""

from __future__ import annotations

from typing import Any

import numpy as np

import wend


def nest(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        y = x
        for _ in range((m * (i + 1)) % 37):
            y = np.sin(y) + 0.01 * x
        x = x + 0.1 * y
    return x


def one_after_the_other(x: Any, n: Any, m: Any) -> Any:
    for _ in range(n):
        x = np.sin(x) + 0.4
    for _ in range(m):
        x = np.cos(x) * x + 0.1
    return x


def three_deep(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        y = x
        for j in range(m):
            for _ in range((i + j) % 3):
                y = np.sin(y) + 0.3
        x = 0.5 * (x + np.tanh(y))
    return x


def loop_in_a_branch(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        if np.sin(3.0 * x) + 0.01 * i > 0.0:
            for _ in range(m):
                x = x - 0.1 * np.sin(x)
        x = x + 0.3
    return x


def a_loop_on_each_side(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        if i % 3 == 1:
            for _ in range(m):
                x = np.cos(x) + 0.2 * x
        else:
            while x < 1.0:
                x = x + 0.2 + 0.1 * np.sin(x)
            x = 0.3 * x
    return x


def branch_around(x: Any, n: Any, m: Any) -> Any:
    if x > 0.1:
        for _ in range(n):
            x = np.sin(x) + 0.2 * x
        for _ in range(m):
            x = x / (1.0 + x * x)
        return x
    return 2.0 * x


def loop_in_the_test(x: Any, n: Any, m: Any) -> Any:
    def settled(y: Any) -> Any:
        for _ in range(m):
            y = 0.5 * np.sin(y)
        return y

    k = 0
    while settled(x) > -1.0 and k < n:
        x, k = x + 0.1 * settled(x), k + 1
    return x


def breaks(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        for j in range(m):
            x = x + 0.1 * np.sin(x)
            if j > i + 3 or x > 30.0:
                break
            x = x * 0.99
        if x > 31.0:
            break
    return x


def an_exit_in_the_middle(x: Any, n: Any, m: Any) -> Any:
    k = 0
    while True:
        x = np.sin(x) + 0.1
        if k >= n:
            break
        x, k, j = 1.1 * x, k + 1, 0
        while True:
            x = x + 0.01 * np.cos(x)
            if j >= m:
                break
            j = j + 1
    return x


@wend.function
def _relaxed(x: Any, m: Any) -> Any:
    for _ in range(m):
        x = 0.9 * np.sin(x) + 0.1
    return x


def calls(x: Any, n: Any, m: Any) -> Any:
    for _ in range(n):
        x = _relaxed(x, m) + 0.2 * x
    return _relaxed(x, n)


def lists(x: Any, n: Any, m: Any) -> Any:
    kept = []
    for i in range(n):
        x = np.sin(x) + 0.1 * i
        kept.append(x)
    total = 0.0
    for j in range(m):
        if j < n:
            total = total + kept[n - 1 - j] * kept[j]
    return total + x


def of_rows(x: Any, n: Any, m: Any) -> Any:
    h = np.stack([x, 2.0 * x, -x])
    for _ in range(n):
        g = h
        for _ in range(m):
            g = np.tanh(g[::-1]) + 0.1 * h
        h = 0.5 * h + 0.2 * g
    return np.sum(h * h)


SHAPES = [
    *(nest, one_after_the_other, three_deep, loop_in_a_branch, a_loop_on_each_side, branch_around),
    *(loop_in_the_test, breaks, an_exit_in_the_middle, calls, lists, of_rows),
]
