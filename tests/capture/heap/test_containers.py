"""Containers and those nested in them."""

from __future__ import annotations

from typing import Any

from wend.capture.heap.containers import nested_containers


def test_one_that_contains_itself_is_not_entered_again() -> None:
    itself: list[Any] = [[1.0]]
    itself.append(itself)
    nested = nested_containers({"a": itself})
    (item, inner) = nested["a"]
    assert item is itself
    assert [*inner] == [0, 1]
    assert inner[1] == (itself, {})
