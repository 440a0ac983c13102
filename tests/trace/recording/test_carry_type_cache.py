"""Loops inside a loop that is traced again begin with what they settled on."""

from __future__ import annotations

import pytest

import wend
import wend.numpy as wnp
from wend.trace.recording.recording import Recording


def nest(depth: int, x):
    """A loop in a loop in a loop, each of which carries a number that becomes an array."""
    if depth == 0:
        return wnp.sin(x)
    total = 0.0
    for _ in range(3):
        total = total + nest(depth - 1, x)
    return total


def nest_of_forms(depth: int, x):
    if depth == 0:
        return wnp.sin(x)
    return wend.fori_loop(0, 3, lambda i, c: c + nest_of_forms(depth - 1, x), 0.0)


# Python runs the first trip of a captured loop whose carry is not traced yet.
@pytest.mark.parametrize(("form", "expected"), [(nest, [7, 19, 47]), (nest_of_forms, [5, 9, 14])])
def test_rounds_of_a_nest(form, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    regions: list[str] = []
    init = Recording.__init__

    def noted(self, name, *args, **kwargs) -> None:
        regions.append(name)
        init(self, name, *args, **kwargs)

    monkeypatch.setattr(Recording, "__init__", noted)
    found = []
    for depth in (2, 3, 4):
        regions.clear()
        value = wend.function(lambda x, d=depth: form(d, x))(wnp.float64(2.0))
        assert value == pytest.approx(3**depth * float(wnp.sin(2.0)))
        found.append(regions.count("after"))
    assert found == expected


def test_an_inner_loop_that_other_loops_precede_is_told_from_them() -> None:
    def program(x, y):
        total, other = 0.0, 0
        for _ in range(3):
            weak, strong = 1, 1.0
            for _ in range(2):
                weak = weak + 1
            for _ in range(2):
                strong = strong * x
            total, other = total + strong + y * weak, other + weak
        return total, other

    x, y = wnp.float64(2.0), wnp.float32(1.0)
    (total, other), plain = wend.function(program)(x, y), program(x, y)
    assert (total, other) == plain
    assert total.dtype == plain[0].dtype


def test_a_trace_settles_on_what_it_would_without_memory() -> None:
    """The inner loop's number stays weak: a float32 array keeps its dtype."""

    def program(x):
        carried = 0.0
        for _ in range(2):
            inner = 1.0
            for _ in range(2):
                inner = inner * 2.0
            carried = carried + x * inner
        return carried

    assert wend.function(program)(wnp.ones(3, "float32")).dtype == "float32"
