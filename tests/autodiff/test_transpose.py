"""Adjoints of arrays that are changed by what they hold, as in `x[s] += y`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.compiled import compiled
from tests.helpers.graphs import gradient, traced
from tests.helpers.shares import sized
from wend.ir.graph import Graph
from wend.ops.updating import scatter_set, set_slice

PLACES = ["1:-1", "2:", ":-2", "1::2", "-3", "i", "i + 1", "1:-1, 2:", ":, 1", "i, 1", "[0, 2, 2]"]
RIGHT = ["np.sin(y[{0}])", "0.5 * x[{0}]", "x[{0}] * y[{0}]", "z"]
FORMS = [
    "x[{0}] += {1}",
    "x[{0}] -= {1}",
    "x[{0}] *= {1}",
    "x[{0}] = {1} - x[{0}]",
    "x[{0}] = x[{0}] + x[{0}] * {1}",
    "x[{0}] = {1}; x[{0}] += {1}",
]


@given(data=st.data())
@settings(max_examples=sized(10, 25), deadline=None)
def test_slopes_are_those_of_python(data: Any) -> None:
    lines = ["def program(x, y, z):", "    x = x.copy()", "    for i in range(3):"]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(PLACES))
        right = data.draw(st.sampled_from(RIGHT)).format(place)
        lines.append("        " + data.draw(st.sampled_from(FORMS)).format(place, right))
    program = compiled("\n".join([*lines, "    return np.sum(x * x * 0.1)"]), "program")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, y, z = rng.uniform(-0.6, 0.6, (5, 5)), rng.uniform(-0.6, 0.6, (5, 5)), 0.3
    point = np.concatenate([x.ravel(), y.ravel(), [z]])

    def at(p: Any) -> Any:
        return program(p[:25].reshape(5, 5), p[25:50].reshape(5, 5), p[50])

    expected = [at(point + 1e-40j * row).imag / 1e-40 for row in np.eye(51)]
    for backend in ("native", "numpy"):
        with wend.config(backend=backend):
            found = wend.function(wend.grad(program, (0, 1, 2)))(x, y, z)
        flat = np.concatenate([found[0].ravel(), found[1].ravel(), [found[2]]])
        np.testing.assert_allclose(flat, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("place", ["1:-1", "1:-1, 2:", "k", "k, 1"])
@pytest.mark.parametrize("sign", ["+", "-"])
def test_what_is_added_passes_the_cotangent_on(place: str, sign: str) -> None:
    """No zeros are stored where the next operation adds to them."""
    lines = [
        "def program(x, y, k):",
        "    x = x.copy()",
        f"    x[{place}] {sign}= np.sin(y[{place}])",
        "    return np.sum(x * x)",
    ]
    program = compiled("\n".join(lines), "program")
    arguments = np.ones((5, 5)), np.ones((5, 5)), 1

    def stores(graph: Graph) -> int:
        return sum(node.op in (set_slice, scatter_set) for node in graph.walk())

    adjoint = gradient(program, *arguments, argnums=(0, 1))
    assert stores(adjoint) == stores(traced(program, *arguments))
