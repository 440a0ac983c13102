"""Traced arrays act as arrays."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from tests.helpers.traces import at_trace

import wend
import wend.numpy as wnp
from wend.base.marked_text import without_marks

X = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]])


def agree(fun, *args):
    """The same on traced arrays and on plain ones."""
    found, expected = wend.function(fun)(*args), fun(*args)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.sampled(3)
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
    seen = []
    note = at_trace(seen)

    @wend.function
    def fun(x):
        note({"shape": x.shape, "ndim": x.ndim, "size": x.size, "len": len(x), "dtype": x.dtype})
        return sum(row.sum() for row in x)

    assert fun(X) == X.sum()
    assert seen == [{"shape": (2, 3), "ndim": 2, "size": 6, "len": 2, "dtype": np.float64}]


def test_numpy_functions_take_traced_arrays():
    agree(lambda x: np.sin(x) + np.where(x > 0, x, 0.0) + np.concatenate([x, x])[:2], X)
    agree(lambda x: np.sum(x, axis=0) * np.add.reduce(x) + np.mean(x), X)
    agree(lambda x: np.ones(3) * x + np.float64(2) ** x, X)
    agree(lambda x: np.arange(3) - x, X)


def test_unknown_functions_are_refused_by_name():
    with pytest.raises(TypeError, match=r"numpy\.packbits"):
        wend.function(lambda x: np.packbits(x > 0))(X)
    with pytest.raises(TypeError, match=r"numpy\.spacing\.at"):
        wend.function(lambda x: np.spacing.at(x, 0))(X)


def test_weakness():
    """A Python number takes the dtype of what it meets; two of them give a Python number."""
    fun = wend.function(lambda x, k: x * (k + 1) * -abs(k))
    assert fun(np.float32(2), 3).dtype == np.float32
    assert wend.function(lambda k: k + 1)(3).dtype == np.int64
    assert wend.function(lambda k, x: wnp.sin(k) * x)(3.0, np.float32(1)).dtype == np.float64
    assert wend.function(lambda n: n / 2)(3) == 1.5


def test_text():
    seen = []

    @wend.do_not_capture  # which shows the numbers when it runs
    def fun(x, d):
        seen.extend(without_marks(repr(value)) for value in (x, d["k"], x + 1))
        return x

    wend.function(fun)(np.ones(2), {"k": 1})
    argument, key, made = seen
    assert argument == "<traced f64[2], argument x>"
    assert key == "<traced i64[] (weak), argument d['k']>"
    assert made.startswith("<traced f64[2], add at test_tracer.py:")


def test_traced_arrays_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        wend.function(lambda x: {x: 1})(X)
    with pytest.raises(TypeError, match="the hash of <traced f64"):
        wend.function(lambda x: {x: 1})(1.0)


def test_methods_of_ufuncs():
    y = X[0]
    for fun in (
        lambda x: np.add.outer(x, y) + np.multiply.outer(y, x[0])[..., None, None].sum(),
        lambda x: np.subtract.outer(2.0, x),
        lambda x: np.add.accumulate(x) * np.multiply.accumulate(x, axis=1),
        lambda x: np.maximum.accumulate(x, axis=1) + np.minimum.accumulate(x[::-1]),
        lambda x: np.logaddexp.accumulate(x, axis=-1),
        lambda x: np.logaddexp.reduce(x, axis=1) + np.hypot.reduce(x[:, 0]),
        lambda x: np.fmax.reduce(x, axis=1, keepdims=True),
        lambda x: np.add.reduce(x, axis=1, dtype=np.float32, keepdims=True),
        lambda x: np.maximum.reduce(x, axis=None) + np.logical_xor.reduce(x > 0, axis=0),
        lambda x: np.bitwise_xor.reduce((x > 0).astype(int), axis=1),
    ):
        agree(fun, X)


def test_ufuncs_add_in_place():
    def fun(x):
        x = x.copy()
        np.add.at(x, (0, np.array([1, 1, 2])), x[1])
        np.subtract.at(x, 1, 2.0)
        return x

    agree(fun, X)


def test_results_put_into_an_array():
    def fun(x):
        x = x.copy()
        y = x.astype(np.float32)
        z = x > 0
        np.multiply(x, x, x)
        np.add(x, 1.0, out=x[0])  # of the first row alone, which the sum is too great for
        return x, y, z

    with pytest.raises(ValueError, match=r"broadcast|output"):
        fun(X)
    with pytest.raises(ValueError, match=r"broadcast|output"):
        wend.function(fun)(X)

    def second(x):
        x = x.copy()
        same = np.multiply(x, x, x)
        np.add(x[0], 1.0, out=x[1])
        whole, part = np.divmod(x, 2.0)
        np.greater(x, 1.0, out=(x > 0))
        return same + x, whole + part

    for mine, theirs in zip(wend.function(second)(X), second(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_what_ufuncs_refuse():
    for fun, said in (
        (lambda x: np.add(x, 1.0, where=x > 0), "where="),
        (lambda x: np.logaddexp.reduce(x, where=x > 0), "where="),
        (lambda x: np.logaddexp.reduce(x, initial=2.0), "initial="),
        (lambda x: np.spacing.at(x, [0, 1]), "spacing.at"),
        (lambda x: np.sin.outer(x, x), "outer"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            wend.function(fun)(X)


def test_methods_as_in_numpy():
    at = np.array([1, 0])
    for fun in (
        lambda x: x.cumprod(1) + x.cumsum(axis=1) + x.cumsum().sum(),
        lambda x: x.round(1) + x.round(),
        lambda x: x.repeat(2, axis=1) + x.repeat(2).sum(),
        lambda x: x.diagonal() * x.trace() + x.diagonal(1),
        lambda x: x.take(at, axis=1) + x.take(at + 7, 1, mode="clip") - x.take(-9, mode="wrap"),
        lambda x: x.var(1, ddof=1) + x.std(axis=1, ddof=0) + x.var(0, None, None, 1).sum(),
        lambda x: x.sum(0, np.float32) + x.prod(axis=0, keepdims=True),
        lambda x: x.compress([True, False, True], axis=1),
        lambda x: (x > 0).astype(int).choose([x, -x]),
        lambda x: x.nonzero()[0] + x.nonzero()[1],
        lambda x: x[0].searchsorted(x[1]),
        lambda x: x.conjugate() + x.conj(),
        lambda x: x.argmax(axis=1, keepdims=True) + x.argmin(),
        lambda x: x.argsort(axis=1, kind="stable"),
        lambda x: x.flatten() + x.ravel(),
        lambda x: x * x.nbytes + x.itemsize,
        lambda x: x.astype("f4", copy=False) + x.astype(np.float64, casting="safe"),
    ):
        agree(fun, X)


@pytest.mark.filterwarnings("ignore:Setting the shape")  # by NumPy, from 2.5 on
def test_methods_that_change_an_array():
    def fun(x):
        x, y, z = x.copy(), x.copy(), x.copy()
        x.sort()
        y.sort(axis=0)
        z[1].sort()
        z[0].fill(3.5)
        y.put([0, -1], [7.0, 8.0])
        w = x.copy()
        w.partition(1, axis=1)
        x.shape = (3, 2)
        return x, y, z, w[:, 1]

    for mine, theirs in zip(wend.function(fun)(X), fun(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_an_array_keeps_its_size():
    with pytest.raises(TypeError, match=r"np\.resize"):
        wend.function(lambda x: x.resize(2, 2))(X)
    with pytest.raises(TypeError, match="Cannot cast array data"):
        wend.function(lambda x: x.astype(int, casting="safe"))(X)


def test_a_part_shows_what_its_array_has_become():
    def fun(x, n):
        row, part, turned = x[n], x[:, 1:], x.T
        x[n, 0] = 5.0
        x[0, 2] = 7.0
        for _ in range(n):
            row[1] += part[0, 1]
            x[n] *= 2.0
        return row * 2, part + 1.0, turned * 1

    for n in (0, 1):
        mine, theirs = X.copy(), X.copy()
        for a, b in zip(wend.function(fun)(mine, n), fun(theirs, n), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(mine, theirs)


def test_another_view_is_not_used_after_its_array_has_changed():
    def fun(x):
        flat = x.reshape(-1)
        x[0, 0] = 5.0
        return flat * 2

    with pytest.raises(wend.WendError, match="view of an array that was changed"):
        wend.function(fun)(X.copy())


def test_a_first_trip_that_is_taken_back():
    """What the trip that Python ran changed in place is as it was before the loop is recorded."""

    def fun(x):
        for i in range(x.shape[0]):
            row = x[i]
            row += 1.0

    mine = X.copy()
    compiled = wend.function(fun)
    compiled(mine)
    np.testing.assert_array_equal(mine, X + 1.0)
    graph = compiled.get_concrete_function(mine).graph
    assert [node.op.name for node in graph.nodes].count("while") == 1


def test_orders_downwards():
    for x in (X, np.array([2, 1, 2, 0, 1])):
        down = np.flip(np.sort(x), -1)
        np.testing.assert_array_equal(wnp.sort(x, descending=True), down)
        np.testing.assert_array_equal(wend.function(wnp.sort)(x), np.sort(x))
        fun = wend.function(lambda x: wnp.argsort(x, descending=True, stable=True))
        for order in (fun(x), wnp.argsort(x, descending=True)):
            np.testing.assert_array_equal(order, np.argsort(-x, kind="stable"))
