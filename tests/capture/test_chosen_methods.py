"""Methods of lists and objects that the run chooses: derivatives, and what a trace costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.testing import check_grads

POINTS = np.array([0.3, -1.2, 2.0, 0.7])


class Total:
    def __init__(self) -> None:
        self.value: Any = 1.0

    def add(self, x: Any) -> None:
        self.value = self.value * np.sin(x)


def grouped(x: Any, points: Any) -> Any:
    groups: list[list[Any]] = [[], []]
    logs: dict[str, Any] = {"all": [], "n": 0}
    totals = [Total(), Total()]
    for p in points:
        groups[int(p > 0.5)].append(p * x * x)
        totals[int(p > 0.5)].add(p * x)
        logs["all"].append(np.cos(x * p))
        logs["n"] += 1
    result = totals[0].value * totals[1].value + logs["n"]
    for group in groups:
        for y in group:
            result = result + y * y
    return result + sum(logs["all"])


@pytest.mark.parametrize("count", [0, 1, 4])
def test_lists_and_objects_have_derivatives(count: int) -> None:
    points = POINTS[:count]
    for backend in ("native", "numpy"):
        assert wend.function(grouped, backend=backend)(0.7, points) == pytest.approx(
            grouped(0.7, points)
        )
    if count:
        check_grads(lambda x: grouped(x, points), (0.7,), order=2)


def test_many_lists_are_one_trace() -> None:
    def bins(xs: Any) -> Any:
        lists: list[list[Any]] = [[] for _ in range(4)]
        for x in xs:
            lists[int(x)].append(x)
        return [len(items) for items in lists]

    function = wend.function(bins)
    xs = np.arange(200.0) % 4
    assert [*map(int, function(xs))] == bins(xs)
    assert [*map(int, function(xs[:3]))] == bins(xs[:3])
    assert function.trace_count <= 2
    with pytest.raises(IndexError, match="list index out of range"):
        function(np.array([4.0]))
