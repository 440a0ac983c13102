"""Arguments go to the parameters that Python gives them to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import wend

pytestmark = pytest.mark.filterwarnings("ignore::wend.RetraceWarning")


def positional(x: Any, a: Any = 1.0, b: Any = 2.0, /, **more: Any) -> Any:
    return x, a, b, more


def mixed(x: Any, /, a: Any = 1.0, *rest: Any, b: Any = 2.0, **more: Any) -> Any:
    return x, a, rest, b, more


def plain(x: Any, a: Any = 1.0, /, b: Any = 2.0) -> Any:
    return x, a, b


def outcome(call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    try:
        result = call(*args, **kwargs)
    except TypeError as error:
        return type(error)
    return repr(wend.tree.map(float, result))


@pytest.mark.parametrize("fun", [positional, mixed, plain])
def test_keywords_with_names_of_positional_parameters(fun: Callable[..., Any]) -> None:
    names = ("x", "a", "b", "c")
    for count in range(4):
        for given in itertools.chain([()], [(n,) for n in names], itertools.permutations(names, 2)):
            args = [10.0 + k for k in range(count)]
            kwargs = {name: 5.0 + k for k, name in enumerate(given)}
            compiled = wend.function(fun, backend="numpy")
            assert outcome(compiled, args, kwargs) == outcome(fun, args, kwargs)
