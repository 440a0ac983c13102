"""Equal operations run once."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.ops import creating, effects, indexing, shaping
from wend.passes.cse import cse


def count(fun: object, op: object, *arguments: object) -> int:
    graph = cse(wend.function(fun).get_concrete_function(*arguments).graph)
    return sum(node.op is op for node in graph.walk())


def test_checks_that_fail_alike_are_one() -> None:
    """Which error they tell does not matter: the first check raises before the others."""

    def twice(x: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        return np.histogram(x, n)[0], np.histogram(x, n, weights=x)[0]

    assert count(twice, effects.checked, np.arange(9.0), 3) == 4
    once = count(lambda x, n: np.histogram(x, n)[0], indexing.gather, np.arange(9.0), 3)
    assert count(twice, indexing.gather, np.arange(9.0), 3) == once > 1  # the edges of bins


def test_sizes_that_are_checked_alike_are_one() -> None:
    def masked(n: int, m: int) -> np.ndarray:
        x, mask = np.zeros(n), np.arange(m) > 1
        return x[mask].sum() + x[mask].max()

    assert count(masked, shaping.keep_shape, 4, 4) == 1
    with pytest.raises(IndexError, match="boolean index did not match"):
        wend.function(masked)(4, 5)


def _two_errors(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(n), np.linspace(0.0, 1.0, n)


def test_the_first_of_equal_checks_raises() -> None:
    assert count(_two_errors, creating.nonnegative, 2) == 1
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        wend.function(_two_errors)(-2)
