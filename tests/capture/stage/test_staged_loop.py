"""How often the body of a loop is traced: what fills an array made before it, once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import wend
from wend.capture.stage.staged_loop import StagedLoop


def bodies_traced(fun: Callable[..., Any], *args: Any) -> int:
    """How many bodies of loops the first call of a function traces."""
    count = 0

    def on_event(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is StagedLoop._trace_after.__code__

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        wend.function(fun)(*args)
    finally:
        sys.setprofile(before)
    return count


def filled(x: float, n: int) -> Any:
    y = np.zeros(4)
    for i in range(n):
        y[i] = x * i
    return y


def added_to(x: float, n: int) -> Any:
    y = np.zeros(4)
    for i in range(n):
        y[i] += x
    return y


def one_of_two(x: float, n: int) -> Any:
    y, z = np.zeros(4), np.ones(4)
    for i in range(n):
        if x > 10.0:
            y[i] = x
        z[i] = x
    return y + z


@pytest.mark.parametrize("fun", [filled, added_to, one_of_two])
def test_a_loop_that_fills_an_array_is_traced_once(fun: Callable[..., Any]) -> None:
    assert bodies_traced(fun, 2.0, 3) == 1
    for n in (0, 1, 4):
        np.testing.assert_array_equal(wend.function(fun)(2.0, n), fun(2.0, n))


def test_a_nest_is_traced_once_from_within_and_once_as_a_whole() -> None:
    """Python runs the first trips of constant ranges, up to the first loop that must be staged."""

    def nest(x: float) -> Any:
        a = np.zeros((4, 4))
        for i in range(4):
            for j in range(4):
                s = 0.0
                for k in range(4):
                    s = s + x * k
                a[i, j] = s
        return a

    assert bodies_traced(nest, 2.0) == 1 + 2 + 3
    np.testing.assert_array_equal(wend.function(nest)(2.0), nest(2.0))


def test_an_array_that_no_trip_writes_stays_known() -> None:
    def fun(x: float, n: int, writes: bool) -> Any:
        sizes = np.array([2, 3])
        for _ in range(n):
            if writes:
                sizes[0] = 5
            x = x + 1.0
        return np.zeros(int(sizes[0])) + x

    compiled = wend.function(fun, static_argnames="writes")
    np.testing.assert_array_equal(compiled(1.0, 3, writes=False), fun(1.0, 3, False))


def test_an_array_of_a_loop_that_cannot_be_staged_stays_known() -> None:
    def fun(x: float) -> Any:
        sizes = np.array([2, 3])
        names = ["a", "b"]
        for i in range(2):
            sizes[i] = len(names[i]) + 1
            names[i] = names[i] + "c"
            x = x * 2.0
        return np.zeros(int(sizes[0])) + x

    np.testing.assert_array_equal(wend.function(fun)(1.0), fun(1.0))


class Total:
    def __init__(self) -> None:
        self.sum, self.count, self.seen = 0.0, 0, [0.0]

    def add(self, x: Any) -> None:
        self.sum = self.sum + x
        self.count += 1
        self.seen[0] = x


def test_attributes_that_a_loop_changes_are_found_by_one_more_trace() -> None:
    def fun(x: float, n: int) -> Any:
        total = Total()
        for i in range(n):
            total.add(x * i)
        return total.sum, total.count, total.seen[0]

    assert bodies_traced(fun, 2.0, 3) == 2
    for n in (0, 1, 4):
        assert wend.function(fun)(2.0, n) == fun(2.0, n)


def test_objects_that_the_body_makes_are_its_own() -> None:
    def fun(x: float, n: int) -> Any:
        y = 0.0
        for i in range(n):
            total = Total()
            total.add(x * i)
            y = y + total.sum
        return y

    assert bodies_traced(fun, 2.0, 3) <= 2
    for n in (0, 1, 4):
        assert wend.function(fun)(2.0, n) == fun(2.0, n)
