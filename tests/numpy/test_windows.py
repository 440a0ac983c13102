"""`sliding_window_view` of traced arrays, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import wend
from wend.testing import check_grads

CALLS = [
    ((7,), (3,), None),
    ((7,), (7,), None),
    ((7,), (1,), 0),
    ((7,), (0,), 0),
    ((0,), (0,), None),
    ((3, 5), (2, 3), None),
    ((3, 5), 2, 1),
    ((3, 5), 2, -2),
    ((3, 5), (2, 4), (0, 1)),
    ((3, 5), (4, 2), (1, 0)),
    ((3, 5), (2, 2), (1, 1)),
    ((3, 5), (2, 3, 2), (0, 1, -1)),
    ((2, 3, 4), (2, 2), (2, 0)),
]
BAD = [
    ((3,), 5, None),
    ((3,), -1, None),
    ((3, 4), 2, None),
    ((3, 4), (2, 2), 0),
    ((3, 4), 2, 2),
    ((3, 4), (3, 3), (1, 1)),
    ((3,), 1.5, None),
]


def windows(x: Any, shape: Any, axis: Any) -> Any:
    return sliding_window_view(x, shape, axis)


def array(shape: Any, dtype: Any = float) -> Any:
    return (np.arange(np.prod(shape)) * 7 % 11).reshape(shape).astype(dtype)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("call", CALLS, ids=map(str, CALLS))
def test_values(call: Any, backend: str) -> None:
    shape, sizes, axis = call
    compiled = wend.function(lambda x: windows(x, sizes, axis), backend=backend)
    for dtype in (np.float64, np.bool, np.complex64):
        x = array(shape, dtype)
        np.testing.assert_array_equal(compiled(x), windows(x, sizes, axis), strict=True)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_sizes_that_only_the_run_knows(backend: str) -> None:
    def means(x: Any, n: Any) -> Any:
        return sliding_window_view(x[x > 0], n).mean(axis=-1)

    compiled, x = wend.function(means, backend=backend), array((9,))
    for n in (3, 1, 8):
        np.testing.assert_allclose(compiled(x, n), means(x, n))
    assert compiled.trace_count == 1
    for n in (9, -1):
        with pytest.raises(ValueError, match="window") as expected:
            means(x, n)
        with pytest.raises(ValueError, match="window") as caught:
            compiled(x, n)
        assert str(caught.value).split(" at ")[0] == str(expected.value)


@pytest.mark.parametrize("call", BAD, ids=map(str, BAD))
def test_errors(call: Any) -> None:
    shape, sizes, axis = call
    with pytest.raises((TypeError, ValueError)) as expected:
        windows(array(shape), sizes, axis)
    with pytest.raises(type(expected.value)) as caught:
        wend.function(lambda x: windows(x, sizes, axis))(array(shape))
    if sizes != 1.5:
        assert str(caught.value) == str(expected.value)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("call", [CALLS[0], CALLS[5], CALLS[10]], ids=map(str, (0, 5, 10)))
def test_gradients(call: Any, backend: str) -> None:
    shape, sizes, axis = call
    weights = np.cos(np.arange(windows(array(shape), sizes, axis).size))
    with wend.config(backend=backend):
        check_grads(
            lambda x: weights @ (windows(x, sizes, axis) ** 2).ravel(), (array(shape),), order=2
        )


def test_the_windows_are_a_read_only_view() -> None:
    @wend.function
    def written(x: Any) -> Any:
        sliding_window_view(x, 2)[0, 0] = 1.0
        return x

    with pytest.raises(ValueError, match=r"^assignment destination is read-only$"):
        written(array((3,)))

    @wend.function
    def changed(x: Any) -> Any:
        view = sliding_window_view(x, 2)
        x[0] = 5.0
        return view

    with pytest.raises(TypeError, match="view"):
        changed(array((3,)))
