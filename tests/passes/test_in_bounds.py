"""Positions in range: every mark is right, and the loops that people write get it."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import wend
from tests.capture.programs import compiled
from wend.ir import Graph
from wend.passes.in_bounds import mark_in_bounds

SIZE = 5
OUTER = (
    "range(n)",
    "range(n - 1)",
    "range(1, n)",
    "range(n - 1, -1, -1)",
    "range(0, n, 2)",
    "range(0, n + 1, 3)",
    "range(n + 1)",
)
INNER = (
    "range(i)",
    "range(i, n)",
    "range(i + 1, n)",
    "range(i, -1, -1)",
    "range(n - i)",
    "range(i, i + 2)",
    "range(2, 4)",
)
POSITIONS = ("i", "j", "i - 1", "j + 1", "i + j", "i - j", "n - 1 - j", "i * j", "-j", "-j - 1")


def marks(graph: Graph) -> list[bool]:
    """Return for each read and write of an element whether it is marked."""
    ops = ("gather", "scatter_set")
    nodes = [node for node in mark_in_bounds(graph).walk() if node.op.name in ops]
    return [bool(node.attrs.get("in_bounds")) for node in nodes]


def marked_reads(header: list[str], positions: tuple[str, ...]) -> dict[str, bool]:
    """Return which positions are marked where one loop reads them all."""
    lines = ["import numpy as np", "def f(x):", f"    n, s = {SIZE}, 0.0", *header]
    lines += [f"{'    ' * (len(header) + 1)}s = s + x[{position}]" for position in positions]
    graph = wend.function(compiled("\n".join([*lines, "    return s"])))
    marked = marks(graph.get_concrete_function(np.ones(SIZE)).graph)
    return dict(zip(positions, marked, strict=True))


def marked_or_raised(header: list[str]) -> dict[str, bool]:
    """Return which positions are marked, without those that fail in a trip that is sure to run."""
    try:
        return marked_reads(header, POSITIONS)
    except IndexError:
        marked: dict[str, bool] = {}
        for position in POSITIONS:
            with suppress(IndexError):
                marked |= marked_reads(header, (position,))
        return marked


def is_right(header: list[str], position: str) -> bool:
    """Return whether plain Python reads only elements of the array."""
    text = "\n".join([*(line[4:] for line in header), f"{'    ' * len(header)}x[{position}]"])
    try:
        exec(text, {"n": SIZE, "x": [0.0] * SIZE})
    except IndexError:
        return False
    return True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("outer", OUTER)
def test_only_what_is_in_range_is_marked(outer: str) -> None:
    for inner in INNER:
        header = [f"    for i in {outer}:", f"        for j in {inner}:"]
        for position, is_marked in marked_or_raised(header).items():
            assert not is_marked or is_right(header, position), (outer, inner, position)


def test_loops_as_people_write_them_are_marked() -> None:
    def triangle(x: Any, out: Any) -> None:
        n = x.shape[0]
        for i in range(n):
            for j in range(i + 1):
                out[i, j] = x[j] * x[i - j] + x[n - 1 - i]

    def backwards(x: Any, out: Any) -> None:
        for i in range(x.shape[0] - 2, -1, -1):
            out[i, 0] = x[i + 1] - x[i]

    def strides(x: Any, out: Any) -> None:
        for i in range(0, x.shape[0] - 1, 2):
            out[i, i + 1] = x[-1 - i]

    for f, size in itertools.product((triangle, backwards, strides), (2, 6)):
        graph = wend.function(f).get_concrete_function(np.ones(size), np.ones((size, size))).graph
        assert all(marks(graph)), f.__name__


def test_what_a_test_may_end_early_or_data_decide_is_not_marked() -> None:
    def until(x: Any) -> Any:
        i = 0
        while x[i] < 3.0:
            i = i + 1
        return x[i]

    def table(x: Any, k: Any) -> Any:
        s = 0.0
        for i in range(k.shape[0]):
            s = s + x[k[i]]
        return s

    assert marks(wend.function(until).get_concrete_function(np.ones(9)).graph) == [False, False]
    graph = wend.function(table).get_concrete_function(np.ones(9), np.arange(4)).graph
    assert marks(graph) == [True, False]
