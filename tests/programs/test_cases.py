"""The cases of CASES.md that are not a scalar at a point (those are in `helpers/programs.py`)."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import loops, traced
from tests.helpers.programs import PROGRAMS, cube_of_squares, square_until


def orders(fun, at, count):
    found = []
    for _ in range(count):
        found.append(fun(at))
        fun = wend.grad(fun)
    return found


def test_t1_third_order():
    np.testing.assert_allclose(orders(square_until, 2.0, 4), [16, 32, 48, 48])
    np.testing.assert_allclose(orders(square_until, 9.0, 4), [9, 1, 0, 0])


def test_k16_third_order():
    np.testing.assert_allclose(
        orders(cube_of_squares, 1.1, 4), [2.1435888, 15.5897368, 99.2074160, 541.13136], rtol=1e-8
    )


def test_t28_third_order():
    def fun(x):
        return wend.fori_loop(0, 2, lambda i, v: wnp.cos(v), x)

    np.testing.assert_allclose(
        orders(fun, 1.0, 4), [0.8575532, 0.4328487, -0.3292817, -1.9089936], rtol=2e-7
    )


@pytest.mark.parametrize("parallel", [1, 10])
def test_t3_parallel_iterations(parallel):
    def fun(x, c):
        return wend.while_loop(
            lambda v: v < 100.0, lambda v: v * c, x, parallel_iterations=parallel
        )

    assert wend.value_and_grad(fun, (0, 1))(2.0, 3.0) == (162.0, (81.0, 216.0))


def test_t5_second_order():
    """d(sum of gradients) by x and c is [108, 216]; captured by cond only: 0."""

    def fun(x, c):
        return wend.while_loop(lambda v: v < 10.0 * c, lambda v: v * c, x)

    both = wend.grad(fun, (0, 1))
    assert wend.grad(lambda x, c: sum(both(x, c)), (0, 1))(1.0, 3.0) == (108.0, 216.0)

    def by_cond(x, c):
        return wend.while_loop(lambda v: v < 10.0 * c, lambda v: v * 3.0, x)

    assert wend.grad(by_cond, 1)(1.0, 3.0) == 0.0


def test_t8_two_outputs():
    def fun(x, y):
        return wend.fori_loop(0, 2, lambda i, c: (2.0 * c[0], 3.0 * c[1]), (x, y))

    value, pullback = wend.vjp(fun, 1.0, 1.0)
    assert value == (4.0, 9.0)
    assert pullback((1.0, 0.0)) == (4.0, 0.0)
    assert pullback((0.0, 1.0)) == (0.0, 9.0)


def test_t9_integer_bound():
    def fun(n, x):
        return wend.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2.0), (0, x))

    assert fun(10, 1.0) == (10, 1024.0)
    _, pullback = wend.vjp(fun, 10, 1.0)
    assert pullback((0, 1.0)) == (None, 1024.0)  # integers have no cotangent
    with pytest.raises(wend.WendError, match="returns i64"):
        wend.grad(lambda x: fun(10, x)[0])(1.0)  # the gradient of an integer is refused


def test_t18_maximum_as_a_value():
    @wend.function
    def fun(limit, x):
        return wend.while_loop(
            lambda v: True, lambda v: v + 1.0, x, maximum_iterations=limit, return_trips=True
        )

    for limit in (0, 1, 5):
        assert fun(limit, 0.0) == (limit, limit)
    assert fun.trace_count == 1
    assert wend.while_loop(
        lambda v: v < 3, lambda v: v + 1, 0, maximum_iterations=10, return_trips=True
    ) == (3, 3)


def test_t19_trip_count_is_data():
    @wend.function
    def power(x, n):
        return wend.fori_loop(0, n, lambda i, p: p * x, 1.0)

    slope = wend.grad(power)
    assert [power(2.0, n) for n in (5, 0, 1, 10)] == [32.0, 1.0, 2.0, 1024.0]
    assert [slope(2.0, n) for n in (5, 0, 1, 10)] == [80.0, 0.0, 1.0, 5120.0]
    assert power.trace_count == slope.trace_count == 1


def test_t21_stopped_output():
    fun = wend.grad(lambda x: wend.stop_gradient(square_until(x)) * 1.0)
    assert fun(2.0) == 0.0


def grow(x):
    """T25: concatenation with itself, ten times."""
    return wend.while_loop(
        lambda s: s[0] < 10,
        lambda s: (s[0] + 1, wnp.concatenate([s[1], s[1]])),
        (0, x),
        shape_invariants=((), (None, 2)),
    )[1]


def test_t25_growth():
    x = np.arange(4.0).reshape(2, 2)
    assert np.shape(grow(x)) == (2048, 2)
    np.testing.assert_array_equal(grow(x)[-2:], x)
    np.testing.assert_array_equal(wend.grad(lambda x: wnp.sum(grow(x)))(x), np.full((2, 2), 1024))


def test_t25_growth_by_a_function():
    """What each trip appends depends on what is there: against plain Python, to second order."""

    def fun(x):
        def body(s):
            return s[0] + 1, wnp.concatenate([s[1], wnp.sin(s[1]) * 2.0])

        y = wend.while_loop(lambda s: s[0] < 3, body, (0, x), shape_invariants=((), (None, 2)))[1]
        return wnp.sum(y * y)

    def plain(x):
        for _ in range(3):
            x = wnp.concatenate([x, wnp.sin(x) * 2.0])
        return wnp.sum(x * x)

    x = np.linspace(-1.0, 2.0, 4).reshape(2, 2)
    weights = np.array([[1.0, -2.0], [0.5, 3.0]])
    np.testing.assert_allclose(fun(x), plain(x), rtol=1e-12)
    np.testing.assert_allclose(wend.grad(fun)(x), wend.grad(plain)(x), rtol=1e-9)

    def second(fun):
        return wend.grad(lambda x: wnp.sum(wend.grad(fun)(x) * weights))(x)

    np.testing.assert_allclose(second(fun), second(plain), rtol=1e-9)


def test_k37_append_one():
    def fun(x):
        return wend.while_loop(
            lambda s: s[0] < 4,
            lambda s: (s[0] + 1, wnp.concatenate([s[1], s[1][-1:] * 2.0])),
            (0, x),
            shape_invariants=((), (None,)),
        )[1]

    np.testing.assert_array_equal(fun(np.ones(1)), [1, 2, 4, 8, 16])
    np.testing.assert_array_equal(wend.grad(lambda x: wnp.sum(fun(x)))(np.ones(1)), [31])
    with pytest.raises(wend.WendError, match=r"carry\[1\].*shape_invariants|shape_invariants"):
        wend.while_loop(
            lambda s: s[0] < 4,
            lambda s: (s[0] + 1, wnp.concatenate([s[1], s[1][-1:]])),
            (0, np.ones(1)),
        )


def test_t37_many_trips():
    assert wend.while_loop(lambda i: i < 10_000, lambda i: i + 1, 0) == 10_000


def test_t38_stacks():
    _, powers = wend.scan(lambda p, _: (p * 2.0, p), 1.0, None, length=5)
    np.testing.assert_array_equal(powers, [1, 2, 4, 8, 16])
    np.testing.assert_array_equal(
        wend.map(lambda e: e * 2.0, np.arange(1.0, 7.0)), np.arange(2, 13, 2)
    )


Pair = collections.namedtuple("Pair", "j k")


def test_t39_named_tuples_and_dicts():
    pair = wend.fori_loop(0, 10, lambda i, p: Pair(p.j + p.k, p.j - p.k), Pair(1.0, 2.0))
    assert pair == Pair(32.0, 64.0)
    assert isinstance(pair, Pair)
    kept = wend.fori_loop(0, 3, lambda i, c: {"a": c["a"], "b": c["b"]}, {"a": 8, "b": 3})
    assert kept == {"a": 8, "b": 3}


def test_t40_one_trace():
    @wend.function
    def fun(n):
        def body(s):
            i, total = s
            return i + 1, wend.cond(i % 2 == 0, lambda: total, lambda: total + i)

        return wend.while_loop(lambda s: (s[0] < n) & (s[0] <= 7), body, (0, 0))[1]

    assert [fun(n) for n in (20, 4, 0)] == [16, 4, 0]
    assert fun.trace_count == 1


def test_t54_static_recursion():
    def factorial(x, n):
        return x if n <= 1 else n * recursive(x, n - 1)

    recursive = wend.function(factorial, static_argnums=1)
    assert recursive(1.0, 5) == 120
    assert recursive.trace_count == 5
    assert wend.grad(recursive)(1.0, 5) == 120


def test_t57_where_has_nan_but_cond_has_not():
    with np.errstate(all="ignore"):
        assert np.isnan(wend.grad(lambda x: wnp.where(x > 0.0, wnp.sqrt(x), 0.0))(0.0))
    assert wend.grad(lambda x: wend.cond(x > 0.0, wnp.sqrt, lambda x: 0.0, x))(0.0) == 0.0


def test_k5_unused_loop_of_nothing():
    graph = traced(lambda x: (wend.while_loop(lambda c: x < 0.0, lambda c: (), ()), x)[1], 1.0)
    assert not loops(graph)


def test_k11_no_trip():
    assert wend.fori_loop(5, 3, lambda i, x: x * 2.0, 7.0) == 7.0
    assert wend.grad(lambda x: wend.fori_loop(5, 3, lambda i, x: x * x, x))(7.0) == 1.0
    carry, ys = wend.scan(lambda c, x: (c * x, c), 3.0, np.zeros(0))
    assert carry == 3.0
    assert (np.shape(ys), np.asarray(ys).dtype) == ((0,), np.float64)
    assert wend.grad(lambda c: wend.scan(lambda c, x: (c * x, c), c, np.zeros(0))[0])(3.0) == 1.0
    for dtype in (np.float32, np.int64, np.bool_):
        found = wend.map(lambda x: x, np.zeros(0, dtype))
        assert (np.shape(found), np.asarray(found).dtype) == ((0,), dtype)


def test_k12_constant_false():
    assert wend.while_loop(lambda c: False, lambda c: c, ()) == ()
    assert wend.function(lambda x: wend.while_loop(lambda c: x < 0.0, lambda c: c, ()))(1.0) == ()


def test_k14_integers_and_bools():
    def fun(x):
        def body(c):
            i, flag, _, v = c
            return i + 1, ~flag, wnp.float64(1.0) * i, v * 2.0

        return wend.while_loop(lambda c: c[0] < 3, body, (0, True, 0.0, x))

    assert fun(1.5) == (3, False, 2.0, 12.0)
    _, pullback = wend.vjp(fun, 1.5)
    assert pullback((0, False, 1.0, 1.0)) == (8.0,)


def test_k15_many_carries():
    count = 256

    def fun(*xs):
        return sum(wend.fori_loop(0, 3, lambda i, c: (c[-1] * 1.01, *c[:-1]), xs))

    xs = [float(k) for k in range(count)]
    np.testing.assert_allclose(wend.function(fun)(*xs), sum(xs) + 0.01 * (255 + 254 + 253))
    slopes = wend.grad(fun, tuple(range(count)))(*xs)
    np.testing.assert_allclose(slopes, [1.0] * (count - 3) + [1.01] * 3)


def test_k15_triangular_count():
    def count(n):
        def body(i, c):
            return c[0] + 1, wend.fori_loop(0, i + 1, lambda j, k: k + 1, c[1])

        return wend.fori_loop(0, n, body, (0, 0))

    assert [count(n) for n in (2, 3, 4)] == [(2, 3), (3, 6), (4, 10)]


def test_k39_mapped_over_zeros():
    def guarded(x):
        return wend.cond(x < 1e-3, lambda x: 0.0, wnp.sqrt, x)

    x = np.array([0.0, 0.25, 0.0, 4.0])
    np.testing.assert_array_equal(wend.map(guarded, x), [0, 0.5, 0, 2])
    slope = wend.grad(lambda x: wnp.sum(wend.map(guarded, x)))(x)
    np.testing.assert_array_equal(slope, [0, 1, 0, 0.25])


def test_k25_recurrence():
    def fun(xs, h, a):
        return wend.scan(lambda h, x: (a * h + x, None), h, xs)[0]

    xs = np.arange(1.0, 6.0)
    assert fun(xs, 1.0, 0.5) == 8.09375
    dx, dh, da = wend.grad(fun, (0, 1, 2))(xs, 1.0, 0.5)
    np.testing.assert_array_equal(dx, [0.0625, 0.125, 0.25, 0.5, 1])
    assert (dh, da) == (0.03125, 9.3125)


def test_k56_reads_by_position():
    def fun(w, v):
        return wnp.sum(wend.map(lambda i: w[i], v))

    slope = wend.grad(fun)(np.ones((3, 2)), np.array([1, 2]))
    np.testing.assert_array_equal(slope, [[0, 0], [1, 1], [1, 1]])
    spread = wend.grad(lambda x: wnp.sum(wend.scan(lambda c, _: (c, x), 0, None, length=2)[1]))
    np.testing.assert_array_equal(spread(np.ones(3)), [2, 2, 2])


def test_k42_sum():
    def fun(a, b):
        return wend.fori_loop(0, 100, lambda i, s: s + (a + b), 0.0)

    np.testing.assert_allclose(wend.grad(fun, (0, 1))(0.1, 0.2), (100, 100))


def test_k19_polynomial():
    def fun(c, x):
        return wend.scan(lambda s, ck: ((s[0] + ck * s[1], s[1] * x), None), (0.0, 1.0), c)[0][0]

    c = np.array([1.0, 2.0, -3.0, 4.0])
    np.testing.assert_allclose(orders(lambda x: fun(c, x), 2.0, 3), [25, 38, 42])


def test_products_with_rows():
    """c ← c·x·c over x: the gradient, and the gradient of its part dc again."""

    def fun(c, xs):
        return wend.scan(lambda c, x: (c * x * c, None), c, xs)[0]

    xs = np.array([1.1, 1.2, 1.3])
    by_c, by_xs = wend.grad(fun, (0, 1))(0.9, xs)
    np.testing.assert_allclose(by_c, 10.4873, atol=5e-5)
    np.testing.assert_allclose(by_xs, (4.2903, 1.9664, 0.9076), atol=5e-5)
    by_c, by_xs = wend.grad(wend.grad(fun), (0, 1))(0.9, xs)
    np.testing.assert_allclose(by_c, 81.5680, atol=5e-5)
    np.testing.assert_allclose(by_xs, (38.1357, 17.4789, 8.0672), atol=5e-5)


def test_k53_runs_do_not_mix_tapes():
    fun = wend.function(square_until)
    (a, pull_a), (b, pull_b) = wend.vjp(fun, 2.0), wend.vjp(fun, 3.0)
    assert (a, b) == (16.0, 9.0)
    assert pull_b(1.0) == (6.0,)
    assert pull_a(1.0) == pull_a(1.0) == (32.0,)


def test_dtypes_of_gradients():
    for dtype in (np.float32, np.float64):
        found = wend.grad(square_until)(dtype(2.0))
        assert (found, np.asarray(found).dtype) == (32.0, dtype)


def test_enough_programs():
    assert len(PROGRAMS) >= 30


def test_t34_a_captured_value():
    def fun(v):
        return wend.fori_loop(0, 2, lambda i, c: c + v * v, 0.0)

    assert (fun(3.0), wend.grad(fun)(3.0)) == (18.0, 12.0)


def test_t58_a_predicate_of_one_element_is_refused():
    with pytest.raises(TypeError, match=r"bool\[1\]"):
        wend.cond(np.array([True]), lambda: 1.0, lambda: 2.0)


def test_the_second_derivative_of_logarithms_of_logarithms():
    """L10 and K18: z ← log(x·y), x ← z, five times; u = v·z."""

    def fun(x, y, v):
        for _ in range(5):
            x = wnp.log(x * y)
        return v * x

    args = (1.0, 3.2, 0.22)
    value, (dx, dy, dv) = wend.value_and_grad(fun, (0, 1, 2))(*args)
    np.testing.assert_allclose(value, 0.3487781467, atol=1e-10)
    np.testing.assert_allclose((dx, dy, dv), (0.0656823083, 0.1896006022, 1.5853552124), atol=1e-10)
    second = wend.grad(wend.grad(fun, 1), 1)(*args)
    np.testing.assert_allclose(second, -0.1905970813, atol=1e-10)
    forward = wend.jvp(wend.grad(fun, 1), args, (0.0, 1.0, 0.0))[1]
    np.testing.assert_allclose(forward, second, rtol=1e-13)
