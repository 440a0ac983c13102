"""Containers and those nested in them."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import wend
from wend.capture.heap.containers import nested_containers


def test_one_that_contains_itself_is_not_entered_again() -> None:
    itself: list[Any] = [[1.0]]
    itself.append(itself)
    nested = nested_containers({"a": itself})
    (item, inner) = nested["a"]
    assert item is itself
    assert [*inner] == [0, 1]
    assert inner[1] == (itself, {})


def test_results_of_an_interactive_session_are_not_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps them in `builtins._`, where they may contain themselves."""
    itself: list[Any] = []
    itself.append(itself)
    monkeypatch.setattr(builtins, "_", itself, raising=False)

    def f(x: Any) -> Any:
        globals()["_written"] = 1.0
        return x

    with pytest.raises(wend.WendError, match="outlives the call"):
        wend.function(f)(1.0)
