"""`count` and `index` of lists and tuples with traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import wend

CASES: list[Callable[[Any, Any], Any]] = [
    lambda x, y: (x, y, 1.0).count(x),
    lambda x, y: [x, y, x].count(1.0),
    lambda x, y: [x, y, 3.0].index(y),
    lambda x, y: (x, 2.0, y).index(y, 1),
    lambda x, y: [x, x, y, x].index(x, 1, 3),
    lambda x, y: [x, None, y].count(None),
    lambda x, y: (x, "a", y).index("a"),
]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("values", [(1.0, 1.0), (1.0, 2.0), (2.0, 3.0), (float("nan"), 1.0)])
def test_as_in_python(case: Any, values: Any, backend: str) -> None:
    compiled = wend.function(case, backend=backend)
    result = compiled(*values)
    assert result == case(*values)


@pytest.mark.parametrize("kind", [list, tuple])
def test_what_is_not_there(kind: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return kind((x, 5.0)).index(y)

    compiled = wend.function(f)
    assert compiled(1.0, 1.0) == 0
    for fun in (f, compiled):
        with pytest.raises(ValueError, match="not in") as caught:
            fun(1.0, 2.0)
        text = str(caught.value).partition("\n")[0]
        if fun is f:
            expected = text
    assert text == expected
