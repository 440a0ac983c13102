"""`scan` and `map`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.graphs import loops, traced

import wend
import wend.numpy as wnp


def plain_scan(f, carry, xs, reverse=False):
    ys = [None] * len(xs)
    for k in range(len(xs))[:: -1 if reverse else 1]:
        carry, ys[k] = f(carry, xs[k])
    return carry, np.array(ys)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse):
    def f(c, x):
        return c * 2.0 + x, c

    xs = np.arange(4.0)
    carry, ys = wend.scan(f, 3.0, xs, reverse=reverse)
    expected, rows = plain_scan(f, 3.0, xs, reverse)
    assert carry == expected
    np.testing.assert_array_equal(ys, rows)


def test_length():
    carry, ys = wend.scan(lambda c, _: (c * 2, c), 3.0, None, length=3)
    assert carry == 24.0
    np.testing.assert_array_equal(ys, [3, 6, 12])
    carry, ys = wend.scan(lambda c, _: (c * 2, c), 3.0, None, length=0)
    assert (carry, ys.shape, ys.dtype) == (3.0, (0,), np.float64)
    carry, _ = wend.scan(lambda c, x: (c + x, None), 0.0, np.arange(3.0), length=3)
    assert carry == 3.0


def test_length_is_data():
    @wend.function
    def powers(n, c):
        return wend.scan(lambda c, _: (c * 2.0, c), c, None, length=n)

    for n, last, rows in [(3, 8.0, [1, 2, 4]), (0, 1.0, []), (-2, 1.0, [])]:
        carry, ys = powers(n, 1.0)
        assert carry == last
        np.testing.assert_array_equal(ys, rows)
    assert powers.trace_count == 1
    assert wend.grad(lambda c, n: wnp.sum(powers(n, c)[1]))(1.0, 3) == 7.0
    carry, _ = wend.scan(lambda c, _: (c + 1, None), 0, None, length=np.int32(3))
    assert carry == 3


@pytest.mark.parametrize("shape", [(3, 2), (0, 2), (2, 0)])
def test_rows_of_sizes_that_the_run_tells(shape):
    def doubled(xs):
        return wend.map(lambda x: {"double": x * 2.0, "both": wnp.stack([x, xs[0]])}, xs)

    fun = wend.function(doubled, input_signature=[wend.TensorSpec([None, None])])
    x = np.arange(float(np.prod(shape))).reshape(shape)
    found = fun(x)
    np.testing.assert_array_equal(found["double"], 2.0 * x)
    assert found["both"].shape == (shape[0], 2, shape[1])
    graph = fun.get_concrete_function().graph
    assert graph.results[0].type == graph.params[0].type
    slope = wend.grad(lambda x: wnp.sum(fun(x)["double"] ** 2))(x)
    np.testing.assert_array_equal(slope, 8.0 * x)


def test_pytrees_in_and_out():
    xs = {"a": np.arange(3), "b": (np.arange(6.0).reshape(3, 2), None)}

    def f(c, x):
        assert x["b"][1] is None
        return c + wnp.sum(x["b"][0]), {"n": 1, "a": x["a"] * 2, "row": x["b"][0]}

    carry, ys = wend.scan(f, 0.0, xs)
    assert carry == 15.0
    np.testing.assert_array_equal(ys["n"], [1, 1, 1])
    np.testing.assert_array_equal(ys["a"], [0, 2, 4])
    np.testing.assert_array_equal(ys["row"], xs["b"][0])
    assert ys["a"].dtype == np.int64


def test_no_ys():
    assert wend.scan(lambda c, x: (c + x, None), 0.0, np.arange(3.0)) == (3.0, None)


def test_weak_carry():
    carry, ys = wend.scan(lambda c, x: (c + x, c), 0, np.arange(3, dtype=np.float32))
    assert (carry.dtype, ys.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex128])
def test_map_over_nothing(dtype):
    found = wend.map(lambda x: (x, wnp.stack([x, x])), np.zeros((0,), dtype))
    assert [(part.shape, part.dtype) for part in found] == [((0,), dtype), ((0, 2), dtype)]


def test_map_rows():
    x = np.arange(6.0).reshape(3, 2)
    total, back = wend.map(lambda row: (wnp.sum(row), row[::-1]), x)
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(back, x[:, ::-1])


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(reverse):
    rng = np.random.default_rng(0)
    xs, w = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    weights = rng.normal(size=(4, 3))

    def f(w):
        return lambda h, x: (wnp.tanh(h @ w + x),) * 2

    def fun(h, xs, w):
        h, ys = wend.scan(f(w), h, xs, reverse=reverse)
        return wnp.sum(h) + wnp.sum(ys * weights)

    def unrolled(h, xs, w):
        ys = [None] * 4
        for k in range(4)[:: -1 if reverse else 1]:
            h, ys[k] = f(w)(h, xs[k])
        return wnp.sum(h) + wnp.sum(wnp.stack(ys) * weights)

    args = (np.ones(3), xs, w)
    np.testing.assert_allclose(fun(*args), unrolled(*args), rtol=1e-12)
    found = wend.grad(fun, (0, 1, 2))(*args)
    for mine, theirs in zip(found, wend.grad(unrolled, (0, 1, 2))(*args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)

    def second(fun):
        return wend.grad(lambda w: wnp.sum(wend.grad(fun, 2)(args[0], xs, w) * w))(w)

    np.testing.assert_allclose(second(fun), second(unrolled), rtol=1e-9, atol=1e-11)


def test_unknown_number_of_rows():
    fun = wend.function(
        lambda c, xs: wend.scan(lambda c, x: (c + x, c * x), c, xs),
        input_signature=[wend.TensorSpec([]), wend.TensorSpec([None])],
    )
    for n in (3, 0, 1):
        carry, ys = fun(1.0, np.arange(float(n)))
        expected, rows = plain_scan(lambda c, x: (c + x, c * x), 1.0, np.arange(float(n)))
        assert carry == expected
        np.testing.assert_array_equal(ys, rows.reshape(n))
    assert fun.trace_count == 1
    slope = wend.grad(
        wend.function(
            lambda xs: wnp.sum(fun(1.0, xs)[1]), input_signature=[wend.TensorSpec([None])]
        )
    )
    # ys = x0, (1 + x0) x1, (1 + x0 + x1) x2
    np.testing.assert_allclose(slope(np.array([1.0, 2.0, 3.0])), [1 + 2 + 3, 2 + 3, 4])


def test_one_loop():
    graph = traced(lambda xs: wend.scan(lambda c, x: (c + x, c), 0.0, xs), np.arange(5.0))
    assert len(loops(graph)) == 1


def test_a_row_is_a_view_of_nothing():
    """Results do not share memory with arguments."""
    xs = np.ones((3, 2))
    ys = wend.map(lambda row: row, xs)
    assert not np.shares_memory(xs, ys)
    ys[0] = 5
    assert xs[0, 0] == 1


def test_how_many_trips_run_at_once_is_a_hint() -> None:
    xs = np.arange(5.0)
    expected = wend.scan(lambda c, x: (c + x, c * x), 0.5, xs)
    for unroll in (2, 7, True, False):
        result = wend.scan(lambda c, x: (c + x, c * x), 0.5, xs, unroll=unroll)
        np.testing.assert_array_equal(result[1], expected[1])
        assert wend.fori_loop(0, 3, lambda i, x: x * (i + 1), 2.0, unroll=unroll) == 12.0
    np.testing.assert_array_equal(wend.map(np.sin, xs, batch_size=2), np.sin(xs))
    with pytest.raises(ValueError, match="fori_loop: unroll must be"):
        wend.fori_loop(0, 3, lambda i, x: x, 2.0, unroll=-1)
