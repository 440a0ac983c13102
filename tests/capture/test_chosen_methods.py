"""Methods of lists and objects that the run chooses: derivatives, and what a trace costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import StructureError
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


@pytest.mark.parametrize("count", [5, 200])
def test_lists_in_a_tuple_grow(count: int) -> None:
    def halves(xs: Any) -> Any:
        parts: Any = [], []
        for x in xs:
            if x < 2.5:
                parts[0].append(x)
            else:
                parts[1].append(2.0 * x)
        low, high = parts
        return parts, [len(low), len(high)]

    def chosen(xs: Any) -> Any:
        parts: Any = [], []
        for x in xs:
            parts[0 if x < 2.5 else 1].append(x)
        return parts

    xs = np.arange(float(count))
    assert wend.function(chosen)(xs[:5]) == chosen(xs[:5])
    assert wend.function(halves)(xs) == halves(xs)


def test_lists_in_a_tuple_of_the_caller_grow() -> None:
    def small(xs: Any, parts: Any) -> Any:
        for x in xs:
            if x < 2.5:
                parts[1][0].append(x)
        return parts

    lists: Any = ([], ([], []))
    assert wend.function(small)(np.arange(200.0), lists) == lists == ([], ([0.0, 1.0, 2.0], []))


def test_another_name_of_the_tuple_is_refused() -> None:
    def program(xs: Any) -> Any:
        parts: Any = [], []
        same = [parts]
        for x in xs:
            if x < 2.5:
                parts[0].append(x)
        return parts, same

    with pytest.raises(StructureError, match="`same` of program holds the list `parts`"):
        wend.function(program)(np.arange(200.0))
