"""Traced arrays act as arrays."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import wend
import wend.numpy as wnp

X = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]])


def agree(fun, *args):
    """The same on traced arrays and on plain ones."""
    found, expected = wend.function(fun)(*args), fun(*args)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize(
    "op",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        operator.eq,
        operator.ne,
    ],
)
def test_operators_and_their_reflections(op):
    for other in (2.5, 3, np.float64(2.0), np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]):
        agree(lambda x, other=other: op(x, other), X)
        if not isinstance(other, list):
            agree(lambda x, other=other: op(other, x), X)
    agree(op, X, X[0])


def test_integer_operators():
    n = np.array([1, 6, 3])
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        agree(lambda n, op=op: op(n, 2), n)
        agree(lambda n, op=op: op(2, n), n)
    agree(operator.invert, n)
    agree(lambda x: x**2 + 2.0**x, X)
    agree(lambda x: -x + +x + abs(x), X)
    agree(lambda x: x @ x.T, X)


def test_methods_and_properties():
    for fun in (
        lambda x: x.T,
        lambda x: x.mT,
        lambda x: x.sum(0) + x.mean() + x.max() - x.min() + x.prod(1).sum(),
        lambda x: x.reshape(3, 2) + x.reshape((3, -1)),
        lambda x: x.ravel()[::-1] + x.flatten(),
        lambda x: x.transpose(1, 0) + x.transpose((1, 0)) + x.transpose() + x.swapaxes(0, 1),
        lambda x: x.astype("float32"),
        lambda x: x.clip(0.0, 2.0).cumsum(1),
        lambda x: x.argmax(1) + x.argmin(1),
        lambda x: (x > 0).any(0) & (x > -9).all(),
        lambda x: x.std(0) + x.var(0),
        lambda x: x.dot(x.T),
        lambda x: x[0] + x[:, :1].squeeze().sum() + x[..., 1][None].squeeze(0)[0],
        lambda x: x.copy().conj().real + x.imag,
        lambda x: x.argsort(1),
        lambda x: x.take(np.array([0, 2]), 1),
    ):
        agree(fun, X)


def test_what_python_knows_of_a_shape():
    seen = {}

    @wend.function
    def fun(x):
        seen.update(shape=x.shape, ndim=x.ndim, size=x.size, len=len(x), dtype=x.dtype)
        return sum(row.sum() for row in x)

    assert fun(X) == X.sum()
    assert seen == {"shape": (2, 3), "ndim": 2, "size": 6, "len": 2, "dtype": np.float64}


def test_numpy_functions_take_traced_arrays():
    agree(lambda x: np.sin(x) + np.where(x > 0, x, 0.0) + np.concatenate([x, x])[:2], X)
    agree(lambda x: np.sum(x, axis=0) * np.add.reduce(x) + np.mean(x), X)
    agree(lambda x: np.ones(3) * x + np.float64(2) ** x, X)
    agree(lambda x: np.arange(3) - x, X)


def test_unknown_functions_are_refused_by_name():
    with pytest.raises(TypeError, match=r"numpy\.packbits"):
        wend.function(lambda x: np.packbits(x > 0))(X)
    with pytest.raises(TypeError, match=r"numpy\.subtract\.accumulate"):
        wend.function(np.subtract.accumulate)(X)


def test_weakness():
    """A Python number takes the dtype of what it meets; two of them give a Python number."""
    fun = wend.function(lambda x, k: x * (k + 1) * -abs(k))
    assert fun(np.float32(2), 3).dtype == np.float32
    assert wend.function(lambda k: k + 1)(3).dtype == np.int64
    assert wend.function(lambda k, x: wnp.sin(k) * x)(3.0, np.float32(1)).dtype == np.float64
    assert wend.function(lambda n: n / 2)(3) == 1.5


def test_text():
    seen = []
    wend.function(lambda x, d: (seen.append((repr(x), repr(d["k"]), repr(x + 1))), x)[1])(
        np.ones(2), {"k": 1}
    )
    argument, key, made = seen[0]
    assert argument == "<traced f64[2], argument x>"
    assert key == "<traced i64[] (weak), argument d['k']>"
    assert made.startswith("<traced f64[2], add at test_tracer.py:")


def test_traced_arrays_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        wend.function(lambda x: {x: 1})(1.0)
