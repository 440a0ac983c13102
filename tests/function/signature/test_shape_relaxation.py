"""Traces with unknown sizes: the same values and gradients, and when there are none."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.function.test_function import counts, one
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend import TensorSpec
from wend.function.signature.shape_relaxation import (
    fully_symbolic,
    merge_shapes,
    subsumes,
    symbolic_axes,
)
from wend.ir.builder import new_symbol
from wend.ir.types import TensorType
from wend.trace.recording.arguments import LeafType


# Functions of arrays, each with shapes to call them with one after the other
def polynomial(x):
    return wnp.sum(x * x * x + 2.0 * x)


def of_sizes(x):
    return wnp.mean(x) + x.size / x.shape[0] + wnp.sum(x / len(x.shape))


def rows(x):
    total = 0.0
    for row in x:
        total = total * 0.5 + wnp.sum(wnp.sin(row))
    return total


def numbered(x):
    total = wnp.zeros(x.shape[1:])
    for k in range(x.shape[0]):
        total = total + x[k] * k
    return wnp.sum(total * total)


def until(x):
    scale = 1.0
    while wnp.sum(x * x) * scale > 0.5:
        scale = scale * 0.5
    return scale * wnp.sum(x)


def branch(x):
    if wnp.sum(x) > 0.0:
        y = x * 2.0
    else:
        y = wnp.exp(x)
    return wnp.sum(y * y)


def by_size(x):
    if x.shape[0] > 3:
        return wnp.sum(x)
    return wnp.sum(x * x)


def scanned(x):
    last, kept = wend.scan(lambda c, row: (c * 0.9 + row, wnp.sin(c)), wnp.zeros(x.shape[1:]), x)
    return wnp.sum(last) + wnp.sum(kept)


def in_place(x):
    y = x.copy()
    y[1:] += y[:-1]
    y[0] = 3.0
    return wnp.sum(y * y)


def outer(x):
    return wnp.sum(x[:, None] * x[None, :] + wnp.ones((x.shape[0], 1)))


def two(x, y):
    return wnp.sum(x * y) + wnp.sum(wnp.tanh(x + y))


def product(a, b):
    return wnp.sum(wnp.sin(a @ b))


def joined(x):
    return wnp.sum(wnp.concatenate([x, x[::-1]]) ** 2) + wnp.max(x) + wnp.prod(x)


def known_only(x):
    a, b, *rest = x
    return a * b + sum(rest)


def sorts(x):
    return wnp.sum(wnp.sort(x) * wnp.arange(x.shape[0])) + wnp.cumsum(x)[-1]


VECTORS = [((3,),), ((4,),), ((6,),), ((1,),), ((2,),), ((5,),)]
MATRICES = [((3, 2),), ((4, 2),), ((5, 3),), ((1, 2),), ((4, 1),), ((6, 5),)]
CASES = [
    *((fun, VECTORS) for fun in (polynomial, of_sizes, rows, until, branch, by_size)),
    *((fun, VECTORS) for fun in (in_place, outer, joined, sorts)),
    (known_only, [shapes for shapes in VECTORS if shapes != ((1,),)]),
    *((fun, MATRICES) for fun in (polynomial, of_sizes, rows, numbered, scanned)),
    (two, [((3,), (3,)), ((4,), (4,)), ((4,), (1,)), ((1,), (5,)), ((6,), ()), ((7,), (7,))]),
    (two, [((2, 3), (3,)), ((4, 3), (3,)), ((4, 5), (5,)), ((2, 1), (3,)), ((5, 4), (5, 4))]),
    (product, [((2, 3), (3, 4)), ((5, 3), (3, 4)), ((5, 6), (6, 4)), ((1, 2), (2, 2))]),
]


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::wend.RetraceWarning")
@pytest.mark.parametrize(("fun", "calls"), CASES)
def test_values_and_gradients_are_those_of_exact_traces(fun, calls):
    rng = np.random.default_rng(0)
    auto = wend.function(fun)
    first = wend.function(fun, reduce_retracing=True)
    exact = wend.function(fun, reduce_retracing=False)
    for shapes in calls:
        args = [rng.normal(size=shape) for shape in shapes]
        argnums = tuple(range(len(args)))
        for mine in (auto, first):
            found, expected = mine(*args), exact(*args)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-13)
            gradients = wend.grad(mine, argnums)(*args), wend.grad(exact, argnums)(*args)
            for a, b in zip(*gradients, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert auto.trace_count <= len(calls)
    assert exact.trace_count == len(calls)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fun", [polynomial, rows, until, branch, scanned])
def test_gradients_generalise_too(fun):
    slope = wend.grad(wend.function(fun))
    exact = wend.grad(wend.function(fun, reduce_retracing=False))
    for n in (3, 4, 5, 6):
        x = np.linspace(-1.0, 1.0, 2 * n).reshape(n, 2) + 0.1
        np.testing.assert_allclose(slope(x), exact(x), rtol=1e-13)
    assert (slope.trace_count, exact.trace_count) == (2, 4)
    _, pullback = wend.vjp(wend.function(fun), x)
    np.testing.assert_allclose(pullback(1.0)[0], exact(x), rtol=1e-12)


def test_sizes_do_not_decide_on_dtypes():
    """As numbers of Python, which they are where they are known."""
    fun = wend.function(lambda x: (x / x.shape[0], x * x.size, wnp.sum(x) / len(x.shape)))
    for n in (3, 4, 5):
        assert [part.dtype for part in fun(np.ones(n, np.float32))] == [np.float32] * 3
    assert fun.trace_count == 2


# Which sizes become unknown
def test_only_what_differs_becomes_unknown():
    fun = wend.function(lambda x: wnp.sum(x))
    fun(np.ones((3, 2)))
    fun(np.ones((4, 2)))
    assert [c.input_types[0].type.shape[1] for c in fun.concrete_functions()] == [2, 2]
    assert counts(fun, np.ones((9, 2)), np.ones((9, 3)), np.ones((7, 7))) == [2, 3, 3]


def test_0_and_1_are_never_unknown():
    fun = wend.function(lambda x: wnp.sum(x))
    assert counts(fun, *map(np.ones, (1, 2, 3, 4, 0, 1, 0, 5))) == [1, 2, 3, 3, 4, 4, 4, 4]
    squeezed = wend.function(wnp.squeeze)
    shapes = [(3, 2), (4, 2), (1, 2), (5, 2), (2, 1)]
    assert [squeezed(np.ones(s)).shape for s in shapes] == [(3, 2), (4, 2), (2,), (5, 2), (2,)]


def test_equal_sizes_stay_equal():
    fun = wend.function(lambda x, y: wnp.sum(x + y))
    calls = [one(np.ones(n), np.ones(n)) for n in (3, 4, 5)]
    assert counts(fun, *calls) == [1, 2, 2]
    x, y = fun.concrete_functions()[1].input_types
    assert x.type.shape == y.type.shape
    assert fun(np.ones((6, 2)), np.ones(2)) == 24.0


def test_dtypes_ranks_and_values_keep_traces_apart():
    fun = wend.function(lambda x, n: x * n, static_argnums=1)
    calls = [
        *(one(np.ones(n), 2) for n in (3, 4, 5)),
        one(np.ones(6), 3),
        one(np.ones(6, "f4"), 3),
    ]
    assert counts(fun, *calls) == [1, 2, 2, 3, 4]
    other = wend.function(lambda x: x * 2)
    assert counts(other, np.ones(3), np.ones((3, 3)), np.ones((4, 3)), np.ones(4)) == [1, 2, 3, 4]


# Where there can be no such trace
def test_what_needs_its_sizes_is_traced_for_each():
    fun = wend.function(lambda x: wnp.stack([row * 2 for row in wnp.unstack(x)]))
    assert counts(fun, *map(np.ones, (3, 4, 5, 4))) == [1, 2, 3, 3]
    text = fun.explain()
    assert "its sizes stay known: with unknown ones, ShapeError: " in text
    assert text.count("its sizes stay known") == 1  # it is not tried again


def test_a_function_that_fails_anyway_tells_what_it_told():
    def fun(x):
        if x.shape[0] == 4:
            raise KeyError("four")
        return x

    traced = wend.function(fun)
    traced(np.ones(3))
    with pytest.raises(KeyError, match="four"):
        traced(np.ones(4))
    assert traced(np.ones(5)).shape == (5,)


def test_policies():
    def calls():
        return map(np.ones, (3, 4, 5, 6))

    def fun(reduce_retracing):
        return wend.function(lambda x: x * 2, reduce_retracing=reduce_retracing)

    assert counts(fun("auto"), *calls()) == [1, 2, 2, 2]
    assert counts(fun(True), *calls()) == [1, 1, 1, 1]
    assert counts(fun(False), *calls()) == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="reduce_retracing is 'auto', True or False, not 'no'"):
        fun("no")
    signed = wend.function(lambda x: x, input_signature=[TensorSpec([3])], reduce_retracing=True)
    assert signed(np.ones(3)).shape == (3,)


def test_true_relaxes_all_sizes_at_once():
    fun = wend.function(lambda x: x * 2 + 1, reduce_retracing=True)
    shapes = ((1, 2), (2, 2), (3, 2), (2, 1), (5, 7))
    assert counts(fun, *map(np.ones, shapes)) == [1, 2, 2, 3, 3]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_true_relaxes_ranks_from_the_third_on(backend):
    w = np.arange(3.0)
    fun = wend.function(
        lambda x, w: np.sum(x * x) + np.max(x + w), reduce_retracing=True, backend=backend
    )
    slope = wend.grad(fun)
    shapes = ((3,), (2, 3), (4, 2, 3), (2, 2, 3), (1, 1), (1, 2, 1, 3), (2, 1))
    for k, shape in enumerate(shapes):
        x = np.linspace(-1, 2, int(np.prod(shape))).reshape(shape)
        assert np.isclose(fun(x, w), np.sum(x * x) + np.max(x + w))
        assert fun.trace_count == min(k + 1, 3)
        expected = wend.grad(lambda x, w: np.sum(x * x) + np.max(x + w))(x, w)
        np.testing.assert_allclose(slope(x, w), expected)


@pytest.mark.filterwarnings("ignore::wend.RetraceWarning")
@settings(max_examples=sized(10, 400))
@given(
    history=st.lists(
        st.lists(st.sampled_from([0, 1, 2, 3, 5, 7]), max_size=4).map(tuple),
        min_size=1,
        max_size=9,
    ),
    policy=st.sampled_from([True, False, "auto"]),
    dtypes=st.sampled_from([["f8"] * 9, ["f8", "f4", "i8"] * 3, ["i4"] * 4 + ["f4"] * 5]),
    is_large=st.booleans(),
)
def test_histories_of_shapes(history, policy, dtypes, is_large):
    """Values are NumPy's, and no history makes more traces than the policy allows."""
    fun = wend.function(
        lambda x: (x * 2 + 1, np.sum(x * x), x.size), reduce_retracing=policy, backend="numpy"
    )
    seen = set()
    for shape, dtype in zip(history, dtypes, strict=False):
        shape = tuple(max(size, 2) for size in shape) if is_large else shape
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        before = fun.trace_count
        twice, total, size = fun(x)
        assert (twice.dtype, twice.shape, size) == (x.dtype, shape, x.size)
        np.testing.assert_array_equal(twice, x * 2 + 1)
        np.testing.assert_allclose(total, np.sum(x * x))
        assert fun.trace_count - before <= ((shape, dtype) not in seen)  # one, and once
        seen.add((shape, dtype))
    ranks = {(len(shape), dtype) for shape, dtype in seen}
    if policy is False:
        assert fun.trace_count == len(seen)
    elif policy is True and is_large:  # all sizes at once; all ranks from the third on
        of_dtypes = Counter(dtype for _, dtype in ranks)
        assert fun.trace_count <= sum(min(count, 3) for count in of_dtypes.values())
    elif is_large:  # each trace opens an axis more
        assert fun.trace_count <= sum(1 + rank for rank, _ in ranks)


def test_a_function_that_needs_its_rank_is_traced_for_each():
    fun = wend.function(lambda x: x.reshape(-1)[0] + x.shape[0], reduce_retracing=True)
    shapes = ((2,), (2, 3), (2, 3, 4), (3, 2, 5), (2, 3, 4, 5))
    assert counts(fun, *map(np.ones, shapes)) == [1, 2, 3, 3, 4]


def test_inner_functions_of_unknown_sizes():
    inner = wend.function(lambda x: x / wnp.sum(x))
    fun = wend.function(lambda x: inner(x) + inner(x[1:])[0])
    for n in (3, 4, 5, 6):
        x = np.arange(1.0, n + 1)
        np.testing.assert_allclose(fun(x), x / x.sum() + x[1] / x[1:].sum())
    assert (fun.trace_count, inner.trace_count) == (2, 2)


def test_what_an_outer_trace_left_unknown_is_not_1():
    sizes = wend.function(lambda x: wnp.squeeze(x) * 2)
    around = wend.function(lambda x: wnp.sum(sizes(x)))
    assert [around(np.ones((n, 3))) for n in (2, 4, 5)] == [12.0, 24.0, 30.0]
    assert sizes(np.ones((1, 3))).shape == (3,)
    assert sizes(np.ones((7, 3))).shape == (7, 3)


# The rules by themselves
def vector(*shape):
    return LeafType(TensorType(np.dtype("f8"), shape))


def test_merged():
    n = new_symbol()
    (found,) = merge_shapes([vector(3, 2)], [vector(4, 2)])
    assert found.type.shape[1] == 2
    assert symbolic_axes([found]) == {(0, 0)}
    assert merge_shapes([vector(1)], [vector(4)]) is None
    assert merge_shapes([vector(4)], [vector(0)]) is None
    assert merge_shapes([vector(n)], [vector(1)]) is None
    assert merge_shapes([vector(4)], [vector(n)]) is None
    a, b = merge_shapes([vector(3), vector(3)], [vector(4), vector(5)])
    assert a.type.shape != b.type.shape


def test_serves():
    n = new_symbol()
    assert subsumes([vector(n), vector(n)], [vector(3), vector(3)], accepts_zero_one=False)
    assert not subsumes([vector(n), vector(n)], [vector(3), vector(4)], accepts_zero_one=False)
    assert not subsumes([vector(n)], [vector(1)], accepts_zero_one=False)
    assert subsumes([vector(n)], [vector(1)], accepts_zero_one=True)


def test_all_unknown():
    (found,) = fully_symbolic([vector(3, 1, 3)])
    first, one, last = found.type.shape
    assert (one, first == last) == (1, True)
    assert fully_symbolic([vector(1), vector()]) is None
