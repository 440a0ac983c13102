"""The methods of ufuncs beside NumPy, `where=`, and writes through `.flat`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.drawn import check
from wend.testing import check_grads

X = np.random.default_rng(0).normal(size=(3, 5))
V = X[0]
I = np.array([3, -1, 2, 7, 5])
METHODS = [
    *(lambda m, x, u=u: getattr(np, u).reduce(x) for u in ("subtract", "divide", "arctan2")),
    *(lambda m, x, u=u: getattr(np, u).reduce(x, axis=1) for u in ("subtract", "hypot", "fmin")),
    *(lambda m, x, u=u: getattr(np, u).accumulate(x, axis=1) for u in ("subtract", "divide")),
    *(lambda m, x, u=u: getattr(np, u).reduceat(x, [0, 2, 4], axis=1)
      for u in ("add", "maximum", "divide", "subtract")),
    lambda m, x: np.multiply.reduceat(x[0], [3, 1, 1, 4]),
    lambda m, x: np.power.reduce(np.abs(x)[:, ::-1], axis=1),  # NumPy 2.4 errs of adjacent ones
    lambda m, x: np.maximum.reduce([x[0], x[1] * 2, x[2]]),
    lambda m, x: np.subtract.outer(x[0], [1.0, 2.0]),
]  # fmt: skip


@pytest.mark.parametrize("call", METHODS)
def test_methods_are_numpys(call: Any) -> None:
    check(call, X, ulps=16, through=False)
    check_grads(lambda x: np.sum(call(np, x) ** 2), (X,), order=1, rtol=1e-3, atol=1e-3)


def test_methods_of_integers_and_their_errors() -> None:
    for call in (
        lambda m, x: np.subtract.accumulate(x),
        lambda m, x: np.floor_divide.reduce(x),
        lambda m, x: np.bitwise_or.reduceat(x, [0, 3]),
        lambda m, x: np.add.reduceat(x, [0, 9]),
        lambda m, x: np.add.reduceat(x, [-1]),
        lambda m, x: np.sqrt.reduce(x),
        lambda m, x: np.subtract.reduce(x[:0]),
        lambda m, x: np.subtract.accumulate(x[:0]),
    ):
        check(call, I, through=False)


def in_place(x: Any, k: Any) -> Any:
    """Every position of `at` that repeats, of known keys; a traced key for sums."""
    y = np.ones((4, 3)) * 2
    np.multiply.at(y, ([0, 1, 1, 0], [2, 0, 0, 2]), x[0, :4])
    np.maximum.at(y, [3, 3], x[:2, :3])
    np.divide.at(y, 1, x[2, 2:])
    np.negative.at(y, ([0, 0, 0], [1, 1, 1]))
    np.hypot.at(y, (slice(0, 4, 3), 1), x[0, 0])
    np.add.at(y, k, x[1, :3])
    np.subtract.at(y, ([0, 0], [0, 0]), x[1, 3:])
    return y


def test_at() -> None:
    k = np.array([1, 1, 2])
    check(lambda m, x, k: in_place(x, k), X, k, ulps=4, through=False)
    check_grads(lambda x: np.sum(np.sin(in_place(x, k))), (X,), order=1)
    with pytest.raises(TypeError, match="write it as a loop"):
        wend.function(lambda x, k: np.divide.at(x, k, 2.0))(V, k)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_reduceat_of_traced_positions(backend: str) -> None:
    def sums(x: Any, k: Any) -> Any:
        return [u.reduceat(x, k, axis=1) for u in (np.add, np.multiply, np.maximum, np.minimum)]

    run = wend.function(sums, backend=backend)
    for k in ([0, 2, 4], [3, 1, 1], [4, 0, 2]):
        for result, reference in zip(run(X, np.array(k)), sums(X, np.array(k)), strict=True):
            np.testing.assert_allclose(result, reference, rtol=1e-14)
    with pytest.raises(IndexError):
        run(X, np.array([0, 5, 1]))


def test_what_where_leaves_out_has_no_derivative() -> None:
    def guarded(x: Any) -> Any:
        ratio = np.divide(x, x - x[0], out=np.zeros_like(x), where=x != x[0])
        root = np.sqrt(x, out=np.full(5, -1.0), where=x > 0)
        log = np.log(x, out=np.zeros(5), where=x > 0)
        angle = np.arccosh(x, out=np.zeros(5), where=x > 1)
        return ratio * root + log * angle

    check(lambda m, x: guarded(x), V, ulps=16, through=False)
    gradient = wend.grad(lambda x: np.sum(guarded(x)[1:] ** 2))(V)
    step = 1e-6 * np.eye(5)
    ends = [[np.sum(guarded(V + sign * d)[1:] ** 2) for sign in (1, -1)] for d in step]
    slopes = [(high - low) / 2e-6 for high, low in ends]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)


def through_flat(x: Any, k: Any) -> Any:
    """Reads, writes and iterates over arrays of several axes, and views of them."""
    y, z = x.copy(), np.zeros((2, 3))
    y.flat[3] = 7.0
    y.flat[1:3] = [1.0, 2.0]
    y.flat[[0, 5]] *= x[0, 0]
    y.T.flat[2] = x[1, 1]
    y.flat[k] = -1.0
    z.flat = x.flat[:4]
    z.flat[2] = x[0, 1]
    z.T.flat[1] += 1.0
    return y, z, x.flat[4], sum(x.flat), np.array([t * 2 for t in x.flat]), len(x.flat)


def test_flat() -> None:
    check(lambda m, x, k: through_flat(x, k), X, 11, ulps=4, through=False)
    check_grads(lambda x: np.sum(through_flat(x, 11)[0] ** 2), (X,), order=2)


@pytest.mark.parametrize(
    "method",
    [np.bitwise_and.reduce, np.left_shift.accumulate, np.bitwise_or.outer, np.gcd.reduce],
)
def test_types_that_a_ufunc_does_not_take_are_named_by_numpy(method: Any) -> None:
    arguments = (V, V) if method.__name__ == "outer" else (V,)
    with pytest.raises(TypeError) as expected:
        method(*arguments)
    with pytest.raises(TypeError) as found:
        wend.function(lambda *args: method(*args))(*arguments)
    assert type(found.value) is type(expected.value)
    assert str(found.value).partition(",")[0] == str(expected.value).partition(",")[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ufunc", [np.add, np.subtract])
@pytest.mark.parametrize("dtype", "i1 u1 i4 u4 i8 f4".split())
@pytest.mark.parametrize("key", [(0, [0, 0, 1]), 1, slice(None)], ids=str)
def test_at_takes_pythons_numbers_in_the_dtype_of_the_array(
    ufunc: Any, dtype: str, key: Any
) -> None:
    def run(x: Any, n: Any) -> Any:
        ufunc.at(x, key, 3)
        ufunc.at(x, key, n)
        ufunc.at(x, key, -300)
        return x

    x = np.arange(6).reshape(2, 3).astype(dtype)
    expected = run(x.copy(), 2)
    for backend in ("numpy", "native"):
        found = wend.function(run, backend=backend)(x.copy(), 2)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


# Positions that only the run knows
NUMBERS, PLACES = np.array([0.3, -1.2, 2.5, 0.7, -0.4, 1.9, 1.1]), np.array([0, 3, 0, 2, -2, 1, 0])
COMBINED = [np.maximum, np.minimum, np.multiply, np.fmax, np.hypot, np.logaddexp, np.logical_or]
OF_INTEGERS = [np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.gcd, np.multiply, np.maximum]
KEYS: list[Any] = [
    lambda k: k,
    lambda k: (k,),
    lambda k: (k, k % 3),
    lambda k: (k[:2], [0, 1]),
    lambda k: (slice(None, 2), k % 3),
    lambda k: [k[0], k[1]],
    lambda k: k[:0],
    lambda k: k[1],
]


def changed_at(ufunc: Any, key_of: Any) -> Any:
    def run(x: Any, k: Any) -> Any:
        out = np.outer(x[:4], x[:3]).astype(x.dtype)
        key = key_of(k)
        values = x[:7] if out[key].shape[:1] == (7,) and out[key].ndim == 1 else x[0]
        ufunc.at(out, key, values)
        return out

    return run


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("key_of", KEYS, ids=map(str, range(len(KEYS))))
def test_at_keys_of_the_run(key_of: Any, backend: str) -> None:
    for ufunc in (np.add, np.subtract, np.maximum):
        fun = changed_at(ufunc, key_of)
        actual = wend.function(fun, backend=backend)(NUMBERS, PLACES)
        np.testing.assert_allclose(actual, fun(NUMBERS, PLACES), rtol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("ufunc", [*COMBINED, *OF_INTEGERS], ids=lambda u: u.__name__)
def test_at_positions_that_repeat(ufunc: Any, backend: str) -> None:
    x = NUMBERS if ufunc in COMBINED[:1] + COMBINED[3:] or ufunc is np.minimum else np.arange(7) + 3
    fun = changed_at(ufunc, KEYS[2])
    actual, expected = wend.function(fun, backend=backend)(x, PLACES), fun(x, PLACES)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    assert actual.dtype == expected.dtype


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("ufunc", COMBINED[:6], ids=lambda u: u.__name__)
def test_gradients_of_at(ufunc: Any, backend: str) -> None:
    with wend.config(backend=backend):
        fun = changed_at(ufunc, KEYS[2])
        check_grads(lambda x: np.sum(np.sin(fun(x, PLACES))), (NUMBERS,), order=1)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_at_a_mask_of_the_run(backend: str) -> None:
    def run(x: Any, mask: Any) -> Any:
        out = x.copy()
        np.multiply.at(out, mask, 2.0)
        np.maximum.at(out, mask, x[mask] * 3)
        return out

    fun = wend.function(run, backend=backend)
    np.testing.assert_array_equal(fun(NUMBERS, NUMBERS > 0.5), run(NUMBERS, NUMBERS > 0.5))
