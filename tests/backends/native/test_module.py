"""A program of numbers is written without the passes and analyses of arrays and lists."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.build import passes_of
from wend.backends.native.analysis.list_ownership import Ownership
from wend.backends.native.backend import BACKEND
from wend.backends.native.fusion.masked_elements import compute_masked_elements
from wend.passes.pipeline import run_passes

OF_ARRAYS = {
    compute_masked_elements.__code__: "array passes",
    Ownership.find.__code__: "ownership of lists",
}


def runs(f: Any, x: Any) -> Counter[str]:
    graph = run_passes(wend.function(f).get_concrete_function(x).graph, passes_of("native"))
    counts: Counter[str] = Counter()

    def count(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in OF_ARRAYS:
            counts[OF_ARRAYS[frame.f_code]] += 1

    sys.setprofile(count)
    try:
        BACKEND.text(graph)  # type: ignore[attr-defined]
    finally:
        sys.setprofile(None)
    return counts


def kepler(m: Any) -> Any:
    e = m
    for _ in range(50):
        d = (e - 0.3 * np.sin(e) - m) / (1 - 0.3 * np.cos(e))
        e = e - d
        if abs(d) < 1e-12:
            break
    return e


def test_numbers_need_none() -> None:
    assert not runs(kepler, 2.0)


def test_arrays_and_lists_do() -> None:
    assert runs(lambda x: np.sin(x) * x, np.ones(1000))["array passes"]
    assert runs(wend.grad(kepler), 2.0)["ownership of lists"]


def item_of_four(x: Any, k: Any) -> Any:
    y = np.zeros(4)
    for i in range(4):
        y[i] = x * i
    return y[k]


def test_errors_about_numbers_need_no_pool() -> None:
    f = wend.function(item_of_four)
    text = BACKEND.text(f.get_concrete_function(2.0, 1).graph)  # type: ignore[attr-defined]
    assert "@wend.python" in text.partition("@wend_run")[2]  # raises an IndexError
    assert "@wend.reset" not in text
    assert f(2.0, 3) == 6.0
    for k in (4, -5):
        with pytest.raises(IndexError, match=f"index {k} is out of bounds"):
            f(2.0, k)
    assert f(2.0, -1) == 6.0


def test_arrays_that_python_returns_are_in_the_pool() -> None:
    x = np.arange(3, dtype=np.float16)  # no native code for products of these
    for f in (lambda a, b: a @ b, lambda a, b: np.outer(a, b)):
        np.testing.assert_array_equal(wend.function(f)(x, x), f(x, x))

    @wend.function
    def sums(n: Any) -> Any:
        total = 0.0
        for k in range(n):
            pair = wend.py_function(lambda k: np.full(2, float(k)), np.zeros(2), k)
            total += pair[0] + pair[1]
        return total

    assert sums(4) == 12.0
