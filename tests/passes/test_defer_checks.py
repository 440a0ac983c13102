"""Checks as flags: a graph tells whether a check fails, where the function raises."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.graphs import traced
from wend.backends.numpy.backend import BACKEND
from wend.ir import verify
from wend.passes.defer_checks import defer_checks, has_checks
from wend.passes.lower_parallel_maps import lower_parallel_maps

TABLE = np.arange(5.0)


def before_a_loop(x: Any) -> Any:
    """The loop has no end for what the check refuses, nor have those inside another node."""
    if x < 0:
        raise ValueError("negative")
    y = x
    if x < 100:
        while y != 0.0:
            y = np.floor(y * 0.5) if y > 0 else y - 1.0
    return y


def before_a_map(x: Any) -> Any:
    if x < 0:
        raise ValueError("negative")
    return wend.vmap(lambda k: wend.while_loop(lambda y: y > k + x, lambda y: y - x - 1.0, 9.0))(
        TABLE
    ).sum()


def of_numbers(x: Any) -> Any:
    return math.sqrt(x) + math.log(x + 3.0)


def of_positions(x: Any) -> Any:
    if x > 50:
        raise ValueError("large")
    return TABLE[int(x)] if x > -20 else x


def in_a_counted_loop(x: Any) -> Any:
    for k in range(3):
        if x > k:
            assert x < 3, "large"
            x = x + 0.5
    return x


FUNCTIONS = (before_a_loop, before_a_map, of_numbers, of_positions, in_a_counted_loop)


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_the_flag_is_set_where_the_function_raises(fun: Callable[..., Any]) -> None:
    own = wend.function(fun, backend="numpy")
    graph = traced(fun, 1.0)
    deferred = defer_checks(graph)
    assert deferred is not None
    assert not has_checks(deferred)
    assert not deferred.effects()
    run = BACKEND.compile(lower_parallel_maps(verify(deferred)))
    captures = [TABLE] * (len(deferred.params) - 1)
    flags = []
    for x in (-30.0, -4.0, -1.0, 0.0, 1.0, 4.0, 60.0):
        *results, fails = run([np.float64(x), *captures])
        flags.append(bool(fails))
        if fails:
            with pytest.raises((ValueError, AssertionError, IndexError)):
                own(x)
        else:
            np.testing.assert_array_equal(results[0], own(x))
    assert {*flags} == {False, True}


def test_a_loop_of_known_trips_keeps_its_test() -> None:
    deferred = defer_checks(traced(in_a_counted_loop, 1.0))
    assert deferred is not None
    tests = [x.regions[0].results[0].node.op.name for x in deferred.walk() if x.op.name == "while"]
    assert tests == ["lt"]


@pytest.mark.parametrize(
    "other",
    [
        lambda x: np.linalg.solve(np.array([[x, 1.0], [0.0, x]]), TABLE[:2]).sum(),
        lambda x: print(x) or x,
    ],
)
def test_what_else_may_fail_or_is_seen_has_no_flag(other: Callable[..., Any]) -> None:
    def fun(x: Any) -> Any:
        if x < 0:
            raise ValueError("negative")
        return other(x)

    assert defer_checks(traced(fun, 1.0)) is None
