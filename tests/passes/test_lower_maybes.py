"""Maybes of numbers become numbers and flags where a map then runs in lanes, with equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.backends.native.emit.lanes.test_regions import PROGRAMS, TRIPS, XS
from tests.helpers.graphs import traced
from wend.backends.protocol import choose
from wend.backends.strict import same_bits
from wend.ir import verify
from wend.ir.graph import Graph
from wend.ir.types import MaybeType
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.lower_maybes import lower_maybes
from wend.passes.lower_parallel_maps import lower_parallel_maps


def gradients(fun: Any, *columns: Any) -> Graph:
    traced_graph = traced(wend.vmap(wend.grad(fun, argnums=(0,))), *columns)
    return inline_calls(lower_linear_blocks(traced_graph))


def maybes(graph: Graph) -> list[Any]:
    return [x for node in graph.walk() for x in node.results if isinstance(x.type, MaybeType)]


@pytest.mark.parametrize(("fun", "second"), PROGRAMS[::2])
def test_no_maybe_is_left(fun: Any, second: Any) -> None:
    graph = gradients(fun, XS, second)
    lowered = verify(lower_maybes(graph))
    assert maybes(graph)
    assert not maybes(lowered)
    loops = [lower_parallel_maps(g) for g in (lowered, graph)]
    (x,), (y,) = (choose("numpy").compile(g)([XS, second]) for g in loops)
    assert same_bits(x, y)


def test_maps_without_lanes_stay_as_they_are() -> None:
    def of_arrays(x: Any, n: Any) -> Any:
        y, h = np.array([x, 2.0 * x]), 0.1
        while n > 0:
            slope = -h * y * y
            error = np.max(np.abs(slope))
            if error < 0.1:
                y = y + h * slope
            h, n = h * np.sqrt(0.1 / (error + 0.01)), n - 1
        return np.sum(y)

    graph = gradients(of_arrays, XS, TRIPS)
    assert maybes(graph)
    assert lower_maybes(graph) is graph


def test_few_elements_stay_as_they_are() -> None:
    graph = gradients(PROGRAMS[0][0], XS[:5], PROGRAMS[0][1][:5])
    assert lower_maybes(graph) is graph
