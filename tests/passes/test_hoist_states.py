"""Frame states before loops: what an error tells is the same, and tokens leave the loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.ir.types import TOKEN
from wend.ir.verify import verify
from wend.ops.control import while_
from wend.passes.hoist_states import hoist_states
from wend.passes.in_bounds import mark_in_bounds


def rows(x: Any, out: Any, k: Any) -> None:
    out[0] = 5.0
    for i in range(3):
        s = 0.0
        for j in range(4):
            s = s + x[k + i * j]
        out[i] = s


def test_what_an_error_tells_is_the_same() -> None:
    for k in (0, 2, 4, 6, 9):
        expected, args = np.zeros(3), (np.arange(9.0), np.zeros(3), k)
        for backend in ("numpy", "native"):
            args[1][:] = expected[:] = 0.0
            try:
                rows(args[0], expected, k)
            except IndexError:
                with wend.config(backend=backend), pytest.raises(IndexError):
                    wend.function(rows)(*args)
            else:
                with wend.config(backend=backend):
                    wend.function(rows)(*args)
            np.testing.assert_array_equal(args[1], expected, err_msg=f"{k}, {backend}")


def test_an_inner_loop_of_reads_has_no_token() -> None:
    def f(x: Any, out: Any) -> None:
        for i in range(3):
            s = 0.0
            for j in range(4):
                s = s + x[i + j]
            out[i] = s

    graph = wend.function(f).get_concrete_function(np.ones(9), np.ones(3)).graph
    hoisted = hoist_states(mark_in_bounds(graph))
    (outer,) = (node for node in hoisted.nodes if node.op is while_)
    (inner,) = (node for node in outer.regions[1].nodes if node.op is while_)
    assert TOKEN not in [x.type for x in inner.operands]
    assert TOKEN in [x.type for x in outer.operands]


def test_states_that_differ_stay() -> None:
    def f(x: Any, out: Any, k: Any) -> None:
        for i in range(3):
            out[i] = x[k + i]

    graph = wend.function(f).get_concrete_function(np.ones(9), np.ones(3), 0).graph
    assert hoist_states(graph) is graph


def test_states_after_loops_that_keep_tokens_leave() -> None:
    def f(x: Any, out: Any) -> None:
        out[0] = 5.0
        v = np.zeros(3)
        for _ in range(3):
            for j in range(4):
                v[j % 3] = x[j]
            for j in range(4):
                v[j % 3] += x[j]
        out[1:4] = v

    x, expected = np.arange(9.0), np.zeros(4)
    f(x, expected)
    graph = wend.function(f).get_concrete_function(x, np.zeros(4)).graph
    for start in (graph, mark_in_bounds(graph)):
        verify(hoist_states(start))
    for backend in ("numpy", "native"):
        out = np.zeros(4)
        with wend.config(backend=backend):
            wend.function(f)(x, out)
        np.testing.assert_array_equal(out, expected)
