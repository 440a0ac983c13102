"""Globals that a call sets for a time: their guards, and who else may look at them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import wend
from wend.base.errors import SideEffectError

_mode = "plain"
_factor = 2.0


class Mode:
    def __init__(self, name: str) -> None:
        self.name, self.before = name, _mode

    def __enter__(self) -> None:
        global _mode
        _mode = self.name

    def __exit__(self, *args: object) -> None:
        global _mode
        _mode = self.before


def scaled(x: float) -> float:
    return x if _mode == "plain" else 3.0 * x


def sets_a_mode(x: float) -> float:
    with Mode("triple"):
        y = scaled(x)
    return y + scaled(x)


def test_one_trace_serves_all_calls() -> None:
    compiled = wend.function(sets_a_mode)
    assert [compiled(1.0), compiled(2.0)] == [4.0, 8.0]
    assert compiled.trace_count == 1


def test_what_it_held_before_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = wend.function(sets_a_mode)
    assert compiled(1.0) == 4.0
    monkeypatch.setitem(globals(), "_mode", "triple")
    assert compiled(1.0) == sets_a_mode(1.0) == 6.0


def test_the_derivative_sees_what_is_set() -> None:
    assert wend.grad(sets_a_mode)(1.0) == 4.0


def test_functions_that_are_called_meanwhile_see_what_is_set() -> None:
    inner = wend.function(scaled)

    def f(x: float) -> float:
        with Mode("triple"):
            y = inner(x)
        return y + inner(x)

    compiled = wend.function(f)
    assert [compiled(1.0), compiled(2.0), inner(1.0)] == [4.0, 8.0, 1.0]
    assert compiled.trace_count == 1


def test_it_is_refused_where_functions_run_with_the_graph() -> None:
    def f(x: float) -> float:
        with Mode("triple"):
            return wend.py_function(scaled, 0.0, x)

    with pytest.raises(SideEffectError, match="`_mode` is changed"):
        wend.function(f)(1.0)
    assert _mode == "plain"


@contextlib.contextmanager
def mode(name: str) -> Iterator[None]:
    global _mode
    before, _mode = _mode, name
    try:
        yield
    finally:
        _mode = before


def test_it_is_refused_where_a_generator_sets_it_for_such_a_function() -> None:
    def f(x: float) -> float:
        with mode("triple"):
            return wend.py_function(scaled, 0.0, x)

    def g(x: float) -> float:
        with mode("triple"):
            return scaled(x)

    with pytest.raises(SideEffectError, match="`_mode` is changed"):
        wend.function(f)(1.0)
    assert wend.function(g)(1.0) == 3.0
    assert _mode == "plain"


def test_floats_may_be_set() -> None:
    def f(x: float) -> float:
        global _factor
        _factor = 3.0
        y = x * _factor
        _factor = 2.0
        return y

    run = wend.function(f)
    assert (run(1.0), _factor, run(2.0), _factor) == (3.0, 2.0, 6.0, 2.0)
