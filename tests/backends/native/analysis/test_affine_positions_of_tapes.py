"""Backward loops read their tapes without range checks: how long a tape is, its loop says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.build import passes_of
from wend.backends.native.analysis.affine_positions import tape_reads
from wend.backends.native.backend import BACKEND
from wend.ir.graph import Graph
from wend.ops import lists
from wend.ops.control import WhileParts, while_
from wend.passes.pipeline import run_passes

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


def optimized(graph: Graph) -> Graph:
    return run_passes(graph, passes_of("native"))


@pytest.mark.parametrize("f", [until, counted, with_break, with_branch, of_arrays])
def test_a_backward_loop_checks_no_position(f: Callable[..., Any]) -> None:
    slope = wend.grad(f)
    graph = optimized(slope.get_concrete_function(2.2).graph)
    reads = [
        (loop, node)
        for loop in graph.nodes
        if loop.op is while_
        for node in loop.regions[1].nodes
        if node.op is lists.list_get
    ]
    assert reads
    assert all((node, 1) in tape_reads(WhileParts.of(loop)) for loop, node in reads)
    text = BACKEND.text(graph)  # type: ignore[attr-defined]
    assert "checked" not in text  # one copy of each loop
    assert "@wend.python" not in text.partition("define i32 @wend_run")[2]  # no error to raise
    step = 1e-6
    difference = (f(2.2 + step) - f(2.2 - step)) / (2 * step)
    np.testing.assert_allclose(slope(2.2), difference, rtol=1e-4)


def test_no_trip_at_all() -> None:
    assert wend.grad(with_branch)(200.0) == 1.0


def test_many_trips_pass_safepoints() -> None:
    def sums(x: Any, n: Any) -> Any:
        total = x
        for _ in range(n):
            total = np.sin(total) + x
        return total

    def unrolled(x: float, n: int) -> float:
        total, slope = x, 1.0
        for _ in range(n):
            total, slope = np.sin(total) + x, np.cos(total) * slope + 1.0
        return slope

    np.testing.assert_allclose(wend.grad(sums)(0.7, 30_000), unrolled(0.7, 30_000), rtol=1e-12)


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


@pytest.mark.parametrize("f", [pushed_twice, pushed_sometimes, not_empty_before, counted_from_one])
def test_other_lists_are_checked(f: Callable[..., Any]) -> None:
    graph = optimized(wend.function(f).get_concrete_function(1.5, 4).graph)
    loops = [node for node in graph.walk() if node.op is while_]
    assert not any(tape_reads(WhileParts.of(loop)) for loop in loops)
    try:
        value = f(1.5, 4)
    except IndexError:
        with pytest.raises(IndexError):
            wend.function(f)(1.5, 4)
    else:
        assert wend.function(f)(1.5, 4) == value
