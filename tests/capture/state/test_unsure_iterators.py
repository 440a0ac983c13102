"""Iterators that a loop may have left: used no more, and without effects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wend
from wend.base.errors import StructureError


def counted(log: list[int]) -> Iterator[int]:
    for k in range(4):
        log.append(k)
        yield k


def plain() -> Iterator[float]:
    for k in range(4):
        yield float(k)


SOURCES: dict[str, Callable[[], Any]] = {
    "a generator": plain,
    "a generator expression": lambda: (k * 1.0 for k in range(4)),
    "enumerate": lambda: (k * 1.0 for k, _ in enumerate("abcd")),
    "a list": lambda: [0.0, 1.0, 2.0, 3.0],
    "a list's iterator": lambda: iter([0.0, 1.0, 2.0, 3.0]),
    "map of a builtin": lambda: map(abs, [0.0, 1.0, 2.0, 3.0]),
    "chain": lambda: itertools.chain([0.0, 1.0], [2.0, 3.0]),
    "functions beside items": lambda: [k for k, _ in [(0.0, abs), (1.0, len), (2.0, abs)]],
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_items_without_effects_are_taken(name: str, backend: str) -> None:
    make = SOURCES[name]

    def first_above(x: Any) -> Any:
        for v in make():
            if v > x:
                return v
        return -1.0

    function = wend.function(first_above, backend=backend)
    for x in (0.5, -1.0, 10.0):
        assert function(x) == first_above(x)


@pytest.mark.parametrize("again", [next, list, sum])
def test_what_a_loop_may_have_left_is_used_no_more(again: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        items = iter([1.0, 2.0, 3.0])
        for v in items:
            if v > x:
                break
        again(items)
        return v

    with pytest.raises(StructureError, match=r"only the run knows how many(.|\n)*To fix it: put"):
        wend.function(f)(1.0)


def test_items_with_effects_are_refused() -> None:
    def f(x: Any) -> Any:
        log: list[int] = []
        for v in counted(log):
            if v > x:
                break
        return len(log)

    def cured(x: Any) -> Any:
        log: list[int] = []
        for v in list(counted(log)):
            if v > x:
                break
        return len(log)

    with pytest.raises(StructureError, match="in some runs only"):
        wend.function(f)(1.0)
    assert wend.function(cured)(1.0) == 4
