"""Comparison of graphs, which shows where two differ."""

from __future__ import annotations

import dataclasses
import difflib

from wend.ir.canonical import equal
from wend.ir.graph import Graph


def assert_graphs_equal(a: Graph, b: Graph) -> None:
    """Assert that two graphs have the same nodes, types and attributes in the same order.

    Names of graphs and values, and source lines, are ignored.

    Args:
        a: the actual graph.
        b: the expected graph.

    Raises:
        AssertionError: they differ; the message shows a diff.

    Example:
        >>> import wend, wend.testing
        >>> square = wend.function(lambda x: x * x).get_concrete_function(2.0)
        >>> other = wend.function(lambda y: y * y).get_concrete_function(3.0)
        >>> wend.testing.assert_graphs_equal(square.graph, other.graph)
    """
    if equal(a, b):
        return
    actual, expected = (str(dataclasses.replace(graph, name="_")).splitlines() for graph in (a, b))
    lines = list(difflib.unified_diff(expected, actual, "expected", "found", n=2, lineterm=""))
    if not lines:  # the texts show long arrays and Python callables by name only
        lines = ["an array or a callable in an attribute differs"]
    raise AssertionError("\n".join(["the graphs differ:", *lines]))
