"""Which results are views: changing them changes what they were taken of, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.array_cases import SAMPLES
from tests.helpers.arrays import Sample, quiet
from wend.trace.arrays.tracer import Tracer

TRACED = [sample for sample in SAMPLES if sample.traced and not sample.name.startswith("special")]


def _shared(sample: Sample) -> list[tuple[bool, bool, bool]]:
    """Of each result: is it an argument, is it a view of one, and is it so in NumPy."""
    expected = quiet(lambda: sample.run(sample.original, *sample.arrays))
    writeable = quiet(lambda: [np.ndim(y) > 0 and y.flags.writeable for y in expected])
    found: list[tuple[bool, bool]] = []

    @wend.do_not_capture  # `is` of two arguments is refused in captured code
    def record(*xs: Any) -> Any:
        results = sample.run(sample.public, *xs)
        found[:] = [
            (
                any(result is x for x in xs),
                isinstance(result, Tracer) and any(result._base is x for x in xs),
            )
            for result in results
        ]
        return results

    quiet(lambda: wend.function(record)(*sample.arrays))
    arrays = [array for array in sample.arrays if isinstance(array, np.ndarray)]
    return [
        (*mine, any(np.shares_memory(y, array) for array in arrays))
        for mine, y, is_writeable in zip(found, expected, writeable, strict=True)
        if is_writeable
    ]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("sample", TRACED, ids=str)
def test_views(sample: Sample) -> None:
    for is_argument, is_view, is_shared in _shared(sample):
        assert not is_argument or is_shared  # what NumPy copies is no other name of it
        assert not is_shared or is_argument or is_view


@pytest.mark.parametrize(
    "fun",
    [
        np.copy,
        np.real,
        np.array,
        np.positive,
        np.rint,
        np.round,
        np.nan_to_num,
        lambda x: np.roll(x, 0, 0),
        lambda x: np.tile(x, 1),
        lambda x: np.full_like(x, x[0, 0]),
        lambda x: x.astype(x.dtype),
        lambda x: +x,
        lambda x: x[0],
        lambda x: x[0:1, 1],
        lambda x: x[[0, 1]],
        lambda x: np.split(x, 2)[1],
        lambda x: np.split(x, [1], axis=1)[0],
        lambda x: np.split(x, [2, 1], axis=1)[2],
    ],
)
@pytest.mark.parametrize("dtype", [float, int])
def test_changing_a_result(fun: Any, dtype: Any) -> None:
    """The argument changes exactly when NumPy's does."""

    def change(x: Any) -> Any:
        y = fun(x)
        y += 1
        return x + 0

    x = np.arange(6).reshape(2, 3).astype(dtype)
    if fun is np.round and np.shares_memory(np.round(x), x):
        pytest.skip("this NumPy's round of integers is the array itself; later ones copy, as wend")
    np.testing.assert_array_equal(wend.function(change)(x.copy()), change(x.copy()))


def added_to_view(fun: Any) -> Any:
    def change(x: Any) -> Any:
        y = fun(x)
        y += 1
        return x

    return change


@pytest.mark.parametrize(
    "fun", [np.transpose, lambda x: x.T[0], np.squeeze, lambda x: x[:, None].swapaxes(0, 2)]
)
def test_changing_a_view_in_another_order_changes_the_array(fun: Any) -> None:
    change, x = added_to_view(fun), np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(wend.function(change)(x.copy()), change(x.copy()))


@pytest.mark.parametrize("fun", [np.ravel, lambda x: x.T.reshape(2, 3)])
def test_changing_what_may_be_a_copy_is_refused(fun: Any) -> None:
    """NumPy decides by the order in memory."""
    with pytest.raises(TypeError, match="is a view"):
        wend.function(added_to_view(fun))(np.arange(6.0).reshape(2, 3))


@pytest.mark.skipif(np.__version__ < "2.1", reason="this NumPy's reshape has no copy=")
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_a_reshape_that_is_to_copy_copies(shape: tuple[int, ...]) -> None:
    def change(x: Any) -> Any:
        y = np.reshape(x, shape, copy=True)
        z = x.reshape(shape, copy=True)
        y[0], z[1] = 7.0, 8.0
        return x, y, z

    x = np.arange(4.0)
    for found, expected in zip(wend.function(change)(x.copy()), change(x.copy()), strict=True):
        np.testing.assert_array_equal(found, expected)
