"""Views of whole arrays in another shape: a write to one is a write to the array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend


def set_one(y: Any) -> None:
    y.flat[3] = 5.0


def set_the_last(y: Any) -> None:
    y.flat[-1] = y.flat[1]


def set_some(y: Any) -> None:
    y.flat[1:9:2] += 5.0
    y.flat[[0, 2]] = y.flat[4:6]


def set_where_true(y: Any) -> None:
    y.flat[y.flat[:] > 1.0] = 0.0


def set_in_a_loop(y: Any) -> None:
    for i in range(1, y.size):
        y.flat[i] += y.flat[i - 1]


def set_of_a_transpose(y: Any) -> None:
    y.T.flat[2] = 7.0
    y[::-1].flat[2] = 7.5


def set_all(y: Any) -> None:
    y.flat = y.T.flat


def set_all_cyclically(y: Any) -> None:
    y.flat = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dims", [(None, None), (None, 3), (4, None), (4, 3)])
@pytest.mark.parametrize(
    "write",
    [
        *(set_one, set_the_last, set_some, set_where_true, set_in_a_loop, set_of_a_transpose),
        *(set_all, set_all_cyclically),
    ],
)
def test_flat_writes_to_the_array_whatever_is_known_of_its_size(write: Any, dims: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        write(y)
        return y

    x = np.arange(12.0).reshape(4, 3) - 3.0
    found = wend.function(f, input_signature=[wend.TensorSpec(dims, float)])(x)
    np.testing.assert_array_equal(found, f(x))
