"""`wend.numpy.changing` beside NumPy: what a function leaves in its first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.drawn import ALL, REAL, check, drawn, few

VALUES = drawn(["f8", "f4", "i4"], shape=st.sampled_from([(), (1,), (2,), (7,), (2, 3), (0,)]))


def changed(name: str, *rest: Any, **options: Any) -> Callable[..., Any]:
    """What the function makes of a copy of its first argument."""

    def call(m: Any, x: Any, *arrays: Any) -> Any:
        x = x.copy()
        assert getattr(m, name)(x, *arrays, *rest, **options) is None
        return x

    return call


@few
@given(
    x=drawn(ALL, shape=(2, 3)),
    y=drawn(ALL, shape=st.sampled_from([(), (3,), (2, 1), (4,)])),
    mask=drawn(["?"], shape=st.sampled_from([(), (3,), (2, 1)])),
    casting=st.sampled_from(["no", "safe", "same_kind", "unsafe"]),
)
def test_copyto(x: np.ndarray, y: np.ndarray, mask: np.ndarray, casting: str) -> None:
    check(changed("copyto", casting), x, y)
    check(lambda m, x, y, mask: changed("copyto", where=mask)(m, x, y), x, y, mask)
    for number in (2, 2.5, 1j):
        check(changed("copyto", number), x)


@few
@given(
    x=drawn(REAL, shape=st.sampled_from([(3, 3), (7, 2), (2, 4), (2, 2, 2), (2, 3, 2), (3,)])),
    values=VALUES,
    wrap=st.booleans(),
)
def test_fill_diagonal(x: np.ndarray, values: np.ndarray, wrap: bool) -> None:
    check(changed("fill_diagonal", wrap=wrap), x, values)


@few
@given(
    x=drawn(REAL, shape=(2, 3)),
    places=st.lists(st.integers(-6, 6), max_size=4),
    values=VALUES,
    mode=st.sampled_from(["raise", "wrap", "clip", "?"]),
)
def test_put(x: np.ndarray, places: list[int], values: np.ndarray, mode: str) -> None:
    check(changed("put", mode=mode), x, np.array(places, int), values)
    check(lambda m, x, v: changed("put")(m, x, places, v), x, values)
    check(changed("put", mode=mode), x, np.array(places, int) > 0, values)

    def by_method(m: Any, x: Any, k: Any, v: Any) -> Any:
        x = x.copy()
        x.put(k, v, mode)
        return x

    check(by_method, x, np.array(places, int), values)


@few
@given(
    x=drawn(REAL, shape=(2, 3)),
    mask=drawn(["?"], shape=st.sampled_from([(2, 3), (6,), (3,)])),
    values=VALUES,
)
def test_putmask_and_place(x: np.ndarray, mask: np.ndarray, values: np.ndarray) -> None:
    if not values.ndim:
        values = values[()]  # a number, as arrays without axes are when traced
    check(changed("putmask"), x, mask, values)
    check(changed("place"), x, mask, values)
    check(lambda m, x, mask: changed("place")(m, x, mask, [1.0, 2.0]), x, mask)


@few
@given(x=drawn(ALL, shape=(2, 3)), values=drawn(REAL, shape=(2, 2)))
def test_put_along_axis(x: np.ndarray, values: np.ndarray) -> None:
    indices = np.array([[0, -1], [1, 1]])
    values = values.astype(x.dtype)
    check(changed("put_along_axis", indices, values, 1), x)
    put = wend.function(lambda x, v: wnp.put_along_axis(x, indices, v, 1, inplace=False))
    expected = np.array(x)
    np.put_along_axis(expected, indices, values, 1)
    np.testing.assert_array_equal(put(x, values), expected)


def test_they_change_views_and_arrays_that_python_knew() -> None:
    def f(x: Any, n: Any) -> Any:
        a = np.zeros((4, 4))
        np.fill_diagonal(a[1:], x)
        for i in range(n):
            np.copyto(a[i], a[i + 1], where=a[i] == 0)
            np.put(a, [i, -i - 1], i + 2)
            np.fill_diagonal(a.T, a[i])
            np.putmask(a[:, i], a[:, i] > 2, x)
            np.place(a[i:], a[i:] > 3, [x, 1])
        return a

    for n in (0, 1, 3):
        np.testing.assert_array_equal(wend.function(f)(2.5, np.int64(n)), f(2.5, n))


@pytest.mark.parametrize("n", [2, 5])
def test_sizes_that_the_run_tells(n: int) -> None:
    def f(n: Any, v: Any) -> Any:
        a = np.zeros((n, 3))
        np.fill_diagonal(a, v)
        b = a.copy()
        np.fill_diagonal(b, v, wrap=True)
        np.put(b, [0, 4], v)
        np.place(b, b == 0, v)
        np.putmask(a, a == 0, v[0])
        return a, b

    v = np.array([3.0, 4.0, 5.0, 6.0])
    for found, expected in zip(wend.function(f)(np.int64(n), v), f(n, v), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["copyto", "put", "putmask", "place"])
def test_an_array_of_outside(name: str) -> None:
    table = np.ones((2, 2))
    rest: dict[str, Callable[[Any], tuple[Any, ...]]] = {
        "put": lambda x: ([0], x),
        "putmask": lambda x: (table > 0, x),
        "place": lambda x: (table > 0, x),
    }

    def f(x: Any) -> Any:
        getattr(np, name)(table, *rest.get(name, lambda x: (x,))(x))
        return x

    for run in f, wend.function(f):
        table[...] = 1.0
        for x in 2.0, 3.0:
            assert run(np.float64(x)) == x
            expected = [[x, 1.0], [1.0, 1.0]] if name == "put" else [[x, x], [x, x]]
            assert table.tolist() == expected


@pytest.mark.parametrize("dtype", ["i1", "u1"])
@pytest.mark.parametrize("size", [3, 300])
def test_positions_wrap_in_arrays_longer_than_their_dtype_counts(dtype, size):
    limits = np.iinfo(dtype)
    x, positions = np.arange(float(size)), np.array([limits.min, limits.max, 0, 1], dtype)
    taken = wend.function(lambda x, n: np.take(x, n, mode="wrap"))(x, positions)
    np.testing.assert_array_equal(taken, np.take(x, positions, mode="wrap"))


@pytest.mark.parametrize("cut", [np.tril, np.triu])
def test_triangles_keep_bools(cut):
    result = wend.function(lambda x: cut(x))(np.ones((3, 3), bool))
    assert result.dtype == bool
    np.testing.assert_array_equal(result, cut(np.ones((3, 3), bool)))
