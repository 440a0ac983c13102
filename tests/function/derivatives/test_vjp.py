"""`vjp`: its interface. What it computes is in `tests/programs`."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp


def test_vjp():
    value, pullback = wend.vjp(lambda x, y: {"p": x * y, "s": (wnp.sin(x), None)}, 2.0, 3.0)
    assert value["p"] == 6.0
    dx, dy = pullback({"p": 1.0, "s": (0.0, None)})
    assert (dx, dy) == (3.0, 2.0)
    dx, dy = pullback({"p": 0.0, "s": (1.0, None)})
    assert (dx, dy) == (np.cos(2.0), 0.0)


def test_vjp_of_vectors_and_integers():
    def fun(x, n):
        return x * n, n + 1

    x = np.arange(3.0)
    value, pullback = wend.vjp(fun, x, 2)
    np.testing.assert_array_equal(value[0], [0, 2, 4])
    dx, dn = pullback((np.array([1.0, 0.0, -1.0]), 0))
    np.testing.assert_array_equal(dx, [2, 0, -2])
    assert dn is None


def test_vjp_is_linear_and_repeatable():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4)
    _, pullback = wend.vjp(lambda x: wend.fori_loop(0, 3, lambda i, v: wnp.sin(v) * v, x), x)
    a, b = rng.normal(size=4), rng.normal(size=4)
    (da,), (db,), (dab,) = pullback(a), pullback(b), pullback(2 * a + b)
    np.testing.assert_allclose(dab, 2 * da + db, rtol=1e-12)
    np.testing.assert_array_equal(pullback(a)[0], da)


def test_pullback_keeps_the_values_of_its_run():
    """Neither what is written into the arguments nor into the value changes it."""
    captured = np.array([2.0, 3.0])

    def fun(x):
        y = wend.fori_loop(0, 2, lambda i, v: wnp.tanh(v) * captured, x)
        return y * y, wnp.tanh(x)

    x = np.array([0.5, 0.6])
    (value, other), pullback = wend.vjp(fun, x)
    cts = np.ones(2), np.ones(2)
    expected = pullback(cts)[0].copy()
    x[...] = value[...] = other[...] = captured[...] = 9.0
    np.testing.assert_array_equal(pullback(cts)[0], expected)
    pullback(cts)[0][...] = 7.0
    np.testing.assert_array_equal(pullback(cts)[0], expected)


def test_cotangents_are_not_shared():
    _, pullback = wend.vjp(lambda x, y: x + y, np.ones(2), np.ones(2))
    ct = np.ones(2)
    dx, dy = pullback(ct)
    dx[...] = 5.0
    np.testing.assert_array_equal(dy, [1, 1])
    np.testing.assert_array_equal(ct, [1, 1])


def test_weak_cotangents():
    _, pullback = wend.vjp(lambda x: x * 2, np.float32(1))
    assert pullback(1)[0].dtype == np.float32
    with pytest.raises(TypeError, match=r"cotangent is f64\[\]"):
        pullback(np.float64(1))


def test_pullback_used_in_a_loop():
    @wend.function
    def fun(x):
        _, pullback = wend.vjp(wnp.sin, x)
        return wend.fori_loop(0, 3, lambda i, c: c + pullback(c)[0], 1.0)

    assert fun(0.0) == 8.0


def test_vjp_of_a_lambda_compiles_once_for_a_function():
    compiled = wend.function(lambda x: x * x)
    for k in range(3):
        _, pullback = wend.vjp(compiled, float(k))
        assert pullback(1.0) == (2.0 * k,)
    assert compiled.trace_count == 1


def test_has_aux():
    value, pullback, aux = wend.vjp(lambda x: (x * x, {"n": 3}), 2.0, has_aux=True)
    assert (value, aux, pullback(1.0)) == (4.0, {"n": 3}, (4.0,))


def test_integers_in_the_value_take_no_cotangent():
    """None, or whatever the caller has there."""
    _, pullback = wend.vjp(lambda x: (x * 2.0, 3), 1.0)
    assert pullback((1.0, None)) == pullback((1.0, 0)) == (2.0,)


def test_cotangents_that_do_not_fit_are_named():
    _, pullback = wend.vjp(lambda x: {"a": x, "b": [x * 2.0]}, np.ones(2))
    with pytest.raises(ValueError, match=r"\['b'\]\[0\] is f64\[3\], the value.* is f64\[2\]"):
        pullback({"a": np.ones(2), "b": [np.ones(3)]})
    with pytest.raises(ValueError, match=r"\['b'\] is missing"):
        pullback({"a": np.ones(2)})
    with pytest.raises(ValueError, match=r"\['a'\] is None"):
        pullback({"a": None, "b": [np.ones(2)]})


def test_cotangents_of_unknown_size():
    """Sizes that are not known before the run are compared when it runs."""
    spec = wend.TensorSpec

    @wend.function(input_signature=[spec([None]), spec([None])])
    def fun(x, ct):
        return wend.vjp(lambda x: x * x, x)[1](ct)[0]

    np.testing.assert_array_equal(fun(np.arange(2.0), np.ones(2)), [0, 2])
    with pytest.raises(ValueError, match="reshape"):
        fun(np.arange(2.0), np.ones(1))
