"""Numbers of the run as keys of dicts: derivatives, and what a trace costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.testing import check_grads


def mixed(x: Any, keys: Any) -> Any:
    table = {1: x, 2: x * x, 4: np.sin(x)}
    total = 0.0
    for k in keys:
        total = total + table[int(k)] * k
        table[int(k)] = table[int(k)] * np.cos(x)
    return total


def unrolled(x: float, keys: Any) -> float:
    return float(mixed(x, [*map(int, keys)]))


@pytest.mark.parametrize("keys", [[], [2], [4, 1, 4, 2]])
def test_the_items_have_derivatives(keys: list[int]) -> None:
    keys = np.array(keys, float)
    assert wend.function(mixed)(0.7, keys) == pytest.approx(unrolled(0.7, keys))
    if len(keys):
        check_grads(lambda x: mixed(x, keys), (0.7,), order=2)


def test_a_dict_of_arguments_is_read_at_a_traced_key() -> None:
    read = wend.function(lambda table, k: table[k] * 2.0)
    table = {3: 1.5, 8: 2.5}
    assert (read(table, 3), read(table, 8)) == (3.0, 5.0)
    assert wend.grad(read)(table, 8) == {3: 0.0, 8: 2.0}
    with pytest.raises(KeyError) as caught:
        read(table, 4)
    assert caught.value.args == (4,)
    assert read.trace_count == 1


def test_programs_that_can_be_specialized_are() -> None:
    def memo(x: Any, n: int) -> Any:
        table = {0: x}
        for i in range(1, n):
            table[i] = table[i - 1] * 2
        return table[n - 1]

    function = wend.function(memo)
    assert [function(1.5, n) for n in (1, 4, 2)] == [1.5, 12.0, 3.0]
