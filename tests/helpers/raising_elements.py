"""Programs of elements of which some raise, and what a Python loop makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wend
import wend.numpy as wnp

TABLE = np.linspace(0.5, 2.0, 9)


def before_a_loop(x: Any, n: Any) -> Any:
    """The loop has no end for what the check refuses."""
    if x < 0:
        raise ValueError(f"{x} is negative")
    y = x
    while np.abs(y * y - x) > 1e-9 * x:
        y = 0.5 * (y + x / y)
    return y


def in_a_loop(x: Any, n: Any) -> Any:
    y, k = x, 0
    while k < n:
        y, k = y * 0.5 + 0.1, k + 1
        if y < 0.0:
            raise RuntimeError(f"below zero after {k} of {n} steps")
    return y


def in_nested_loops(x: Any, n: Any) -> Any:
    y, k = x, 0
    while k < n:
        j = 0
        while j < k:
            y, j = y * 0.75 + 0.1, j + 1
            assert not y < -0.2, f"{y} in steps {k}, {j}"
        k += 1
    return y


def in_a_branch(x: Any, n: Any) -> Any:
    y, k = x, 0
    while k < n:
        if y < 0.5:
            if y < -1.0:
                raise ArithmeticError("low")
            y = y + 0.7
        else:
            y = y * 0.5
        k += 1
    return y


def in_counted_loops(x: Any, n: Any) -> Any:
    y = x
    for k in range(4):
        for _ in range(n):
            y = y * 0.9 + 0.01
        if y < -0.5:
            raise ValueError(f"{y} in round {k}")
    return y


def after_a_break(x: Any, n: Any) -> Any:
    y, k = x, 0
    while k < n:
        y, k = y * 1.5, k + 1
        if y > 1.0:
            break
    else:
        if x < -0.5:
            raise LookupError(f"not found within {n}")
    return y


def of_math(x: Any, n: Any) -> Any:
    y = math.sqrt(x + 0.5)
    while y > 0.3:
        y = y * 0.7
    return y


def in_a_function(x: Any, n: Any) -> Any:
    return in_a_loop_of_its_own(x, n) + before_a_loop(x + 1.0, n)


@wend.function
def in_a_loop_of_its_own(x: Any, n: Any) -> Any:
    return in_a_loop(x, n) * 2.0


PROGRAMS = (
    *(before_a_loop, in_a_loop, in_nested_loops, in_a_branch, in_counted_loops),
    *(after_a_break, of_math, in_a_function),
)


def in_an_inner_map(x: Any, n: Any) -> Any:
    return wnp.sum(wend.vmap(in_a_loop, in_axes=(0, None))(x * np.arange(1.0, 4.0), n))


def of_a_table(x: Any, n: Any) -> Any:
    if x < -1.5:
        raise ValueError("low")
    y = x
    while y < TABLE[n]:
        y = y + 0.25
    return y


def of_arrays(x: Any, n: Any) -> Any:
    y = np.tanh(np.array([[x, 0.3], [0.7, x]]) @ np.array([x, 1.0 + x]))
    if np.any(y < -0.9):
        raise ValueError(f"{y[0]:.3f} is low")
    return y.sum()


def columns(count: int, *, fails: bool, seed: int = 0) -> tuple[Any, Any]:
    """Elements without trips, some that end at once, and some that raise."""
    rng = np.random.default_rng(seed)
    low = -2.0 if fails else 0.01
    return rng.uniform(low, 2.0, count), rng.integers(0, 8, count)


def loop(fun: Callable[..., Any], args: Sequence[Any]) -> tuple[list[Any], Any]:
    """Run a function for the elements in order; return results, and the first error with where."""
    results = []
    for k, row in enumerate(zip(*args, strict=True)):
        try:
            results.append(fun(*row))
        except Exception as error:
            return results, (type(error), str(error), k)
    return results, None
