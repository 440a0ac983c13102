"""Backward graphs for fewer cotangents: as if the other results did not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.autodiff.forward_backward import ForwardBackward
from wend.backends.numpy.backend import BACKEND
from wend.base.zero import ZERO
from wend.ir import verify
from wend.ir.types import is_differentiable
from wend.passes.dce import dce


def straight(x: Any, y: Any) -> Any:
    return x * x, wnp.sqrt(x) + y, y * y, x + wnp.sqrt(y)


def loop(x: Any, y: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        a, b, s = c
        return a * a + y, wnp.sqrt(b), s + y

    return wend.fori_loop(0, 3, body, (x + 1.0, x, y))


def mixing_loop(x: Any, y: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        a, b, d = c
        return b, a, wnp.sqrt(d)

    return wend.fori_loop(0, 3, body, (x * x, y, x))


def branch(x: Any, y: Any) -> Any:
    return wend.cond(x < 1.0, lambda: (x * y, wnp.sqrt(x), y), lambda: (y, x, wnp.sqrt(y)))


def branch_in_loop(x: Any, y: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return wend.cond(
            c[0] < 9.0,
            lambda: (c[0] * c[0] + y, wnp.sqrt(c[1]), c[2]),
            lambda: (c[0], c[1], c[0] * c[2]),
        )

    return wend.fori_loop(0, 4, body, (x, x, y))


inner = wend.function(branch)


def called(x: Any, y: Any) -> Any:
    a, b, c = inner(x, y)
    return a * c, b, inner(c, b)[2]


def loop_with_list(x: Any, y: Any) -> Any:
    (a, b), rows = wend.scan(lambda c, e: ((c[0] * e, wnp.sqrt(c[1])), c[0]), (y, x), np.ones(3))
    return a, b, wnp.sum(rows)


FUNCTIONS = [straight, loop, mixing_loop, branch, branch_in_loop, called, loop_with_list]


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_as_if_the_other_results_did_not_exist(fun):
    args = (0.0, 2.0)  # where √x has an infinite slope: 0 · inf would show
    concrete = wend.function(fun).get_concrete_function(*map(np.float64, args))
    graph = concrete.graph
    seeded = [k for k, r in enumerate(graph.results) if is_differentiable(r.type)]
    forms = ForwardBackward(graph, [0, 1], seeded)
    results = BACKEND.compile(forms.forward)(concrete.traced.arguments(args))
    residuals = results[len(graph.results) :]
    for k in seeded:
        backward = forms.backward([k])
        verify(backward.graph)
        found = iter(BACKEND.compile(backward.graph)([*residuals, np.float64(1.0)]))
        grads = [next(found) if connected else 0.0 for connected in backward.connected]
        grads = [0.0 if ct is ZERO else ct for ct in grads]
        expected = wend.grad(lambda *xs, k=k: fun(*xs)[k], (0, 1))(*args)
        np.testing.assert_allclose(grads, expected, rtol=1e-12, err_msg=f"result {k}")


def test_structure():
    graph = wend.function(straight).get_concrete_function(1.0, 2.0).graph
    backward = ForwardBackward(graph, [0, 1], [0, 1, 2, 3]).backward([0])
    assert backward.connected == (True, False)
    assert dce(backward.graph).count("div") == 0  # of the slopes of √
