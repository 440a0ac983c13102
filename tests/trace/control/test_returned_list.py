"""Lists that grow in loops and branches, as results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])


def doubled(x: Any, limit: Any) -> Any:
    out = [x]
    while x < limit:
        x = x * 2
        out.append(x)
    return out


def steps(v: Any, n: Any) -> Any:
    out = []
    for k in range(n):
        v = v * 2
        out.append((v, k))
    return {"steps": out, "last": v}


@BACKENDS
@pytest.mark.parametrize("limit", [0.0, 5.0, 100.0])
def test_lists_of_numbers_are_lists_of_python(backend: str, limit: float) -> None:
    result = wend.function(doubled, backend=backend)(3.0, limit)
    assert result == doubled(3.0, limit)
    assert {*map(type, result)} == {float}


@BACKENDS
@pytest.mark.parametrize("count", [0, 1, 3])
def test_items_may_be_trees_of_arrays(backend: str, count: int) -> None:
    result = wend.function(steps, backend=backend)(np.ones(2), np.int64(count))
    expected = steps(np.ones(2), count)
    assert len(result["steps"]) == count
    for (v, k), (v2, k2) in zip(result["steps"], expected["steps"], strict=True):
        np.testing.assert_array_equal(v, v2)
        assert k == k2


@BACKENDS
def test_an_outer_function_takes_it_as_a_list(backend: str) -> None:
    inner = wend.function(doubled)

    def summed(x: Any) -> Any:
        items, total = inner(x, 50.0), 0.0
        for k in range(len(items)):
            total = total + items[k]
        items.append(total)
        return items

    result = wend.function(summed, backend=backend)(3.0)
    assert result == [3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 189.0]
    assert wend.grad(lambda x: summed(x)[-1])(3.0) == 63.0


def test_vjp_of_a_list() -> None:
    value, _ = wend.vjp(lambda x: doubled(x, 20.0), 3.0)
    assert value == [3.0, 6.0, 12.0, 24.0]
