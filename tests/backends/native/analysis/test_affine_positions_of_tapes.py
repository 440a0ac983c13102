"""Backward loops read their tapes without range checks: how long a tape is, its loop says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.tape_programs import LOOPS, PROGRAMS_WITH_LISTS, with_branch

import wend
from wend.backends.build import passes_of
from wend.backends.native.analysis.affine_positions import tape_reads
from wend.backends.native.backend import BACKEND
from wend.ir.graph import Graph
from wend.ops import lists
from wend.ops.control import WhileParts, while_
from wend.passes.pipeline import run_passes


def optimized(graph: Graph) -> Graph:
    return run_passes(graph, passes_of("native"))


@pytest.mark.parametrize("f", LOOPS)
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


@pytest.mark.parametrize("f", PROGRAMS_WITH_LISTS)
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
