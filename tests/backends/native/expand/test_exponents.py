"""Exponents that are arrays of one number."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.helpers.graphs import traced

import wend
from wend.backends.native.expand.expand import expand_operations
from wend.ops import elementwise, shaping


def broadcasts(fun: Any, x: Any) -> bool:
    """Whether the exponent of the only power is a broadcast number."""
    graph = expand_operations(traced(fun, x, optimize=True))
    (exponent,) = (node.operands[1] for node in graph.walk() if node.op is elementwise.pow)
    return exponent.node is not None and exponent.node.op is shaping.broadcast_to


def test_one_number_for_all_elements_is_broadcast() -> None:
    assert broadcasts(lambda x: x**3.0, np.ones(9))
    assert not broadcasts(lambda x: x ** np.arange(9.0), np.ones(9))


def test_an_array_of_halves_is_no_root() -> None:
    x = np.array([-0.0, -np.inf, 4.0, 2.0, 0.0])

    def roots(x: Any) -> Any:
        return np.power(x, np.full(5, 0.5))

    assert not broadcasts(roots, x)
    found = wend.function(roots)(x)
    np.testing.assert_allclose(found, roots(x), rtol=1e-15)
    assert not np.signbit(found[0])
