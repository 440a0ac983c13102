"""`wend.numpy.creating` beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.samples import between
from tests.helpers.traced import DTYPES, arrays, check, scalars, slope


@pytest.mark.parametrize("name", ["zeros_like", "ones_like"])
@given(x=arrays(), dtype=st.none() | st.sampled_from(DTYPES))
def test_arrays_like_another(name: str, x: np.ndarray, dtype: Any) -> None:
    check(lambda m, x: getattr(m, name)(x), x)
    check(lambda m, x: getattr(m, name)(x, dtype=dtype), x)
    check(lambda m, x: getattr(m, name)(x, dtype, shape=(2, 0)), x)
    check(lambda m, x: m.ones_like(m.empty_like(x, dtype)), x)


@given(x=arrays(), number=scalars, dtype=st.none() | st.sampled_from(DTYPES))
def test_full_like(x: np.ndarray, number: Any, dtype: Any) -> None:
    kinds = np.asarray(number).dtype.kind, (dtype or x.dtype).kind
    if kinds[0] == "c" and kinds[1] not in "cb":
        return  # NumPy warns that it drops the imaginary part
    check(lambda m, x: m.full_like(x, number, dtype), x)
    if kinds[0] != "c" or x.dtype.kind in "cb":
        check(lambda m, x: m.full_like(x, number, shape=3), x)


@given(x=arrays(), dtype=st.none() | st.sampled_from(DTYPES))
def test_arrays_of_traced_ones(x: np.ndarray, dtype: Any) -> None:
    if x.dtype.kind in "fc" and dtype is not None and dtype.kind not in "fc":
        return  # NaN as an integer
    if x.dtype.kind == "c" and dtype is not None and dtype.kind != "c":
        return
    for make in ("asarray", "array"):
        check(lambda m, x, make=make: getattr(m, make)(x, dtype=dtype), x, through=False)
        check(lambda m, x, make=make: getattr(m, make)([x, x], dtype=dtype), x, through=False)
        check(
            lambda m, x, make=make: getattr(m, make)([[x, x], (x, 1)]),
            x.reshape(-1)[:1].sum(),
            through=False,
        )


def test_a_list_with_python_numbers() -> None:
    check(lambda m, x: m.asarray([x, 2, 0.5]), np.float32(3), through=False)
    check(lambda m, x: m.asarray([x, 2]), np.int8(3), through=False)
    check(lambda m, x: m.array([[x, 2.5], [0, x]]), 4, through=False)
    check(lambda m, x: m.array([x, [x]]), np.float64(1), through=False)


def test_like_an_array_of_unknown_size() -> None:
    @wend.function(input_signature=[wend.TensorSpec([None], "float32")])
    def like(x: Any) -> Any:
        return wnp.zeros_like(x), wnp.full_like(x, 2, int), wnp.ones_like(x, shape=(2,))

    found = like(np.ones(3, np.float32))
    wanted = np.zeros(3, np.float32), np.full(3, 2), np.ones(2, np.float32)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_gradients() -> None:
    slope(lambda x: wnp.asarray([x[0] * x[1], x[1], 2.0]), between(-1, 1, 2))
    slope(lambda x: wnp.full_like(x, x[0]) * x, between(-1, 1, 3))


# Sizes that are traced and negative
NEGATIVE = {
    "zeros": lambda m, n: m.zeros(n),
    "ones": lambda m, n: m.ones((2, n)),
    "full": lambda m, n: m.full(n, 2.0),
    "eye": lambda m, n: m.eye(n),
    "eye of columns": lambda m, n: m.eye(3, n),
    "identity": lambda m, n: m.identity(n),
    "linspace": lambda m, n: m.linspace(0.0, 1.0, n),
    "logspace": lambda m, n: m.logspace(0.0, 1.0, n),
    "repeat": lambda m, n: m.repeat(m.arange(3.0), n),
    "repeats": lambda m, n: m.repeat(m.arange(3.0), m.stack([n, n + 1, n + 5])),
    "tile": lambda m, n: m.tile(m.arange(3.0), n),
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", NEGATIVE)
def test_a_negative_size_is_refused_as_numpy_refuses_it(name: str, backend: str) -> None:
    fun = wend.function(lambda n: NEGATIVE[name](wnp, n), backend=backend)
    for n in (2, 0, 5):
        np.testing.assert_allclose(fun(n), NEGATIVE[name](np, np.int64(n)), rtol=1e-14)
    with pytest.raises(ValueError) as expected:  # it is compared
        NEGATIVE[name](np, np.int64(-2))
    with pytest.raises(ValueError) as found:
        fun(-2)
    assert str(found.value) == str(expected.value)


def test_a_negative_range_is_empty() -> None:
    def ranges(m: Any, n: Any) -> Any:
        return m.arange(n), m.arange(4, n), m.arange(n, 0, -2), m.tri(n), m.tri(3, n, 1, bool)

    fun = wend.function(lambda n: ranges(wnp, n))
    for n in (-3, 0, 1, 7):
        expected = ranges(np, n)
        for mine, theirs in zip(fun(n), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_the_order_may_stand_where_numpy_has_it():
    def fun(x, n):
        k = np.int64(0)
        while k < n:
            k = k + 1
        return (
            np.ones((k, 2), float, "C") * x,
            np.zeros(k, int, "F"),
            np.empty((k,), float, order="C") * 0.0,
            np.full(k, x, float, "C"),
        )

    for n in (3, 0):
        for result, expected in zip(wend.function(fun)(2.0, n), fun(2.0, n), strict=True):
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)
