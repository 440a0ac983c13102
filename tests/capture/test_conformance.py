"""Captured functions do what plain Python does, whichever way their arguments come."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wend
from tests.capture import snippets_of_builtins, snippets_of_containers, snippets_of_state
from tests.capture.snippets import SNIPPETS, Snippet
from tests.helpers.shares import is_chosen
from wend.base import trees
from wend.capture.convert import capture

STATIC_SHARE = 4  # of the snippets whose arguments are static, too


def _outcome(fun: Any, args: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "value", fun(*copy.deepcopy(args))
    except Exception as error:
        return "error", error


def _ways(snippet: Snippet, args: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """The same function with its arguments plain, traced, or some of each."""
    yield "plain", capture(snippet.fun)
    yield "traced", wend.function(snippet.fun)
    if is_chosen(f"{snippet.fun.__name__} {args}", STATIC_SHARE) and not any(
        isinstance(arg, np.ndarray) for arg in args
    ):
        numbers = range(min(len(args), len(inspect.signature(snippet.fun).parameters)))
        yield "static", wend.function(snippet.fun, static_argnums=tuple(numbers))
        for k in numbers if len(args) > 1 else ():
            yield f"static {k}", wend.function(snippet.fun, static_argnums=(k,))


assert snippets_of_builtins, (snippets_of_containers, snippets_of_state)  # they add to it

CASES = [
    pytest.param(snippet, args, id=f"{snippet.fun.__name__}-{number}")
    for snippet in SNIPPETS
    for number, args in enumerate(snippet.arguments)
]


def test_the_table_is_long() -> None:
    assert len(SNIPPETS) >= 150
    assert len({snippet.fun.__name__ for snippet in SNIPPETS}) == len(SNIPPETS)


@pytest.mark.parametrize(("snippet", "args"), CASES)
def test_snippet(snippet: Snippet, args: tuple[Any, ...]) -> None:
    kind, expected = _outcome(snippet.fun, args)
    for way, fun in _ways(snippet, args):
        found_kind, found = _outcome(fun, args)
        is_traced = way not in ("plain", "static")
        if kind == "error" and _is_python_error(found, expected):
            continue
        if is_traced and snippet.refused is not None and found_kind == "error":
            assert snippet.refused in str(found), way
            continue
        if kind == "error":
            assert found_kind == "error", (way, found)
            assert _is_python_error(found, expected), (way, found)
            continue
        if found_kind == "error":
            raise AssertionError(f"{way}: {found}") from found
        _check_equal(found, expected, way)


def _is_python_error(found: Any, expected: Any) -> bool:
    """Return whether an error is Python's; of names in cells it says `NameError`."""
    kind = NameError if isinstance(expected, NameError) else type(expected)
    return isinstance(found, kind) and not isinstance(found, wend.WendError)


def _check_equal(found: Any, expected: Any, way: str) -> None:
    mine, tree = trees.flatten(found)
    theirs, other = trees.flatten(expected)
    assert tree == other, (way, found, expected)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=f"{way}: {found} {expected}")
