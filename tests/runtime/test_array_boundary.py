"""What is known of arrays that cross to a backend."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import AliasError
from wend.runtime.array_boundary import HOST

as_strided = np.lib.stride_tricks.as_strided


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (1, 3), (3, 1), (2, 2, 2), (2, 0)])
def test_overlaps_are_those_of_addresses(shape: tuple[int, ...]) -> None:
    for strides in itertools.product((-24, -8, 0, 8, 16, 24, 48), repeat=len(shape)):
        array = as_strided(np.zeros(200)[100:], shape, strides)
        places = [
            sum(k * stride for k, stride in zip(index, strides, strict=True))
            for index in np.ndindex(shape)
        ]
        if len({*places}) < len(places):
            assert HOST.overlaps_itself(array), strides
        elif np.sort(np.abs(strides)).tolist() == sorted(np.zeros(shape).strides):
            assert not HOST.overlaps_itself(array), strides


def test_slices_and_transposes_do_not_overlap() -> None:
    x = np.zeros((4, 6, 5))
    views = [x[::2], x[:, ::-3], x.T, x[..., 1], x[1:3].transpose(1, 2, 0)[::-1], x.real, x[:0]]
    assert not any(map(HOST.overlaps_itself, [*views, x.astype(complex).imag]))


def changed(x: Any) -> Any:
    x[0] = 5.0
    return x.sum()


@pytest.mark.parametrize("options", [{"backend": "numpy"}, {"backend": "native"}])
def test_arrays_whose_elements_share_memory_are_not_changed(options: dict[str, Any]) -> None:
    function = wend.function(changed, **options)
    assert function(np.ones(3)) == 7.0
    for _ in range(3):
        for shape, strides in (((3,), (0,)), ((3, 2), (8, 8)), ((2, 3), (0, 8))):
            array = as_strided(np.ones(6), shape, strides)
            with pytest.raises(AliasError, match="one place of the memory"):
                function(array)
            np.testing.assert_array_equal(array, 1.0)
            assert function(array.copy()) == changed(array.copy())
    with pytest.raises(ValueError, match="read-only"):
        function(np.broadcast_to(1.0, (3,)))


def test_arrays_whose_elements_share_memory_are_read() -> None:
    array = as_strided(np.ones(1), (3,), (0,))
    assert wend.function(lambda x: x.sum())(array) == 3.0
    np.testing.assert_array_equal(wend.grad(lambda x: (x * x).sum())(array), [2.0] * 3)
